//! The commits of the first-parent line with the changes of their marked values.

use std::fs;
use std::rc::Rc;

use git2::{Commit, ErrorCode, Oid, Repository};

use super::changed_files::{ChangedFile, TreeDifferences, compare_trees};
use super::directories::Directories;
use super::error::HistoryError;
use super::marked_contents::{MarkedContents, Reading};
use crate::git::commit_time::CommitTime;
use crate::git::name::CommitId;
use crate::git::object::{ObjectError, find_commit};
use crate::update::history::{FileVersions, ValueChange, compare};
use crate::update::{ReadError, TreePath};

/// A walk from a commit to its oldest ancestor, by first parents.
pub struct HistoryWalk<'r> {
    repository: &'r Repository,
    directories: Directories<'r>,
    /// The next commit to compare with its parent.
    next: Option<Commit<'r>>,
    scope: TreePath,
    contents: MarkedContents,
    is_shallow: bool,
    /// The clone was made with a filter, so objects may be missing.
    is_partial: bool,
    end: Option<HistoryEnd>,
}

/// A commit as a history lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitSummary {
    /// Its id.
    pub id: CommitId,
    /// The time at which it was committed.
    pub time: CommitTime,
    /// The name of its author.
    pub author: String,
}

/// A commit with the changes from its first parent.
#[derive(Debug)]
pub struct WalkedCommit {
    /// The commit.
    pub commit: CommitSummary,
    /// The changes of its marked values.
    pub changes: Vec<ValueChange>,
    /// The versions of files that it introduced and that cannot be read.
    pub unreadable: Vec<UnreadableVersion>,
}

/// A version of a file whose markers are unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableVersion {
    /// The file or directory.
    pub path: String,
    /// The error of reading it.
    pub error: ReadError,
}

/// The end of a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistoryEnd {
    /// The first commit of the repository.
    Root(CommitSummary),
    /// The oldest commit of a shallow clone, whose changes are unknown.
    Shallow(CommitSummary),
}

impl<'r> HistoryWalk<'r> {
    pub(super) fn start(
        repository: &'r Repository,
        head: CommitId,
        scope: TreePath,
    ) -> Result<Self, HistoryError> {
        let directories = Directories::new(repository.odb().map_err(HistoryError::Objects)?);
        let next = find_commit(repository, head).map_err(|cause| HistoryError::Commit { id: head, cause })?;
        // A linked work tree shares this file with its repository.
        let is_shallow =
            fs::metadata(repository.commondir().join("shallow")).is_ok_and(|file| file.len() > 0);
        let (contents, is_partial) = (MarkedContents::new(), is_partial(repository));
        Ok(Self {
            repository,
            directories,
            next: Some(next),
            scope,
            contents,
            is_shallow,
            is_partial,
            end: None,
        })
    }

    /// Returns the next older commit, also if it changes no marked value.
    ///
    /// # Errors
    ///
    /// If a commit is missing or damaged, or lacks objects in a partial clone, which ends the walk.
    pub fn next_commit(&mut self) -> Result<Option<WalkedCommit>, HistoryError> {
        let Some(commit) = self.next.take() else { return Ok(None) };
        let summary = summary_of(&commit);
        let parent = match first_parent(&commit) {
            None => None,
            // libgit2 has no parents for the commits that the file `shallow` names.
            Some(_) if self.is_shallow && commit.parent_count() == 0 => {
                return Ok(Some(self.end_shallow(summary)));
            }
            Some(id) => match find_commit(self.repository, id.into()) {
                Ok(parent) => Some(parent),
                Err(ObjectError::Git(cause)) if self.is_shallow && cause.code() == ErrorCode::NotFound => {
                    return Ok(Some(self.end_shallow(summary)));
                }
                Err(cause) => return Err(HistoryError::Commit { id: id.into(), cause }),
            },
        };
        let differences = compare_trees(
            &mut self.directories,
            &self.scope,
            parent.as_ref().map(Commit::tree_id),
            Some(commit.tree_id()),
        );
        if self.is_partial && !self.has_all(&differences) {
            return Err(HistoryError::Partial { id: summary.id });
        }
        if parent.is_none() {
            self.end = Some(HistoryEnd::Root(summary.clone()));
        }
        self.next = parent;
        let (changes, unreadable) = self.changes(&differences);
        Ok(Some(WalkedCommit { commit: summary, changes, unreadable }))
    }

    /// Returns the end of the history, once the walk has reached it.
    pub fn end(&self) -> Option<&HistoryEnd> {
        self.end.as_ref()
    }

    /// Returns true if no object of the differences is missing.
    fn has_all(&self, differences: &TreeDifferences) -> bool {
        let ids = differences.files.iter().flat_map(|file| [file.old, file.new]).flatten();
        differences.unreadable.is_empty() && ids.into_iter().all(|id| self.directories.objects().exists(id))
    }

    fn end_shallow(&mut self, commit: CommitSummary) -> WalkedCommit {
        self.end = Some(HistoryEnd::Shallow(commit.clone()));
        WalkedCommit { commit, changes: Vec::new(), unreadable: Vec::new() }
    }

    /// Returns the changes of marked values, and the versions that cannot be read.
    ///
    /// A file with an unreadable version has no changes. Only the newer version is reported: the older one is that of
    /// another commit.
    fn changes(&mut self, differences: &TreeDifferences) -> (Vec<ValueChange>, Vec<UnreadableVersion>) {
        let directories = differences.unreadable.iter().map(|directory| UnreadableVersion {
            path: directory.path.to_string(),
            error: ReadError { line: 1, column: 1, message: directory.message.clone() },
        });
        let mut unreadable: Vec<UnreadableVersion> = directories.collect();
        let mut readable = Vec::new();
        for file in &differences.files {
            let (old, new) = self.versions(file);
            if let Some(Err(error)) = &new {
                unreadable.push(UnreadableVersion { path: file.path.to_string(), error: error.clone() });
            }
            if let (Ok(old), Ok(new)) = (old.transpose(), new.transpose())
                && [&old, &new].into_iter().flatten().any(|content| !content.values().is_empty())
            {
                readable.push((Rc::<str>::from(file.path.to_string()), old, new));
            }
        }
        let versions: Vec<FileVersions<'_>> = readable
            .iter()
            .map(|(file, old, new)| FileVersions {
                file,
                old: old.as_ref().map_or(&[][..], |content| content.values()),
                new: new.as_ref().map_or(&[][..], |content| content.values()),
            })
            .collect();
        (compare(&versions), unreadable)
    }

    /// Returns the marked values of the two versions of a file.
    fn versions(&mut self, file: &ChangedFile) -> (Option<Reading>, Option<Reading>) {
        let mut read = |id: Option<Oid>, beside: Option<&Reading>| {
            id.map(|id| self.contents.read(self.directories.objects(), &file.path, id, beside))
        };
        let new = read(file.new, None);
        let old = read(file.old, new.as_ref());
        if let Some(id) = file.new {
            self.contents.remove(id);
        }
        (old, new)
    }
}

/// Returns true for a partial clone, which has a remote that promises the missing objects.
fn is_partial(repository: &Repository) -> bool {
    let Ok(configuration) = repository.config() else { return false };
    let Ok(entries) = configuration.entries(Some(r"^remote\..*\.(promisor|partialclonefilter)$")) else {
        return false;
    };
    let mut is_partial = false;
    // An entry that cannot be read ends the loop.
    let _ = entries.for_each(|_| is_partial = true);
    is_partial
}

/// Returns the first parent as the commit states it.
///
/// The clone need not have it.
fn first_parent(commit: &Commit<'_>) -> Option<Oid> {
    let mut lines = commit.raw_header_bytes().split(|byte| *byte == b'\n');
    let parent = lines.find_map(|line| line.strip_prefix(b"parent "))?;
    Oid::from_str(std::str::from_utf8(parent).ok()?).ok()
}

fn summary_of(commit: &Commit<'_>) -> CommitSummary {
    let time = commit.time();
    CommitSummary {
        id: commit.id().into(),
        time: CommitTime { seconds: time.seconds(), offset: time.offset_minutes() },
        author: String::from_utf8_lossy(commit.author().name_bytes()).into_owned(),
    }
}
