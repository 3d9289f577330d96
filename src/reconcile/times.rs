//! Bounds on the times that objects name.
//!
//! Flux accepts any timeout and any interval, so a time beyond these bounds is no error: it counts as the bound.

use std::time::Duration;

/// The shortest interval. Zero stays zero and means that only events start a run.
pub const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// Bounds on the times that objects name.
///
/// Without a longest timeout, as in `tagboat run`, timeouts count as given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeBounds {
    /// The longest timeout, also of one derived from an interval.
    pub longest_timeout: Duration,
}

impl Default for TimeBounds {
    fn default() -> Self {
        Self { longest_timeout: Duration::MAX }
    }
}

impl TimeBounds {
    /// Limits a timeout to the longest one.
    #[must_use]
    pub fn timeout(self, given: Duration) -> Duration {
        given.min(self.longest_timeout)
    }
}

/// Raises an interval to the shortest one.
#[must_use]
pub fn interval(given: Duration) -> Duration {
    if given.is_zero() { given } else { given.max(SHORTEST_INTERVAL) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_capped_at_the_maximum() {
        let bounds = TimeBounds { longest_timeout: Duration::from_secs(600) };
        for (given, expected) in [(1, 1), (600, 600), (601, 600), (6_000_000, 600)] {
            assert_eq!(bounds.timeout(Duration::from_secs(given)), Duration::from_secs(expected));
        }
        let long = Duration::from_secs(6_000_000);
        assert_eq!(TimeBounds::default().timeout(long), long);
    }

    #[test]
    fn an_interval_below_a_second_counts_as_one() {
        for (given, expected) in [(0, 0), (1, 1_000), (999, 1_000), (1_000, 1_000), (60_000, 60_000)] {
            assert_eq!(interval(Duration::from_millis(given)), Duration::from_millis(expected));
        }
    }
}
