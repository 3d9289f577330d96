//! The polling interval of digests, and the backoff after failed lookups.

use std::time::Duration;

use crate::backoff::Backoff;
use tagboat_api::GoDuration;

/// The environment variable with the interval.
pub const VARIABLE: &str = "UPDATE_POLLING_INTERVAL";

/// The default interval.
const DEFAULT: Duration = Duration::from_secs(12 * 3600);

/// The interval between two lookups of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollingInterval {
    /// Digests are never polled, even if a policy asks for it.
    Disabled,
    /// The default interval of policies.
    Every(Duration),
}

impl Default for PollingInterval {
    fn default() -> Self {
        Self::Every(DEFAULT)
    }
}

impl PollingInterval {
    /// Parses the value of a flag or variable.
    ///
    /// `source` names it in the warning, which is returned with the default interval if the value is invalid.
    pub fn read(source: &str, value: Option<&str>) -> (Self, Option<String>) {
        let Some(text) = value.map(str::trim).filter(|text| !text.is_empty()) else {
            return (Self::default(), None);
        };
        if text == "0" {
            return (Self::Disabled, None);
        }
        match GoDuration::new(text).to_duration() {
            Ok(interval) if interval.is_zero() => (Self::Disabled, None),
            Ok(interval) => (Self::Every(interval), None),
            Err(error) => {
                let default = GoDuration::from(DEFAULT);
                (Self::default(), Some(format!("{source} is invalid, using {default}: {error}")))
            }
        }
    }
}

/// The backoff after failures: a registry that recovers is noticed long before the interval ends.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(30), longest: Duration::from_secs(15 * 60) };

/// The shortest time between two lookups, even if a shorter interval is requested.
const SHORTEST: Duration = Duration::from_millis(100);

/// Returns the wait after a successful lookup: the interval with jitter of ±5 %.
///
/// `jitter` is from 0 to 1.
pub(super) fn after_success(interval: Duration, jitter: f64) -> Duration {
    interval.max(SHORTEST).mul_f64(0.95 + jitter.clamp(0.0, 1.0) / 10.0)
}

/// Returns the backoff after so many failures in a row, at least `retry_after`.
pub(super) fn after_failure(interval: Duration, failures: u32, retry_after: Option<Duration>) -> Duration {
    let backoff = Backoff { first: BACKOFF.first.min(interval / 2), ..BACKOFF };
    backoff.after(failures).min(interval).max(SHORTEST).max(retry_after.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_a_duration_or_zero() {
        let hours = |hours: u64| PollingInterval::Every(Duration::from_secs(hours * 3600));
        for (value, expected, is_good) in [
            (None, hours(12), true),
            (Some(""), hours(12), true),
            (Some("0"), PollingInterval::Disabled, true),
            (Some("0s"), PollingInterval::Disabled, true),
            (Some(" 0h "), PollingInterval::Disabled, true),
            (Some("6h"), hours(6), true),
            (Some("180h"), hours(180), true),
            (Some("90m"), PollingInterval::Every(Duration::from_secs(5400)), true),
            (Some("abc"), hours(12), false),
            (Some("-1h"), hours(12), false),
            (Some("-0"), hours(12), false),
            (Some("6"), hours(12), false),
        ] {
            let (interval, warning) = PollingInterval::read(VARIABLE, value);
            assert_eq!((interval, warning.is_none()), (expected, is_good), "{value:?}");
        }
        assert_eq!(
            PollingInterval::read(VARIABLE, Some("abc")).1.unwrap(),
            "UPDATE_POLLING_INTERVAL is invalid, using 12h0m0s: `abc` is not a duration: expected numbers, \
             each with a unit of ms, s, m or h, such as 1m30s"
        );
    }

    #[test]
    fn a_success_is_followed_by_the_interval_more_or_less() {
        let hour = Duration::from_secs(3600);
        for (jitter, seconds) in [(0.0, 3420), (0.5, 3600), (1.0, 3780)] {
            assert_eq!(after_success(hour, jitter).as_secs(), seconds);
        }
        assert!(after_success(Duration::ZERO, 0.5) >= Duration::from_millis(95));
    }

    #[test]
    fn failures_are_tried_again_long_before_the_interval_ends() {
        let (half_day, seconds) = (Duration::from_secs(12 * 3600), Duration::from_secs);
        for (failures, wait) in [(1, 30), (2, 60), (3, 120), (5, 480), (6, 900), (7, 900), (1000, 900)] {
            assert_eq!(after_failure(half_day, failures, None), seconds(wait), "{failures}");
        }
        for (interval, failures, wait) in [(10, 1, 5), (10, 2, 10), (10, 3, 10), (60, 1, 30)] {
            assert_eq!(after_failure(seconds(interval), failures, None), seconds(wait));
        }
        assert_eq!(after_failure(half_day, 1, Some(seconds(60))), seconds(60));
        assert_eq!(after_failure(half_day, 3, Some(seconds(60))), seconds(120));
        assert_eq!(after_failure(seconds(10), 1, Some(seconds(60))), seconds(60));
    }
}
