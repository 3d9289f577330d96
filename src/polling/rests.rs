//! Circuit breakers: a registry in trouble is left alone for longer and longer, whichever of its tags is due.
//!
//! Registries are named with the route and the login by which they are asked, so that no tenant's failures are another's.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::interval;

/// From how many registries on those are forgotten that may be asked again.
const MANY: usize = 1024;

/// The registries in trouble, by name.
#[derive(Debug, Default)]
pub(super) struct Rests(BTreeMap<String, Rest>);

#[derive(Debug)]
struct Rest {
    /// Looks in a row at which the registry was to blame.
    failures: u32,
    /// When that was last.
    failed_at: Timestamp,
    /// Until when nothing is asked.
    until: Timestamp,
    /// Until when the registry itself wants that.
    wanted: Timestamp,
    /// When it was last tried.
    tried_at: Option<Timestamp>,
}

impl Rests {
    /// Whether no registry is in trouble.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Until when a registry is left alone, if it is in trouble. A moment that is over is that of a trial.
    pub(super) fn until(&self, registry: &str) -> Option<Timestamp> {
        Some(self.0.get(registry)?.until)
    }

    /// The same where the trouble is no older than `since`.
    pub(super) fn until_since(&self, registry: &str, since: Timestamp) -> Option<Timestamp> {
        Some(self.0.get(registry).filter(|rest| rest.failed_at >= since)?.until)
    }

    /// Takes note that a registry in trouble is tried. The others wait for what comes of it, and no longer than if it fails.
    pub(super) fn try_out(&mut self, registry: &str, interval: Duration, now: Timestamp) {
        if let Some(rest) = self.0.get_mut(registry) {
            rest.grow(interval, now);
            rest.tried_at = Some(now);
        }
    }

    /// Takes note that the trial of that moment told nothing of the registry, so that another may follow.
    pub(super) fn call_off(&mut self, registry: &str, tried_at: Timestamp, now: Timestamp) {
        if let Some(rest) = self.0.get_mut(registry).filter(|rest| rest.tried_at == Some(tried_at)) {
            rest.failures = rest.failures.saturating_sub(1);
            rest.until = rest.wanted.max(now);
            rest.tried_at = None;
        }
    }

    /// Takes note that a registry was to blame for a look that failed, and says until when it is left alone.
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

    /// Takes note that a registry answered. It is left alone no longer, unless it wanted that.
    pub(super) fn answered(&mut self, registry: &str, now: Timestamp) {
        let Some(rest) = self.0.get_mut(registry) else { return };
        (rest.failures, rest.until) = (0, rest.wanted);
        if rest.until <= now {
            self.0.remove(registry);
        }
    }
}

impl Rest {
    /// Begins the next wait, if the one before is over. Of many looks that fail at the same time one counts.
    fn grow(&mut self, interval: Duration, now: Timestamp) {
        if self.until <= now {
            self.failures = self.failures.saturating_add(1);
            self.until = after(now, interval::after_failure(interval, self.failures, None));
        }
    }
}

/// A moment so long after another one.
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
        // A look that began before and failed later is of the same trouble.
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
