//! The errors of planning an update, and of selecting its files.

use super::interrupt::Interrupt;
use super::links::SkipReason;
use super::tree::TreeError;

/// The error of an update that cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The files cannot be listed.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// The plan has too many changes.
    #[error(
        "there are more than {limit} values to change, the limit of one plan; set update.path to a smaller directory"
    )]
    TooManyChanges {
        /// The maximum number of changes.
        limit: usize,
    },
    /// The plan takes too much memory.
    #[error(
        "the changes and markers take more than {} MiB of memory, the limit of one plan; set update.path to a \
         smaller directory",
        limit >> 20
    )]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The caller interrupted it.
    #[error(transparent)]
    Interrupted(#[from] Interrupt),
}

impl PlanError {
    /// Returns `true` if there is nothing at `update.path`.
    #[must_use]
    pub fn is_missing_path(&self) -> bool {
        matches!(self, Self::Scope(ScopeError::NotFound { .. }))
    }
}

/// The error of files that cannot be selected.
#[derive(Debug, thiserror::Error)]
pub enum ScopeError {
    /// `update.path` climbs above the root.
    #[error("the path {path:?} leads out of the directory")]
    Escapes {
        /// The path as given.
        path: String,
    },
    /// `update.path` is, or leads through, a link that cannot be followed.
    #[error("the path {path:?} cannot be followed")]
    Link {
        /// The path as given.
        path: String,
        /// The reason.
        #[source]
        cause: SkipReason,
    },
    /// There is nothing at `update.path`.
    #[error("there is no file or directory {path:?}")]
    NotFound {
        /// The path as given.
        path: String,
    },
    /// The tree could not be listed.
    #[error(transparent)]
    Tree(#[from] TreeError),
}
