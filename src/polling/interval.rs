//! How often digests are looked up where nobody says otherwise.

use std::time::Duration;

use tagboat_api::GoDuration;

/// The variable that says so.
pub const VARIABLE: &str = "UPDATE_POLLING_INTERVAL";

/// The interval where nobody says anything of use.
const DEFAULT: Duration = Duration::from_secs(12 * 3600);

/// How often digests are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollingInterval {
    /// Never, whatever a policy asks for.
    Disabled,
    /// This often, where a policy does not say.
    Every(Duration),
}

impl Default for PollingInterval {
    fn default() -> Self {
        Self::Every(DEFAULT)
    }
}

impl PollingInterval {
    /// Reads the value of a flag or variable that is called `source`; with it comes a sentence where that is not what it
    /// should be.
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
                (Self::default(), Some(format!("{source} cannot be used, and {default} counts: {error}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_a_duration_or_nought() {
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
            let (interval, words) = PollingInterval::read(VARIABLE, value);
            assert_eq!((interval, words.is_none()), (expected, is_good), "{value:?}");
        }
        assert_eq!(
            PollingInterval::read(VARIABLE, Some("abc")).1.unwrap(),
            "UPDATE_POLLING_INTERVAL cannot be used, and 12h0m0s counts: `abc` is not a duration: expected numbers, \
             each with a unit of ms, s, m or h, such as 1m30s"
        );
    }
}
