//! The deadline and cancellation of making one proposal's commit.

use std::time::{Duration, Instant};

use crate::git::error::SyncError;
use crate::git::mirror::Mirror;
use crate::update::Interrupt;

/// How often the cancellation is looked up: it takes locks, and a small file takes less than a microsecond.
const INTERVAL: Duration = Duration::from_millis(20);

/// Tells planning and committing when to end.
pub(super) struct PlanDeadline<'m> {
    mirror: &'m Mirror,
    timeout: Duration,
    end: Instant,
    next_lookup: Instant,
    cancelled: Option<SyncError>,
}

impl<'m> PlanDeadline<'m> {
    /// Gives the work on a mirror so much time from now on.
    pub(super) fn new(mirror: &'m Mirror, timeout: Duration) -> Self {
        let now = Instant::now();
        Self { mirror, timeout, end: now + timeout, next_lookup: now, cancelled: None }
    }

    /// Says whether to go on.
    ///
    /// # Errors
    ///
    /// When the time is up, or the work was cancelled.
    pub(super) fn check(&mut self) -> Result<(), Interrupt> {
        let now = Instant::now();
        if now >= self.next_lookup {
            self.next_lookup = now + INTERVAL;
            self.cancelled = self.mirror.check_cancelled().err();
        }
        if self.cancelled.is_some() {
            Err(Interrupt::Cancelled)
        } else if now >= self.end {
            Err(Interrupt::TimedOut { timeout: self.timeout })
        } else {
            Ok(())
        }
    }

    /// Why the work was cancelled, if it was.
    pub(super) fn into_cancelled(self) -> Option<SyncError> {
        self.cancelled
    }
}
