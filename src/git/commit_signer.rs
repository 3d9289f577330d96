//! Commits that a forge signs instead of a key.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use futures::future::LocalBoxFuture;

use super::name::CommitId;

/// The maximum number of commits that a forge signs for one push.
pub const MAX_SIGNED_COMMITS: usize = 25;

/// Has commits signed by the forge of a repository.
pub trait CommitSigner: fmt::Debug + Send + Sync {
    /// Has a commit signed whose parent the forge knows.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, refuses, or has not verified its signature.
    fn sign<'a>(
        &'a self,
        commit: &'a UnsignedCommit<'a>,
    ) -> LocalBoxFuture<'a, Result<ForgeCommit, SignerError>>;

    /// Returns the name of the author of the commits that it signs, such as `tagboat[bot]`.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses.
    fn author(&self) -> LocalBoxFuture<'_, Result<String, SignerError>>;
}

/// The error of a forge that did not sign a commit.
#[derive(Clone, Debug)]
pub struct SignerError {
    /// The cause, without secrets.
    pub cause: Arc<dyn Error + Send + Sync>,
    /// True if the commit is the cause, so that the forge may sign others.
    pub is_of_commit: bool,
}

/// The signing of a proposal's commit by a forge.
#[derive(Clone, Debug)]
pub struct ForgeSigning {
    /// The forge.
    pub signer: Arc<dyn CommitSigner>,
    /// True if our own commit must not be pushed instead.
    pub is_required: bool,
}

/// A commit to be signed: ids, message and changed files.
pub struct UnsignedCommit<'c> {
    /// A tree that the forge has.
    pub base_tree: CommitId,
    /// The tree of the commit.
    pub tree: CommitId,
    /// The parent.
    pub parent: CommitId,
    /// The message.
    pub message: &'c str,
    /// The files of `tree` that `base_tree` does not have with that content and mode.
    pub files: Vec<ChangedFile>,
    /// Reads the content of a file.
    pub read: &'c dyn Fn(&ChangedFile) -> Result<Vec<u8>, git2::Error>,
}

/// A file that a commit changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// The path from the root.
    pub path: String,
    /// True if its mode is `100755`, false if it is `100644`.
    pub is_executable: bool,
    /// The id of its content.
    pub blob: CommitId,
    /// The size of its content in bytes.
    pub size: usize,
}

/// A commit that a forge made and signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgeCommit {
    /// Its id.
    pub id: CommitId,
    /// The bytes that are signed: the commit without its signature.
    pub payload: String,
    /// The signature.
    pub signature: String,
}

/// The error of a commit that a forge did not sign as it should.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ForgeSigningError {
    /// The forge failed or did not answer, and would for any commit.
    #[error("the forge did not sign the commit")]
    Forge(#[source] Arc<dyn Error + Send + Sync>),
    /// The forge refused this commit.
    #[error("the forge did not sign the commit")]
    Commit(#[source] Arc<dyn Error + Send + Sync>),
    /// A changed file cannot be sent.
    #[error("the forge cannot sign a commit that changes {path:?}: {defect}")]
    File {
        /// The path, perhaps with replaced bytes.
        path: String,
        /// The defect.
        defect: &'static str,
    },
    /// The message cannot be sent.
    #[error("the forge cannot sign a commit whose message is not UTF-8: correct the message template")]
    Message,
    /// The commit is another one than that which was to be signed.
    #[error("the forge signed another commit than ours: {commit} has another {part}")]
    OtherCommit {
        /// The commit.
        commit: CommitId,
        /// The part that differs.
        part: &'static str,
    },
    /// The commit cannot be assembled from its parts, and not be fetched.
    #[error("the forge signed the commit {commit}, but does not give it to us: {cause}")]
    NoCommit {
        /// The commit.
        commit: CommitId,
        /// The cause, without secrets.
        cause: String,
    },
    /// The forge does not tell for which App it signs.
    #[error(
        "it is unknown for which App the forge signs, so a commit of an App may be one of others: {cause}"
    )]
    UnknownApp {
        /// The cause, without secrets.
        cause: String,
    },
    /// The login at the forge failed.
    #[error("it is unknown for which App the forge signs, because there is no login there")]
    NoSigner,
    /// A commit below this one was not signed by the forge.
    #[error("the forge cannot sign a commit on top of one that it does not have")]
    UnknownParent,
}

impl ForgeSigningError {
    /// Returns true if the commit is the cause, so that the forge may sign others.
    pub(super) fn is_of_commit(&self) -> bool {
        !matches!(self, Self::Forge(_))
    }
}

impl From<SignerError> for ForgeSigningError {
    fn from(SignerError { cause, is_of_commit }: SignerError) -> Self {
        if is_of_commit { Self::Commit(cause) } else { Self::Forge(cause) }
    }
}
