//! The errors of planning an update.

use tagboat_api::Reason;

use super::interrupt::Interrupt;
use super::scope::ScopeError;
use crate::error::ReconcileError;

/// The error of an update that cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The files cannot be listed.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// The plan has too many changes.
    #[error(
        "there are more than {limit} values to change, the limit of one plan; let update.path lead to a smaller directory"
    )]
    TooManyChanges {
        /// The maximum number of changes.
        limit: usize,
    },
    /// The plan takes too much memory.
    #[error(
        "the changes and markers take more than {} MiB of memory, the limit of one plan; let update.path lead to a \
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

impl ReconcileError for PlanError {
    fn reason(&self) -> Reason {
        match self {
            Self::Scope(error) => error.reason(),
            Self::Interrupted(error) => error.reason(),
            Self::TooManyChanges { .. } | Self::TooLarge { .. } => Reason::UpdateFailed,
        }
    }

    fn is_retryable(&self) -> bool {
        match self {
            Self::Scope(error) => error.is_retryable(),
            Self::Interrupted(error) => error.is_retryable(),
            // The next commit may have less of both.
            Self::TooManyChanges { .. } | Self::TooLarge { .. } => true,
        }
    }
}
