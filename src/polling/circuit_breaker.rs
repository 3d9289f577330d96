//! Circuit breakers: a failing registry is not polled, with exponential backoff.
//!
//! When a breaker's wait is over, one lookup probes the registry (half open), whichever tag is due. Registries are
//! keyed with the route and the login of their requests, so no tenant's failures open the breaker of another.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::interval;

/// The number of breakers from which those that no longer wait are dropped.
const SWEEP_AT: usize = 1024;

/// The open circuit breakers, by registry.
#[derive(Debug, Default)]
pub(super) struct CircuitBreakers(BTreeMap<String, Breaker>);

/// The circuit breaker of one registry.
#[derive(Debug)]
struct Breaker {
    /// The number of consecutive failures of the registry.
    failures: u32,
    /// The time of the last failure.
    failed_at: Timestamp,
    /// The time until which the registry is not polled.
    ///
    /// At that time its breaker is half open.
    open_until: Timestamp,
    /// The end of the registry's own `Retry-After`.
    retry_after_until: Timestamp,
    /// The time of the probe in flight.
    probed_at: Option<Timestamp>,
}

impl CircuitBreakers {
    /// Returns `true` if no breaker is open.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the time until which a registry is not polled.
    ///
    /// A time in the past means that the breaker is half open.
    pub(super) fn open_until(&self, registry: &str) -> Option<Timestamp> {
        Some(self.0.get(registry)?.open_until)
    }

    /// Like [`Self::open_until`], for breakers whose last failure is no older than `since`.
    pub(super) fn open_until_since(&self, registry: &str, since: Timestamp) -> Option<Timestamp> {
        Some(self.0.get(registry).filter(|breaker| breaker.failed_at >= since)?.open_until)
    }

    /// Records that a registry is probed.
    ///
    /// Other lookups wait for the result, at most as long as after a failed probe.
    pub(super) fn probe(&mut self, registry: &str, interval: Duration, now: Timestamp) {
        if let Some(breaker) = self.0.get_mut(registry) {
            breaker.extend(interval, now);
            breaker.probed_at = Some(now);
        }
    }

    /// Aborts the probe that started at that time, so that another may follow.
    ///
    /// It told nothing about the registry.
    pub(super) fn abort_probe(&mut self, registry: &str, probed_at: Timestamp, now: Timestamp) {
        if let Some(breaker) = self.0.get_mut(registry).filter(|breaker| breaker.probed_at == Some(probed_at))
        {
            breaker.failures = breaker.failures.saturating_sub(1);
            breaker.open_until = breaker.retry_after_until.max(now);
            breaker.probed_at = None;
        }
    }

    /// Records a failure of a registry.
    ///
    /// Returns the time until which it is not polled.
    pub(super) fn record_failure(
        &mut self,
        registry: &str,
        interval: Duration,
        retry_after: Option<Duration>,
        now: Timestamp,
    ) -> Timestamp {
        if self.0.len() >= SWEEP_AT {
            self.0.retain(|_, breaker| breaker.open_until > now);
        }
        let begin =
            Breaker { failures: 0, failed_at: now, open_until: now, retry_after_until: now, probed_at: None };
        let breaker = self.0.entry(registry.to_owned()).or_insert(begin);
        breaker.failed_at = now;
        breaker.extend(interval, now);
        breaker.retry_after_until =
            breaker.retry_after_until.max(after(now, retry_after.unwrap_or_default()));
        breaker.open_until = breaker.open_until.max(breaker.retry_after_until);
        breaker.open_until
    }

    /// Closes the breaker of a registry that responded, unless its `Retry-After` is not over.
    pub(super) fn record_success(&mut self, registry: &str, now: Timestamp) {
        let Some(breaker) = self.0.get_mut(registry) else { return };
        (breaker.failures, breaker.open_until) = (0, breaker.retry_after_until);
        if breaker.open_until <= now {
            self.0.remove(registry);
        }
    }
}

impl Breaker {
    /// Starts the next backoff, if the one before is over. Of concurrent failures one counts.
    fn extend(&mut self, interval: Duration, now: Timestamp) {
        if self.open_until <= now {
            self.failures = self.failures.saturating_add(1);
            self.open_until = after(now, interval::after_failure(interval, self.failures, None));
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
    fn backoff_grows_with_each_probe_and_not_with_each_tag() {
        let mut breakers = CircuitBreakers::default();
        for _ in 0..20 {
            assert_eq!(breakers.record_failure("r", HOUR, None, at(0)), at(30));
        }
        // A lookup that started before and failed later belongs to the same failure.
        assert_eq!(breakers.record_failure("r", HOUR, None, at(5)), at(30));
        assert_eq!((breakers.open_until("r"), breakers.open_until("other")), (Some(at(30)), None));
        assert_eq!(
            (breakers.open_until_since("r", at(5)), breakers.open_until_since("r", at(6))),
            (Some(at(30)), None)
        );
        let mut now = 30;
        for wait in [60, 120, 240, 480, 900, 900] {
            breakers.probe("r", HOUR, at(now));
            breakers.probe("r", HOUR, at(now));
            assert_eq!(breakers.open_until("r"), Some(at(now + wait)));
            assert_eq!(breakers.record_failure("r", HOUR, None, at(now + 5)), at(now + wait));
            now += wait;
        }
        breakers.record_success("r", at(now));
        assert_eq!(breakers.open_until("r"), None);
        breakers.probe("r", HOUR, at(now));
        assert_eq!(breakers.open_until("r"), None, "a closed breaker needs no probe");
    }

    #[test]
    fn an_aborted_probe_counts_for_nothing() {
        let mut breakers = CircuitBreakers::default();
        breakers.record_failure("r", HOUR, None, at(0));
        breakers.abort_probe("r", at(0), at(1));
        assert_eq!(breakers.open_until("r"), Some(at(30)), "that was no probe");
        for now in [30, 31, 32] {
            breakers.probe("r", HOUR, at(now));
            assert_eq!(breakers.open_until("r"), Some(at(now + 60)));
            breakers.abort_probe("r", at(now), at(now));
            assert_eq!(breakers.open_until("r"), Some(at(now)));
        }
        breakers.probe("r", HOUR, at(40));
        assert_eq!(breakers.record_failure("r", HOUR, Some(Duration::from_secs(90)), at(41)), at(131));
        breakers.abort_probe("r", at(40), at(42));
        assert_eq!(breakers.open_until("r"), Some(at(131)), "Retry-After counts");
    }

    #[test]
    fn retry_after_counts_even_after_a_success() {
        let mut breakers = CircuitBreakers::default();
        assert_eq!(breakers.record_failure("r", HOUR, Some(Duration::from_secs(300)), at(0)), at(300));
        assert_eq!(breakers.record_failure("r", HOUR, Some(Duration::from_secs(10)), at(1)), at(300));
        breakers.record_success("r", at(2));
        assert_eq!(breakers.open_until("r"), Some(at(300)));
        breakers.record_success("r", at(300));
        assert_eq!(breakers.open_until("r"), None);
    }
}
