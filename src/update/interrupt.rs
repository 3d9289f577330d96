//! Deadlines and cancellation of a plan, decided by the caller: this code has no clock.

use std::time::Duration;

/// The progress of a plan.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Files processed so far.
    pub files: usize,
    /// Values to replace so far.
    pub edits: usize,
}

/// Decides whether planning and committing continue; called between two files, directories or edits.
///
/// The caller keeps the clock and the cancellation token. After an [`Interrupt`] nothing more is read or written.
pub type Checkpoint<'c> = dyn FnMut(Progress) -> Result<(), Interrupt> + 'c;

/// The reason for which planning and committing were interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Interrupt {
    /// The deadline passed.
    #[error(
        "planning and committing took longer than the timeout of {} s; set update.path to a smaller directory, or \
         raise spec.timeout of the GitRepository",
        timeout.as_secs_f64()
    )]
    TimedOut {
        /// The time allowed.
        timeout: Duration,
    },
    /// The automation was deleted or suspended, or the process is shutting down.
    #[error("planning and committing were cancelled")]
    Cancelled,
}
