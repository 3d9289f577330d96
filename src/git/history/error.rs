//! Errors that end a walk over the history.

use std::io;
use std::path::{Path, PathBuf};

use crate::git::name::CommitId;
use crate::git::object::ObjectError;

/// The error of a repository, or of a commit in it.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The path leads to nothing.
    #[error("cannot open {path}", path = .path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// The path is in no repository.
    #[error("{path} is not in a git repository; name the directory of a clone", path = .path.display())]
    NoRepository {
        /// The path.
        path: PathBuf,
    },
    /// Git refuses repositories of other users.
    #[error(
        "the repository of {path} belongs to another user; to read it, run git config --global --add safe.directory {root}",
        path = .path.display(), root = quoted(root)
    )]
    OtherOwner {
        /// The path.
        path: PathBuf,
        /// The directory to allow.
        root: PathBuf,
    },
    /// The repository cannot be opened.
    #[error("cannot read the git repository of {path}", path = .path.display())]
    Repository {
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: git2::Error,
    },
    /// HEAD does not lead to a commit.
    #[error("HEAD leads to no commit")]
    Head(#[source] git2::Error),
    /// The objects cannot be read.
    #[error("cannot read the objects of the repository")]
    Objects(#[source] git2::Error),
    /// The clone was made with a filter, and lacks objects of a commit.
    #[error(
        "cannot compare commit {id} with its parent, because the clone is partial and lacks some of their files; git fetch \
         --refetch --no-filter completes it"
    )]
    Partial {
        /// The commit.
        id: CommitId,
    },
    /// A commit is missing or damaged.
    #[error("cannot read commit {id}")]
    Commit {
        /// The commit.
        id: CommitId,
        /// The cause.
        #[source]
        cause: ObjectError,
    },
}

/// Quotes a path for a shell, if it needs quotes.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%=:,".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_advised_command_can_be_pasted() {
        for (path, expected) in
            [("/srv/fleet", "/srv/fleet"), ("/srv/my fleet", "'/srv/my fleet'"), ("/a'b;c", r"'/a'\''b;c'")]
        {
            assert_eq!(quoted(Path::new(path)), expected);
        }
    }
}
