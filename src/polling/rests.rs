//! Circuit breakers: a failing registry is not polled, with exponential backoff.
//!
//! When a breaker's wait is over, one lookup probes the registry (half open), whichever tag is due. Registries are
//! keyed with the route and the login of their requests, so no tenant's failures open the breaker of another.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::interval;

/// The number of breakers from which those that no longer wait are dropped.
const MANY: usize = 1024;

/// The open circuit breakers, by registry.
#[derive(Debug, Default)]
pub(super) struct Rests(BTreeMap<String, Rest>);

#[derive(Debug)]
struct Rest {
    /// The number of consecutive failures of the registry.
    failures: u32,
    /// The time of the last failure.
    failed_at: Timestamp,
    /// The time until which the registry is not polled; at that time it is half open.
    until: Timestamp,
    /// The end of the registry's own `Retry-After`.
    wanted: Timestamp,
    /// The time of the probe in flight.
    tried_at: Option<Timestamp>,
}

impl Rests {
    /// Returns `true` if no breaker is open.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the time until which a registry is not polled.
    ///
    /// A time in the past means that the breaker is half open.
    pub(super) fn until(&self, registry: &str) -> Option<Timestamp> {
        Some(self.0.get(registry)?.until)
    }

    /// Like [`Self::until`], for breakers whose last failure is no older than `since`.
    pub(super) fn until_since(&self, registry: &str, since: Timestamp) -> Option<Timestamp> {
        Some(self.0.get(registry).filter(|rest| rest.failed_at >= since)?.until)
    }

    /// Records that a registry is probed.
    ///
    /// Other lookups wait for the result, at most as long as after a failed probe.
    pub(super) fn try_out(&mut self, registry: &str, interval: Duration, now: Timestamp) {
        if let Some(rest) = self.0.get_mut(registry) {
            rest.grow(interval, now);
            rest.tried_at = Some(now);
        }
    }

    /// Aborts the probe that started at that time, so that another may follow.
    ///
    /// It told nothing about the registry.
    pub(super) fn call_off(&mut self, registry: &str, tried_at: Timestamp, now: Timestamp) {
        if let Some(rest) = self.0.get_mut(registry).filter(|rest| rest.tried_at == Some(tried_at)) {
            rest.failures = rest.failures.saturating_sub(1);
            rest.until = rest.wanted.max(now);
            rest.tried_at = None;
        }
    }

    /// Records a failure of a registry.
    ///
    /// Returns the time until which it is not polled.
    pub(super) fn failed(
        &mut self,
        registry: &str,
        interval: Duration,
        retry_after: Option<Duration>,
        now: Timestamp,
    ) -> Timestamp {
        if self.0.len() >= MANY {
            self.0.retain(|_, rest| rest.until > now);
        }
        let begin = Rest { failures: 0, failed_at: now, until: now, wanted: now, tried_at: None };
        let rest = self.0.entry(registry.to_owned()).or_insert(begin);
        rest.failed_at = now;
        rest.grow(interval, now);
        rest.wanted = rest.wanted.max(after(now, retry_after.unwrap_or_default()));
        rest.until = rest.until.max(rest.wanted);
        rest.until
    }

    /// Closes the breaker of a registry that responded, unless its `Retry-After` is not over.
    pub(super) fn answered(&mut self, registry: &str, now: Timestamp) {
        let Some(rest) = self.0.get_mut(registry) else { return };
        (rest.failures, rest.until) = (0, rest.wanted);
        if rest.until <= now {
            self.0.remove(registry);
        }
    }
}

impl Rest {
    /// Starts the next backoff, if the one before is over. Of concurrent failures one counts.
    fn grow(&mut self, interval: Duration, now: Timestamp) {
        if self.until <= now {
            self.failures = self.failures.saturating_add(1);
            self.until = after(now, interval::after_failure(interval, self.failures, None));
        }
    }
}

/// Returns the time after a wait.
pub(super) fn after(now: Timestamp, wait: Duration) -> Timestamp {
    now.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_795_000_000 + second).unwrap()
    }

    #[test]
    fn waits_grow_with_each_trial_and_not_with_each_tag() {
        let mut rests = Rests::default();
        for _ in 0..20 {
            assert_eq!(rests.failed("r", HOUR, None, at(0)), at(30));
        }
        // A lookup that started before and failed later belongs to the same failure.
        assert_eq!(rests.failed("r", HOUR, None, at(5)), at(30));
        assert_eq!((rests.until("r"), rests.until("other")), (Some(at(30)), None));
        assert_eq!((rests.until_since("r", at(5)), rests.until_since("r", at(6))), (Some(at(30)), None));
        let mut now = 30;
        for wait in [60, 120, 240, 480, 900, 900] {
            rests.try_out("r", HOUR, at(now));
            rests.try_out("r", HOUR, at(now));
            assert_eq!(rests.until("r"), Some(at(now + wait)));
            assert_eq!(rests.failed("r", HOUR, None, at(now + 5)), at(now + wait));
            now += wait;
        }
        rests.answered("r", at(now));
        assert_eq!(rests.until("r"), None);
        rests.try_out("r", HOUR, at(now));
        assert_eq!(rests.until("r"), None, "who is not in trouble needs no trial");
    }

    #[test]
    fn a_trial_that_tells_nothing_is_as_good_as_none() {
        let mut rests = Rests::default();
        rests.failed("r", HOUR, None, at(0));
        rests.call_off("r", at(0), at(1));
        assert_eq!(rests.until("r"), Some(at(30)), "that was no trial");
        for now in [30, 31, 32] {
            rests.try_out("r", HOUR, at(now));
            assert_eq!(rests.until("r"), Some(at(now + 60)));
            rests.call_off("r", at(now), at(now));
            assert_eq!(rests.until("r"), Some(at(now)));
        }
        rests.try_out("r", HOUR, at(40));
        assert_eq!(rests.failed("r", HOUR, Some(Duration::from_secs(90)), at(41)), at(131));
        rests.call_off("r", at(40), at(42));
        assert_eq!(rests.until("r"), Some(at(131)), "what the registry wants counts");
    }

    #[test]
    fn what_a_registry_wants_counts_though_it_answers_to_others() {
        let mut rests = Rests::default();
        assert_eq!(rests.failed("r", HOUR, Some(Duration::from_secs(300)), at(0)), at(300));
        assert_eq!(rests.failed("r", HOUR, Some(Duration::from_secs(10)), at(1)), at(300));
        rests.answered("r", at(2));
        assert_eq!(rests.until("r"), Some(at(300)));
        rests.answered("r", at(300));
        assert_eq!(rests.until("r"), None);
    }
}
