//! The wait of a command for a state of the cluster: its time limit.

use std::fmt;
use std::future::Future;
use std::time::{Duration, Instant};

use tagboat_api::GoDuration;
use tokio::time::timeout_at;

use super::Failure;
use super::values::duration;

/// The time limit of a wait without a time.
pub(super) const DEFAULT_WAIT: &str = "5m";

/// A wait, which began when it was made.
pub(super) struct Wait {
    pub(super) limit: Duration,
    /// The end; `None` if it is too far away to be a time.
    end: Option<Instant>,
}

/// Reads the value of `--wait`.
pub(super) fn wait_time(text: &str) -> Result<Duration, String> {
    duration(text).map_err(|error| format!("{error}; write names before --wait"))
}

/// Returns the failure with these sentences, if there is one.
pub(super) fn done_unless(sentences: Vec<String>) -> Result<(), Failure> {
    if sentences.is_empty() { Ok(()) } else { Err(Failure::Failed(sentences)) }
}

impl Wait {
    /// Makes a wait that begins now.
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, end: Instant::now().checked_add(limit) }
    }

    pub(super) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| end <= Instant::now())
    }

    /// Awaits a future until the end of the time; then there is no result.
    pub(super) async fn until_end<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        match self.end {
            Some(end) => timeout_at(end.into(), future).await.ok(),
            None => Some(future.await),
        }
    }
}

/// Formats the time limit, such as `within 5m0s`.
impl fmt::Display for Wait {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "within {}", GoDuration::from(self.limit))
    }
}
