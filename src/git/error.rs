//! The errors of a run against a remote.

use std::io;

use super::access::AccessError;
use super::command::GitError;
use super::commit_error::CommitError;
use super::failure_kind::FailureKind;
use super::mirror_error::MirrorError;
use super::name::{BranchName, CommitId, RefName};
use super::object::{ObjectError, ObjectTooLarge};
use super::remote_error::{RemoteError, RemoteOperation};
use super::tree;
use crate::error::ReconcileError;

/// The error of a run against a remote.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The mirror cannot be used.
    #[error(transparent)]
    Mirror(#[from] MirrorError),
    /// The files of the login cannot be written.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The remote cannot be used.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The remote has nothing at all.
    #[error("unable to clone '{url}': the repository is empty; push a first commit to it")]
    Empty {
        /// The remote.
        url: String,
    },
    /// The address belongs to something else than a git server.
    #[error("unable to clone '{url}': the server is not a git server; check spec.url of the GitRepository")]
    NotGit {
        /// The remote.
        url: String,
    },
    /// The remote does not have the reference to check out.
    #[error("unable to clone '{url}': couldn't find remote ref {:?}", name.as_str())]
    NoReference {
        /// The remote.
        url: String,
        /// The reference.
        name: RefName,
        /// Other references of the remote, as text, if they were listed.
        existing: Option<String>,
    },
    /// The remote has no tag within the range.
    #[error("unable to clone '{url}': no match found for semver: {range}")]
    NoVersion {
        /// The remote.
        url: String,
        /// The range of versions.
        range: String,
        /// Tags that the remote has, in words.
        existing: String,
    },
    /// The version range is malformed.
    #[error("semver parse error: {range:?}")]
    Range {
        /// The range.
        range: String,
        /// The cause.
        #[source]
        cause: crate::policy::ConstraintError,
    },
    /// The reference to check out leads to no commit.
    #[error("{name} of '{url}' does not lead to a commit")]
    NoCommit {
        /// The remote.
        url: String,
        /// The reference, or the id.
        name: String,
        /// The cause.
        #[source]
        cause: git2::Error,
    },
    /// The commit to check out does not exist.
    #[error("unable to clone '{url}': commit {commit} does not exist, or the server does not serve it")]
    UnknownCommit {
        /// The remote.
        url: String,
        /// The commit.
        commit: CommitId,
    },
    /// Objects of the mirror cannot be read.
    #[error("the mirror's objects cannot be read")]
    Objects(#[from] git2::Error),
    /// A commit, tag or directory of the repository is too large to be read.
    #[error(transparent)]
    ObjectTooLarge(#[from] ObjectTooLarge),
    /// Objects of the mirror are missing or broken.
    #[error("the mirror is damaged, and fetching it again did not help")]
    Damaged,
    /// The commit cannot be made.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The push journal cannot be written, and without it no push is safe.
    #[error("cannot write the push journal")]
    PushJournal(#[source] io::Error),
    /// The remote refuses the push.
    #[error("failed to push to remote '{url}': {reference} was refused: {message}")]
    Refused {
        /// The remote.
        url: String,
        /// The reference.
        reference: RefName,
        /// The server's message.
        message: String,
    },
    /// The commit is on its branch, and the remote refuses the refspec.
    #[error("{}, but not refspecs '{refspec}'", pushed(*commit, branch, message.is_some()))]
    RefspecRefused {
        /// The commit.
        commit: CommitId,
        /// The branch.
        branch: BranchName,
        /// The message of the commit; none if an earlier run has pushed it.
        message: Option<String>,
        /// The refspec.
        refspec: String,
        /// The refusal.
        #[source]
        cause: Box<SyncError>,
    },
    /// The proposal was cancelled.
    #[error(
        "the run was cancelled: the automation was deleted or suspended, or belongs to another controller now"
    )]
    Cancelled,
    /// All work is being stopped.
    #[error("the run was ended because tagboat was stopped")]
    Interrupted,
    /// Neither a thread nor memory was free for too long.
    #[error(
        "no thread or memory was free for planning, because other runs hold them; the next run tries again"
    )]
    NoCapacity,
    /// Another push came between each listing and the push after it.
    #[error(
        "failed to push to remote '{url}': others pushed to the branch during each of {tries} attempts; the next run tries again"
    )]
    LostRace {
        /// The remote.
        url: String,
        /// The number of attempts.
        tries: u32,
    },
}

fn pushed(commit: CommitId, branch: &BranchName, is_of_this_run: bool) -> String {
    if is_of_this_run {
        format!("pushed commit '{}' to branch '{branch}'", commit.short())
    } else {
        format!("commit '{}' of an earlier run is on branch '{branch}'", commit.short())
    }
}

impl SyncError {
    /// Returns a hint for correcting the objects, which is not part of Flux's message.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::NoReference { existing, .. } => existing.as_deref(),
            Self::NoVersion { existing, .. } => Some(existing),
            _ => None,
        }
    }

    /// Returns the kind of the remote's failure, if it is known.
    pub fn failure_kind(&self) -> Option<FailureKind> {
        match self {
            Self::Remote(error) => error.failure_kind(),
            _ => None,
        }
    }

    /// Returns true if the reference to check out is the cause.
    /// The result is false if the mirror or the remote is the cause.
    pub(super) fn is_of_checkout(&self) -> bool {
        !matches!(
            self,
            Self::Mirror(_) | Self::Access(_) | Self::Remote(_) | Self::Objects(_) | Self::Damaged
        )
    }

    /// Returns true if objects of the mirror are missing or broken.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::Damaged => true,
            Self::Objects(error) | Self::Commit(CommitError::Objects(error)) => tree::is_damage(error),
            _ => false,
        }
    }

    /// Returns true if the work was ended from outside, so that its result is unknown.
    pub(super) fn is_interruption(&self) -> bool {
        matches!(
            self,
            Self::Cancelled
                | Self::Interrupted
                | Self::Remote(RemoteError::Failed { cause: GitError::Interrupted { .. }, .. })
        )
    }

    /// Returns true if a history or an object is too large for the mirror.
    pub(super) fn is_too_large(&self) -> bool {
        matches!(self, Self::ObjectTooLarge(_) | Self::Remote(RemoteError::TooLarge { .. }))
    }

    /// Returns true if the error occurred before the push.
    /// A commit that cannot be made belongs to the push.
    pub fn is_checkout(&self) -> bool {
        match self {
            Self::Commit(_)
            | Self::PushJournal(_)
            | Self::Refused { .. }
            | Self::RefspecRefused { .. }
            | Self::LostRace { .. } => false,
            Self::Remote(error) => error.operation() != RemoteOperation::Push,
            _ => true,
        }
    }
}

impl From<ObjectError> for SyncError {
    fn from(error: ObjectError) -> Self {
        match error {
            ObjectError::Git(error) => Self::Objects(error),
            ObjectError::TooLarge(error) => Self::ObjectTooLarge(error),
        }
    }
}

/// Always retryable: the object is not the cause, not even if git is missing.
impl ReconcileError for SyncError {}
