//! Limits the trace events of an object, which record that nothing has changed.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::objects::ObjectName;

/// Limits the trace events of each object of a kind.
#[derive(Debug, Default)]
pub(super) struct TraceLimiter(Mutex<HashMap<ObjectName, Instant>>);

impl TraceLimiter {
    /// Returns whether a trace event is recorded.
    ///
    /// If so, the next one is only recorded after `interval`.
    pub(super) fn admits(&self, name: &ObjectName, interval: Duration, now: Instant) -> bool {
        let mut recorded = self.0.lock();
        if recorded.get(name).is_some_and(|last| now.duration_since(*last) < interval) {
            return false;
        }
        recorded.insert(name.clone(), now);
        true
    }

    /// Forgets a deleted object.
    pub(super) fn forget(&self, name: &ObjectName) {
        self.0.lock().remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_event_is_recorded_once_per_interval() {
        let (limiter, start) = (TraceLimiter::default(), Instant::now());
        let name = |name: &str| ObjectName { namespace: "n".to_owned(), name: name.to_owned() };
        for (one, minute, expected) in [
            ("a", 0, true),
            ("a", 1, false),
            ("b", 1, true),
            ("a", 4, false),
            ("a", 5, true),
            ("a", 9, false),
        ] {
            let now = start + Duration::from_secs(minute * 60);
            let admits = limiter.admits(&name(one), Duration::from_secs(300), now);
            assert_eq!(admits, expected, "{one} {minute}");
        }
        limiter.forget(&name("a"));
        assert!(limiter.admits(&name("a"), Duration::from_secs(300), start));
    }
}
