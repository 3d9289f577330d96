//! The requeue that follows from a reconcile.

use std::time::Duration;

/// The requeue that a reconcile asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Requeue after exactly this time.
    RequeueAfter(Duration),
    /// Requeue soon, with exponential backoff while reconciles fail in a row.
    Retry,
    /// Do not requeue: only a change of an object or a request makes it due.
    AwaitChange,
}
