//! Values of options: lengths of time and whole numbers. An option with such a value takes a hyphen at its beginning, so that a
//! negative value is refused by these sentences.

use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;
use std::time::Duration;

use tagboat_api::GoDuration;

/// Reads a length of time, such as `1m30s`.
///
/// # Errors
///
/// When it is none, or negative.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let is_negative = text.strip_prefix('-').is_some_and(|rest| GoDuration::new(rest).to_duration().is_ok());
    if is_negative {
        return Err("a length of time cannot be negative: write one such as 1m30s, or 0s".to_owned());
    }
    GoDuration::new(text).to_duration().map_err(|error| error.to_string())
}

/// Reads a whole number that is not negative.
///
/// # Errors
///
/// When it is none, or too large.
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
        for text in ["-1s", "-0s", "-1m30s"] {
            assert!(
                duration(text).unwrap_err().starts_with("a length of time cannot be negative: "),
                "{text}"
            );
        }
        for text in ["-", "-1", "1", "", "--state"] {
            assert!(duration(text).unwrap_err().contains("is not a duration: "), "{text}");
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
