//! Deadlines of requests. Waits for capacity of this process postpone them.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until, timeout};

use super::error::HttpError;
use crate::tenancy::Capacity;

/// The shortest time after which a postponed deadline is checked again.
const RECHECK: Duration = Duration::from_millis(100);

/// Measures the time in which requests wait for memory or a slot.
///
/// Clones are the same clock.
#[derive(Debug, Clone, Default)]
pub(crate) struct WaitClock(Arc<Mutex<Waits>>);

#[derive(Debug, Default)]
struct Waits {
    /// The sum of waits that have ended. Overlapping waits count once.
    ended: Duration,
    running: usize,
    /// The start of the waits in progress.
    since: Option<Instant>,
}

/// A wait, which ends when this is dropped.
struct Wait<'c>(&'c WaitClock);

/// The time at which a piece of work must be done.
///
/// Waits for capacity, measured by the same clock, postpone it.
#[derive(Debug, Clone)]
pub(crate) struct Deadline {
    clock: WaitClock,
    /// The time that the clock showed at `begin`.
    waited: Duration,
    begin: Instant,
    allowed: Duration,
    reason: Reason,
    /// The rest of the sentence that says that the timeout is over.
    advice: &'static str,
}

/// The reason for a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// The timeout of the object.
    Timeout,
    /// Memory is held that others may wait for.
    Memory,
}

impl WaitClock {
    fn waited(&self) -> Duration {
        let waits = self.0.lock();
        waits.ended + waits.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn begin_wait(&self) -> Wait<'_> {
        let mut waits = self.0.lock();
        waits.running += 1;
        waits.since.get_or_insert_with(Instant::now);
        drop(waits);
        Wait(self)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut waits = self.0.0.lock();
        waits.running -= 1;
        if waits.running == 0
            && let Some(since) = waits.since.take()
        {
            waits.ended += since.elapsed();
        }
    }
}

impl Deadline {
    /// Returns the deadline of work that begins now, with a clock of its own.
    pub(crate) fn within(allowed: Duration) -> Self {
        Self::with_clock(&WaitClock::default(), allowed)
    }

    /// Returns the deadline of work that begins now, measured by a shared clock.
    pub(crate) fn with_clock(clock: &WaitClock, allowed: Duration) -> Self {
        let clock = clock.clone();
        let (begin, reason) = (Instant::now(), Reason::Timeout);
        Self { waited: clock.waited(), clock, begin, allowed, reason, advice: "" }
    }

    /// Returns the same deadline with advice for when it is over.
    pub(crate) fn advising(self, advice: &'static str) -> Self {
        Self { advice, ..self }
    }

    /// Returns the deadline of the same work for a caller with another timeout.
    pub(crate) fn with_timeout(&self, allowed: Duration) -> Self {
        Self { allowed, ..self.clone() }
    }

    /// Returns the deadline of work that holds memory from now on, if that is earlier.
    pub(crate) fn holding_memory(&self, allowed: Duration) -> Self {
        if self.has_time_for(allowed) {
            Self { reason: Reason::Memory, ..Self::with_clock(&self.clock, allowed) }
        } else {
            self.clone()
        }
    }

    /// Waits for the deadline or the end of the work, whichever comes first.
    ///
    /// # Errors
    ///
    /// If the work fails, or the deadline comes first; `operation` names the work in that error.
    pub(crate) async fn limit<T, E: From<HttpError>>(
        &self,
        operation: impl FnOnce() -> String,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let mut work = pin!(work);
        let mut until = self.at();
        loop {
            tokio::select! {
                biased;
                result = &mut work => return result,
                () = sleep_until(until) => {}
            }
            let (at, now) = (self.at(), Instant::now());
            if at <= now {
                return Err(self.error(operation()).into());
            }
            until = at.max(now + RECHECK);
        }
    }

    /// Waits for memory or a slot, which postpones all deadlines of the same clock.
    ///
    /// # Errors
    ///
    /// If nothing is free for too long.
    pub(crate) async fn wait_for<T>(&self, capacity: impl Future<Output = T>) -> Result<T, HttpError> {
        let _wait = self.clock.begin_wait();
        let granted = timeout(Capacity::MAX_WAIT, capacity).await;
        granted.map_err(|_| HttpError::NoCapacity)
    }

    /// Returns `true` if the deadline is later than the end of a pause.
    pub(crate) fn has_time_for(&self, pause: Duration) -> bool {
        Instant::now() + pause < self.at()
    }

    /// Returns the deadline, as far as it is known now.
    fn at(&self) -> Instant {
        self.begin + self.allowed + self.clock.waited().saturating_sub(self.waited)
    }

    fn error(&self, operation: String) -> HttpError {
        let Self { allowed, advice, .. } = *self;
        match self.reason {
            Reason::Timeout => HttpError::Timeout { operation, allowed, advice },
            Reason::Memory => HttpError::MemoryTimeout { operation, allowed },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::sleep;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    async fn error_of(deadline: &Deadline, work: impl Future<Output = Result<(), HttpError>>) -> String {
        deadline.limit(|| "the work".to_owned(), work).await.unwrap_err().to_string()
    }

    /// The registry was blamed for a wait for memory that other tenants held.
    #[tokio::test(start_paused = true)]
    async fn a_wait_for_memory_uses_up_no_time_of_the_registry() {
        let (begin, deadline) = (Instant::now(), Deadline::within(MINUTE));
        let work = async {
            sleep(MINUTE / 2).await;
            deadline.wait_for(sleep(MINUTE * 5)).await?;
            // As the request within the listing.
            deadline.limit(|| "the request".to_owned(), pending()).await
        };
        let error = error_of(&deadline, work).await;
        assert!(error.starts_with("the request: no complete response within 60s"), "{error}");
        let took = begin.elapsed();
        assert!((MINUTE * 6..MINUTE * 6 + MINUTE / 60).contains(&took), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn waits_at_the_same_time_count_once_and_for_all_deadlines_of_the_clock() {
        let clock = WaitClock::default();
        let deadline = Deadline::with_clock(&clock, MINUTE);
        let shared = deadline.with_timeout(MINUTE * 2);
        let (first, second) =
            tokio::join!(deadline.wait_for(sleep(MINUTE * 3)), shared.wait_for(sleep(MINUTE * 4)));
        first.and(second).unwrap();
        let later = Deadline::with_clock(&clock, MINUTE);
        for (deadline, left) in [(deadline, MINUTE), (shared, MINUTE * 2), (later, MINUTE)] {
            assert!(deadline.has_time_for(left - Duration::from_secs(1)) && !deadline.has_time_for(left));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_takes_too_long_ends_with_a_sentence_about_memory() {
        let (begin, deadline) = (Instant::now(), Deadline::within(MINUTE));
        let error = error_of(&deadline, deadline.wait_for(pending())).await;
        assert!(error.starts_with("no memory was free"), "{error}");
        assert!(begin.elapsed() >= Capacity::MAX_WAIT);
    }

    /// A login was told to raise the timeout of the object.
    #[tokio::test(start_paused = true)]
    async fn the_advice_is_that_of_the_caller() {
        for (deadline, expected) in [
            (Deadline::within(MINUTE), "the work: no complete response within 60s"),
            (
                Deadline::within(MINUTE).advising("; raise it").with_timeout(MINUTE * 2),
                "the work: no complete response within 120s; raise it",
            ),
        ] {
            assert_eq!(error_of(&deadline, pending()).await, expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_holds_memory_has_less_time() {
        let (begin, deadline) = (Instant::now(), Deadline::within(MINUTE * 10));
        let holding = deadline.holding_memory(MINUTE);
        let error = error_of(&deadline, holding.limit(|| "the list".to_owned(), pending())).await;
        assert!(error.starts_with("the list: the large response was not complete within 60s"), "{error}");
        assert!(begin.elapsed() < MINUTE * 2);
        // The timeout stays if it is earlier.
        let error = error_of(&deadline.with_timeout(MINUTE * 2).holding_memory(MINUTE * 5), pending()).await;
        assert!(error.starts_with("the work: no complete response within 120s"), "{error}");
    }
}
