//! Values of options: durations and whole numbers.
//!
//! An option with such a value accepts a leading hyphen, so that a negative value gets these messages.

use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;
use std::time::Duration;

use tagboat_api::GoDuration;

/// Reads a duration, such as `1m30s`.
///
/// # Errors
///
/// If it is none, or negative.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    if is_negative(text) {
        return Err("it cannot be negative: write a duration such as 1m30s, or 0s".to_owned());
    }
    GoDuration::new(text).to_duration().map_err(|error| error.to_string())
}

/// Reads a duration that is longer than 0s.
///
/// # Errors
///
/// If it is none, zero or negative.
pub(super) fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        Err(error) if !is_negative(text) => Err(error),
        _ => Err("it must be longer than 0s: write a duration such as 1m30s".to_owned()),
    }
}

/// Returns true for a duration with a minus sign.
fn is_negative(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|rest| GoDuration::new(rest).to_duration().is_ok())
}

/// Reads a whole number that is not negative.
///
/// # Errors
///
/// If it is none, or too large.
pub(super) fn whole_number<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: ParseIntError| {
        let advice = match error.kind() {
            IntErrorKind::PosOverflow => "it is too large: write a smaller number",
            _ => "write a whole number without a sign, such as 4",
        };
        advice.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `--limit -1` was answered by advice to write `-- -1`.
    #[test]
    fn negative_values_have_a_sentence() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        assert_eq!(positive_duration("1m30s"), Ok(Duration::from_secs(90)));
        assert!(positive_duration("0s").unwrap_err().starts_with("it must be longer than 0s: "));
        for text in ["-1s", "-0s", "-1m30s"] {
            assert!(duration(text).unwrap_err().starts_with("it cannot be negative: "), "{text}");
            assert!(
                positive_duration(text).unwrap_err().starts_with("it must be longer than 0s: "),
                "{text}"
            );
        }
        for text in ["-", "-1", "1", "", "--state"] {
            for read in [duration, positive_duration] {
                assert!(read(text).unwrap_err().contains("is not a duration: "), "{text}");
            }
        }
        assert_eq!(whole_number::<u32>("4"), Ok(4));
        for text in ["-1", "", "four", "1.5", "--state"] {
            let error = whole_number::<u32>(text).unwrap_err();
            assert_eq!(error, "write a whole number without a sign, such as 4", "{text}");
        }
        assert!(whole_number::<u32>("4294967296").unwrap_err().contains("too large"));
    }

    #[test]
    fn every_value_with_a_unit_may_begin_with_a_hyphen() {
        let command = crate::cli::command();
        for subcommand in command.get_subcommands() {
            for option in subcommand.get_arguments() {
                let names = option.get_value_names().unwrap_or_default();
                if names.iter().any(|name| ["DURATION", "NUMBER", "SIZE"].contains(&name.as_str())) {
                    let place = format!("{} {:?}", subcommand.get_name(), option.get_long());
                    assert!(option.is_allow_hyphen_values_set(), "{place}");
                }
            }
        }
    }
}
