//! The errors of operations on a remote.

use std::fmt;

use super::access::LoginOwner;
use super::command::GitError;
use super::failure_kind::FailureKind;
use super::listing::ListingError;
use super::process;

/// An operation on a remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteOperation {
    /// Lists its references.
    List,
    /// Fetches objects.
    Fetch,
    /// Pushes commits.
    Push,
}

/// Prints the verb that precedes the remote's address in a sentence.
impl fmt::Display for RemoteOperation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::List => "list",
            Self::Fetch => "fetch",
            Self::Push => "push to",
        })
    }
}

/// The error of an operation on a remote.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// A known failure of the login, the network or the server.
    #[error("unable to {operation} '{url}': {}{}", kind.advice(*owner), behind_colon(detail))]
    Diagnosed {
        /// The operation.
        operation: RemoteOperation,
        /// The remote.
        url: String,
        /// The kind of the failure.
        kind: FailureKind,
        /// The owner of the login, who can correct it.
        owner: LoginOwner,
        /// The output of git.
        detail: String,
    },
    /// Any other failure.
    #[error("unable to {operation} '{url}'")]
    Failed {
        /// The operation.
        operation: RemoteOperation,
        /// The remote.
        url: String,
        /// The error of the git process.
        #[source]
        cause: GitError,
    },
    /// The remote redirects to another server, or another scheme.
    #[error(
        "unable to {operation} '{url}': the server redirects to '{target}'; credentials are never sent to another server; if \
         the redirect is right, set spec.url of the GitRepository to it"
    )]
    Redirected {
        /// The operation.
        operation: RemoteOperation,
        /// The remote.
        url: String,
        /// The target of the redirect, without user info.
        target: String,
    },
    /// The listing exceeds the bound of what is read.
    #[error(
        "unable to list '{url}': the list of its references is larger than {} MiB, the limit; delete unneeded branches \
         and tags", process::MAX_OUTPUT >> 20
    )]
    Overlong {
        /// The remote.
        url: String,
    },
    /// The answer cannot be parsed as a listing.
    #[error("unable to list '{url}'")]
    Listing {
        /// The remote.
        url: String,
        /// The parse error.
        #[source]
        cause: ListingError,
    },
    /// The mirror would exceed its own size limit.
    #[error(
        "unable to fetch '{url}': the mirror would be larger than {limit} bytes; raise --mirror-max-size if the \
         repository really is that large"
    )]
    TooLarge {
        /// The remote.
        url: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// All mirrors together would exceed their size limit.
    #[error(
        "unable to fetch '{url}': all mirrors together would be larger than {limit} bytes, and those of its namespace take \
         most; use fewer or smaller repositories there, or raise --mirrors-max-size"
    )]
    NoSpace {
        /// The remote.
        url: String,
        /// The limit in bytes.
        limit: u64,
    },
}

/// Returns the suffix of a sentence: a colon and the words, or nothing without words.
fn behind_colon(detail: &str) -> String {
    if detail.is_empty() { String::new() } else { format!(": {detail}") }
}

impl RemoteError {
    /// Returns the operation that failed.
    pub(super) fn operation(&self) -> RemoteOperation {
        match self {
            Self::Diagnosed { operation, .. }
            | Self::Failed { operation, .. }
            | Self::Redirected { operation, .. } => *operation,
            Self::Listing { .. } | Self::Overlong { .. } => RemoteOperation::List,
            Self::TooLarge { .. } | Self::NoSpace { .. } => RemoteOperation::Fetch,
        }
    }

    /// Returns true if nothing was sent, because a push may not begin any more.
    pub(super) fn is_withheld(&self) -> bool {
        matches!(self, Self::Failed { cause: GitError::Withheld { .. }, .. })
    }

    /// Returns the kind of the failure if it is a known one.
    pub fn failure_kind(&self) -> Option<FailureKind> {
        match self {
            Self::Diagnosed { kind, .. } => Some(*kind),
            _ => None,
        }
    }
}
