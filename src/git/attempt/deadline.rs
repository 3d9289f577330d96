//! The deadline and cancellation of making one proposal's commit.

use std::time::{Duration, Instant};

use crate::git::error::SyncError;
use crate::git::mirror::Mirror;
use crate::update::Interrupt;

/// The interval between checks for cancellation.
/// A check takes locks, and a small file takes less than a microsecond to plan.
const INTERVAL: Duration = Duration::from_millis(20);

/// The deadline of planning and committing, with cancellation.
pub(in crate::git) struct PlanDeadline<'m> {
    mirror: &'m Mirror,
    timeout: Duration,
    end: Instant,
    next_lookup: Instant,
    cancelled: Option<SyncError>,
}

impl<'m> PlanDeadline<'m> {
    /// Creates a deadline for work on a mirror that may take `timeout` from now.
    pub(in crate::git) fn new(mirror: &'m Mirror, timeout: Duration) -> Self {
        let now = Instant::now();
        Self { mirror, timeout, end: now + timeout, next_lookup: now, cancelled: None }
    }

    /// Checks that the work may go on.
    ///
    /// # Errors
    ///
    /// If the deadline has passed, or the work was cancelled.
    pub(in crate::git) fn check(&mut self) -> Result<(), Interrupt> {
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

    /// Returns the error of the cancellation, if there was one.
    pub(in crate::git) fn into_cancelled(self) -> Option<SyncError> {
        self.cancelled
    }
}
