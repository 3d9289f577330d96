//! A clone on this machine, with or without a work tree.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use git2::{ErrorCode, Repository, RepositoryOpenFlags};

use super::error::HistoryError;
use super::history_walk::HistoryWalk;
use crate::git::name::CommitId;
use crate::update::TreePath;

/// Turns off libgit2's cache of objects, for all repositories of this process.
///
/// A walk reads each object once and keeps what it needs again, so that cache would only copy every commit and
/// directory of the repository, up to 256 MB.
pub fn disable_object_cache() {
    git2::opts::enable_caching(false);
}

/// A repository of the user, which is only read.
pub struct LocalClone {
    repository: Repository,
    /// The path within the repository from which it was opened.
    within: TreePath,
}

impl LocalClone {
    /// Opens the repository that contains `path`, as git finds it.
    ///
    /// # Errors
    ///
    /// If the path does not exist, is in no repository, or in one that git may not read.
    pub fn open(path: &Path) -> Result<Self, HistoryError> {
        let full =
            fs::canonicalize(path).map_err(|cause| HistoryError::Path { path: path.to_owned(), cause })?;
        let directory = if full.is_dir() { &full } else { full.parent().unwrap_or(&full) };
        let none: [&OsStr; 0] = [];
        let opened = Repository::open_ext(directory, RepositoryOpenFlags::CROSS_FS, none);
        let repository = opened.map_err(|cause| match cause.code() {
            ErrorCode::NotFound => HistoryError::NoRepository { path: path.to_owned() },
            ErrorCode::Owner => HistoryError::OtherOwner { path: path.to_owned(), root: root_of(directory) },
            _ => HistoryError::Repository { path: path.to_owned(), cause },
        })?;
        // The files of git itself stand for all of the repository.
        let is_of_git = fs::canonicalize(repository.path()).is_ok_and(|own| full.starts_with(own));
        let root = repository.workdir().filter(|_| !is_of_git).and_then(|root| fs::canonicalize(root).ok());
        let within =
            root.and_then(|root| full.strip_prefix(root).ok().map(|path| path.as_os_str().as_bytes()));
        let within = TreePath::from_bytes(within.unwrap_or_default());
        Ok(Self { repository, within })
    }

    /// The path within the repository from which it was opened.
    ///
    /// It is the root in a bare repository.
    pub fn within(&self) -> &TreePath {
        &self.within
    }

    /// Returns the commit of HEAD; `None` before the first commit.
    ///
    /// # Errors
    ///
    /// If HEAD is damaged.
    pub fn head(&self) -> Result<Option<CommitId>, HistoryError> {
        let commit = self.repository.head().and_then(|head| head.peel_to_commit());
        match commit {
            Ok(commit) => Ok(Some(commit.id().into())),
            Err(cause) if cause.code() == ErrorCode::UnbornBranch => Ok(None),
            Err(cause) => Err(HistoryError::Head(cause)),
        }
    }

    /// Starts a walk at a commit, over the files at and below `scope`.
    ///
    /// # Errors
    ///
    /// If the commit cannot be read.
    pub fn walk(&self, head: CommitId, scope: TreePath) -> Result<HistoryWalk<'_>, HistoryError> {
        HistoryWalk::start(&self.repository, head, scope)
    }
}

/// Returns the directory of the repository that contains `directory`, found by its `.git`.
fn root_of(directory: &Path) -> std::path::PathBuf {
    let root = directory.ancestors().find(|directory| directory.join(".git").exists());
    root.unwrap_or(directory).to_owned()
}
