//! The failure of the host that is reported, and the time of the next attempt.

use tokio::time::Instant;

use crate::backoff::Backoff;

/// An operation that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Finding out the kind of the host, and reading its state.
    Read,
    /// Staging an image.
    Stage,
    /// Beginning a reboot.
    Reboot,
}

/// The failures in a row, and the one that is reported.
///
/// The delay grows until the operation that failed last has succeeded.
#[derive(Debug)]
pub(super) struct Retries {
    backoff: Backoff,
    failures: u32,
    last: Option<Operation>,
    current: Option<Failure>,
}

/// A failure, until the next attempt.
#[derive(Debug)]
struct Failure {
    message: String,
    /// The time of the next attempt; `None`: there is none.
    until: Option<Instant>,
}

impl Retries {
    pub(super) fn new(backoff: Backoff) -> Self {
        Self { backoff, failures: 0, last: None, current: None }
    }

    /// Returns the failure to report.
    pub(super) fn message(&self) -> Option<&str> {
        self.current.as_ref().map(|failure| failure.message.as_str())
    }

    /// Returns the time of the next attempt after a failure.
    pub(super) fn next(&self) -> Option<Instant> {
        self.current.as_ref()?.until
    }

    /// Records a failure, with an attempt after a delay.
    pub(super) fn fail(&mut self, operation: Operation, message: String, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        self.last = Some(operation);
        self.current = Some(Failure { message, until: Some(now + self.backoff.after(self.failures)) });
    }

    /// Records a failure without a further attempt.
    pub(super) fn give_up(&mut self, message: String) {
        self.current = Some(Failure { message, until: None });
    }

    /// Returns `true` if there is a failure without a further attempt.
    pub(super) fn is_given_up(&self) -> bool {
        self.current.as_ref().is_some_and(|failure| failure.until.is_none())
    }

    /// Records a success.
    pub(super) fn succeed(&mut self, operation: Operation) {
        if self.last == Some(operation) {
            self.forget();
        }
    }

    /// Ends the delay, if it is over, and returns `true` then.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let is_over = self.next().is_some_and(|until| until <= now);
        if is_over {
            self.current = None;
        }
        is_over
    }

    /// Forgets all failures.
    pub(super) fn forget(&mut self) {
        (self.failures, self.last, self.current) = (0, None, None);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn delays_double_until_the_failed_operation_succeeds() {
        let (first, longest) = (Duration::from_secs(5), Duration::from_secs(320));
        let mut retries = Retries::new(Backoff { first, longest });
        let start = Instant::now();
        let mut after_failure = |operation| {
            retries.fail(operation, "it failed".to_owned(), start);
            let until = retries.next().unwrap();
            assert!(
                !retries.is_due(until - Duration::from_millis(1)) && retries.message() == Some("it failed")
            );
            assert!(retries.is_due(until) && retries.message().is_none() && !retries.is_due(until));
            // The host is read before each attempt.
            retries.succeed(Operation::Read);
            (until - start).as_secs()
        };
        let delays: Vec<u64> = (0..8).map(|_| after_failure(Operation::Stage)).collect();
        assert_eq!(delays, [5, 10, 20, 40, 80, 160, 320, 320]);
        assert_eq!([after_failure(Operation::Read), after_failure(Operation::Read)], [320, 5]);
        retries.fail(Operation::Stage, String::new(), start);
        retries.succeed(Operation::Stage);
        assert_eq!((retries.message(), retries.next()), (None, None));
    }

    #[test]
    fn a_failure_that_is_given_up_stays_until_it_is_forgotten() {
        let mut retries = Retries::new(Backoff { first: Duration::ZERO, longest: Duration::ZERO });
        retries.give_up("it is over".to_owned());
        assert!(!retries.is_due(Instant::now() + Duration::from_secs(1_000_000)));
        assert_eq!((retries.message(), retries.next()), (Some("it is over"), None));
        retries.forget();
        assert_eq!(retries.message(), None);
    }
}
