//! The errors of making a commit.

use std::sync::Arc;

use super::commit_signer::ForgeSigningError;
use super::object::{ObjectError, ObjectTooLarge};
use super::signature::SigningError;
use super::tree_entries::MalformedTree;
use crate::update::Interrupt;

/// The error of a commit that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// An object could not be read or written.
    #[error("cannot make the commit in the mirror")]
    Objects(#[from] git2::Error),
    /// The edit was made for another content.
    #[error("the edit of {file} does not fit its content")]
    DoesNotFit {
        /// The file.
        file: String,
    },
    /// A directory on the way to an edit is too large to be read.
    #[error(transparent)]
    TooLarge(#[from] ObjectTooLarge),
    /// A directory on the way to an edit is no tree.
    #[error("cannot make the commit")]
    Malformed(#[from] MalformedTree),
    /// The files with their edits are too large.
    #[error(
        "the changed files have more than {limit} bytes together, the limit of one commit; set update.path to a \
         smaller directory"
    )]
    TooMuch {
        /// The limit in bytes.
        limit: usize,
    },
    /// The commit with its message and signature is too large to be read again.
    #[error(
        "the commit has {size} bytes with its message, more than the limit of {limit}; shorten the message template"
    )]
    TooLong {
        /// The size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The mirror has no room for the new objects.
    #[error(
        "the mirror has no room for the changed files; raise --mirror-max-size or --mirrors-max-size, or set update.path \
         to a smaller directory"
    )]
    NoSpace,
    /// The caller interrupted it.
    #[error(transparent)]
    Interrupted(#[from] Interrupt),
    /// The message cannot be stored in a commit.
    #[error("the commit message has a NUL character, which git cannot store")]
    Message,
    /// The commit cannot be signed.
    #[error("cannot sign the commit")]
    Signature(#[from] SigningError),
    /// The forge did not sign the commit, and nothing else may be pushed.
    #[error(transparent)]
    ForgeSignature(#[from] Arc<ForgeSigningError>),
}

impl CommitError {
    /// Returns true if the cause is the proposal itself, and nothing that other proposals need.
    pub(super) fn is_of_proposal(&self) -> bool {
        !matches!(self, Self::Objects(_))
    }
}

impl From<ObjectError> for CommitError {
    fn from(error: ObjectError) -> Self {
        match error {
            ObjectError::Git(error) => Self::Objects(error),
            ObjectError::TooLarge(error) => Self::TooLarge(error),
        }
    }
}
