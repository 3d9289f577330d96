//! Deadlines and cancellation of a plan, decided by the caller: there is no clock here.

use std::time::Duration;

use tagboat_api::Reason;

use crate::failing::Failing;

/// The progress of a plan.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Files looked into so far.
    pub files: usize,
    /// Values to replace so far.
    pub edits: usize,
}

/// Decides whether planning and committing go on; called between two files, directories or edits.
///
/// The caller keeps the clock and the cancellation token. After an [`Interrupt`] nothing more is read or written.
pub type Checkpoint<'c> = dyn FnMut(Progress) -> Result<(), Interrupt> + 'c;

/// Why planning and committing ended before they were done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Interrupt {
    /// They took too long.
    #[error(
        "planning and committing took longer than the timeout of {} s; let update.path lead to a smaller directory, or \
         raise spec.timeout of the GitRepository",
        timeout.as_secs_f64()
    )]
    TimedOut {
        /// The time that they were allowed.
        timeout: Duration,
    },
    /// The automation was deleted or suspended, or the process is shutting down.
    #[error("planning and committing were cancelled")]
    Cancelled,
}

/// The next run continues with the files that the marker index does not know yet.
impl Failing for Interrupt {
    fn reason(&self) -> Reason {
        Reason::UpdateFailed
    }

    fn is_retryable(&self) -> bool {
        true
    }
}
