//! When a piece of work has to be done.

use std::time::Duration;

use tokio::time::Instant;

use super::error::RegistryError;

/// When a piece of work has to be done.
#[derive(Debug, Clone)]
pub(super) struct Deadline {
    at: Instant,
    allowed: Duration,
}

impl Deadline {
    /// So long from now.
    pub(super) fn within(allowed: Duration) -> Self {
        Self::of(Instant::now(), allowed)
    }

    /// So long after a beginning.
    pub(super) fn of(begin: Instant, allowed: Duration) -> Self {
        Self { at: begin + allowed, allowed }
    }

    /// What a future gives, unless the time is over first.
    pub(super) async fn hold<T>(
        &self,
        what: impl FnOnce() -> String,
        work: impl Future<Output = Result<T, RegistryError>>,
    ) -> Result<T, RegistryError> {
        let ended = tokio::time::timeout_at(self.at, work).await;
        ended.unwrap_or_else(|_| Err(RegistryError::TooSlow { what: what(), allowed: self.allowed }))
    }

    /// Whether there is time left after a pause.
    pub(super) fn leaves(&self, pause: Duration) -> bool {
        Instant::now() + pause < self.at
    }
}
