//! Durations in Go's notation, such as `1m30s`.

use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The schema's pattern of a duration.
pub const PATTERN: &str = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$";

/// The schema's pattern of a duration in a field that does not accept hours.
pub const PATTERN_WITHOUT_HOURS: &str = r"^([0-9]+(\.[0-9]+)?(ms|s|m))+$";

/// The units and their length in nanoseconds.
///
/// `ms` precedes `m`, so that it is not parsed as minutes.
const UNITS: [(&str, u128); 4] =
    [("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000), ("h", 3_600_000_000_000)];

/// The maximum duration in nanoseconds of Go, and so of Flux: about 292 years.
const MAX_NANOSECONDS: u128 = i64::MAX as u128;

/// A duration in Go's notation, stored as text.
///
/// Any text is accepted; [`GoDuration::to_duration`] validates it. So an invalid duration affects only its own
/// object, not the list that contains the object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GoDuration(String);

/// The error of a text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// The text is not a sequence of numbers with units.
    #[error("`{text}` is not a duration: expected numbers, each with a unit of ms, s, m or h, such as 1m30s")]
    Malformed {
        /// The text as it was written.
        text: String,
    },
    /// The text is not a sequence of numbers with units.
    ///
    /// Its field does not accept hours.
    #[error("`{text}` is not a duration: expected numbers, each with a unit of ms, s or m, such as 1m30s")]
    MalformedWithoutHours {
        /// The text as it was written.
        text: String,
    },
    /// The text begins with a sign.
    #[error("`{text}` is negative: expected numbers, each with a unit of ms, s or m, such as 1m30s")]
    Negative {
        /// The text as it was written.
        text: String,
    },
    /// The text has hours in a field that does not accept them.
    #[error("`{text}` counts hours, which this field does not take: write it in ms, s and m, such as 90m")]
    Hours {
        /// The text as it was written.
        text: String,
    },
    /// The duration exceeds Flux's maximum.
    #[error("`{text}` is longer than the longest possible duration, 292 years")]
    TooLong {
        /// The text as it was written.
        text: String,
    },
}

impl GoDuration {
    /// Wraps a text without validation.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses the duration.
    ///
    /// It accepts exactly the texts that match the schema's [`PATTERN`].
    pub fn to_duration(&self) -> Result<Duration, DurationError> {
        let text = self.0.as_str();
        let malformed = || DurationError::Malformed { text: text.to_owned() };
        let mut nanoseconds: u128 = 0;
        let mut rest = text;
        loop {
            let (value, after) = leading_term(rest).ok_or_else(malformed)?;
            nanoseconds = nanoseconds.saturating_add(value);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        if nanoseconds > MAX_NANOSECONDS {
            return Err(DurationError::TooLong { text: text.to_owned() });
        }
        let nanoseconds = u64::try_from(nanoseconds).expect("the longest duration fits 63 bits");
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// Parses the duration of a field whose pattern is [`PATTERN_WITHOUT_HOURS`].
    pub fn to_duration_without_hours(&self) -> Result<Duration, DurationError> {
        let duration = self.to_duration().map_err(|error| match error {
            DurationError::Malformed { text } => match text.strip_prefix('-') {
                Some(rest) if Self::new(rest).to_duration().is_ok() => DurationError::Negative { text },
                _ => DurationError::MalformedWithoutHours { text },
            },
            other => other,
        })?;
        if self.0.contains('h') {
            return Err(DurationError::Hours { text: self.0.clone() });
        }
        Ok(duration)
    }
}

impl From<Duration> for GoDuration {
    /// Formats a duration as Go does: `1h0m0s`, `50.873134479s`, `750ms`.
    fn from(duration: Duration) -> Self {
        let nanoseconds = duration.as_nanos();
        if nanoseconds == 0 {
            return Self("0s".to_owned());
        }
        if let Some((unit, length)) = [("ns", 1_000_u128), ("µs", 1_000_000), ("ms", 1_000_000_000)]
            .into_iter()
            .find(|(_, above)| nanoseconds < *above)
        {
            return Self(format!("{}{unit}", decimal(nanoseconds, length / 1_000)));
        }
        let (minutes, rest) = (nanoseconds / 60_000_000_000, nanoseconds % 60_000_000_000);
        let seconds = decimal(rest, 1_000_000_000);
        Self(match (minutes / 60, minutes % 60) {
            (0, 0) => format!("{seconds}s"),
            (0, minutes) => format!("{minutes}m{seconds}s"),
            (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
        })
    }
}

/// Formats a number of units as a decimal without trailing zeros.
///
/// The unit is a power of ten.
fn decimal(number: u128, unit: u128) -> String {
    let (whole, part) = (number / unit, number % unit);
    if part == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    format!("{whole}.{}", format!("{part:0width$}").trim_end_matches('0'))
}

impl fmt::Display for GoDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl JsonSchema for GoDuration {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "GoDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": PATTERN })
    }
}

/// Returns the schema of a duration field that does not accept hours.
pub(crate) fn schema_without_hours(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": PATTERN_WITHOUT_HOURS })
}

/// Parses one number with its unit.
///
/// Returns nanoseconds, truncated, and the rest of the text.
fn leading_term(text: &str) -> Option<(u128, &str)> {
    let (whole, rest) = leading_digits(text)?;
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => leading_digits(rest)?,
        None => ("", rest),
    };
    let (unit, rest) =
        UNITS.iter().find_map(|(name, unit)| rest.strip_prefix(name).map(|rest| (*unit, rest)))?;
    // A number that overflows the integer overflows the duration, too, and a saturated one does so as well.
    let whole = whole.parse().unwrap_or(u128::MAX).saturating_mul(unit);
    Some((whole.saturating_add(fraction_of(fraction, unit)), rest))
}

/// Returns the fraction that the digits behind the point denote, truncated to nanoseconds.
fn fraction_of(digits: &str, unit: u128) -> u128 {
    // 18 digits are far more precise than a nanosecond of any unit, and multiplied by an hour they still fit.
    let mut numerator: u128 = 0;
    let mut scale: u128 = 1;
    for digit in digits.bytes().take(18) {
        numerator = numerator * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    numerator * unit / scale
}

/// Splits off the leading digits, of which there must be at least one.
fn leading_digits(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{DurationError, GoDuration};

    #[test]
    fn durations_of_the_schema_pattern_are_parsed() {
        for (text, milliseconds) in [
            ("0s", 0),
            ("1ms", 1),
            ("60s", 60_000),
            ("1m30s", 90_000),
            ("1h", 3_600_000),
            ("1.5h", 5_400_000),
            ("0.25s", 250),
            ("2m2m", 240_000),
            ("1h2m3s4ms", 3_723_004),
        ] {
            assert_eq!(
                GoDuration::new(text).to_duration(),
                Ok(Duration::from_millis(milliseconds)),
                "{text}"
            );
        }
        assert_eq!(GoDuration::new("0.0000019ms").to_duration(), Ok(Duration::from_nanos(1)));
        let digits = "0.3333333333333333333333333s";
        assert_eq!(GoDuration::new(digits).to_duration(), Ok(Duration::from_nanos(333_333_333)));
    }

    #[test]
    fn durations_are_formatted_as_in_go() {
        for (nanoseconds, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1.5µs"),
            (750_000_000, "750ms"),
            (1_100_000, "1.1ms"),
            (1_000_000_000, "1s"),
            (1_000_000_001, "1.000000001s"),
            (50_873_134_479, "50.873134479s"),
            (60_000_000_000, "1m0s"),
            (3_600_000_000_000, "1h0m0s"),
            (90_061_500_000_000, "25h1m1.5s"),
        ] {
            assert_eq!(GoDuration::from(Duration::from_nanos(nanoseconds)).as_str(), text);
        }
    }

    #[test]
    fn durations_outside_the_schema_pattern_are_refused() {
        for text in
            ["", "0", "5", "s", "-1s", "+1s", "1.s", ".5s", "1 s", "1d", "1us", "1s ", "1s1", "１s", "1S"]
        {
            let error = GoDuration::new(text).to_duration();
            assert_eq!(error, Err(DurationError::Malformed { text: text.to_owned() }), "{text}");
        }
    }

    #[test]
    fn durations_beyond_the_range_of_go_are_refused() {
        assert!(GoDuration::new("2562047h").to_duration().is_ok());
        for text in ["2562048h", "99999999999999999999999999999999999999999999h"] {
            let error = GoDuration::new(text).to_duration();
            assert_eq!(error, Err(DurationError::TooLong { text: text.to_owned() }), "{text}");
        }
    }

    #[test]
    fn durations_without_hours_refuse_hours_and_negative_values() {
        let hours = GoDuration::new("1h1m").to_duration_without_hours();
        assert_eq!(hours, Err(DurationError::Hours { text: "1h1m".to_owned() }));
        for text in ["-5s", "-1h"] {
            let negative = GoDuration::new(text).to_duration_without_hours();
            assert_eq!(negative, Err(DurationError::Negative { text: text.to_owned() }));
        }
        for text in ["5", "-", "-5", "1d", ""] {
            let malformed = GoDuration::new(text).to_duration_without_hours();
            assert_eq!(malformed, Err(DurationError::MalformedWithoutHours { text: text.to_owned() }));
        }
        let minutes = GoDuration::new("61m").to_duration_without_hours();
        assert_eq!(minutes, Ok(Duration::from_secs(3660)));
    }
}
