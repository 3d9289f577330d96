//! The syntax of a cron expression: Vixie's, without extensions.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::{DateTime, date};

use super::error::EntryDefect;

/// The maximum length of a field, in bytes.
const MAX_LENGTH: usize = 256;

/// The number of hours of a day.
const HOURS: usize = 24;

/// The day from which the first start is searched.
const FIRST_DAY: DateTime = date(2000, 1, 1).at(0, 0, 0, 0);

/// A cron expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expression {
    pub(super) cron: Cron,
    /// True if the hour is `*`, perhaps with a step of one.
    pub(super) has_any_hour: bool,
}

/// A field of a cron expression.
struct Field {
    name: &'static str,
    allowed: &'static str,
    names: &'static [&'static str],
}

/// The fields in their order.
const FIELDS: [Field; 5] = [
    Field { name: "minute", allowed: "0 to 59", names: &[] },
    Field { name: "hour", allowed: "0 to 23", names: &[] },
    Field { name: "day of month", allowed: "1 to 31", names: &[] },
    Field {
        name: "month",
        allowed: "1 to 12, jan to dec",
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    Field {
        name: "day of week",
        allowed: "0 to 7, sun to sat",
        names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    },
];

impl Field {
    /// Returns `true` if a text has the characters and names of the field.
    fn has_words_of(&self, text: &str) -> bool {
        let is_word = |word: &str| {
            word == "*"
                || (!word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()))
                || self.names.iter().any(|name| name.eq_ignore_ascii_case(word))
        };
        text.len() <= MAX_LENGTH && text.split([',', '-', '/']).all(is_word)
    }
}

/// Parses an expression of five fields that occurs at some time.
///
/// A day matches if its day of month or its day of week does; if one of the two fields begins with `*`, both must.
pub(super) fn parse(text: &str) -> Result<Expression, EntryDefect> {
    let invalid = |field: &Field| EntryDefect::CronField {
        cron: text.to_owned(),
        field: field.name,
        allowed: field.allowed,
    };
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let &[_, hour, day_of_month, _, day_of_week] = fields.as_slice() else {
        return Err(EntryDefect::CronFields { cron: text.to_owned(), fields: fields.len() });
    };
    let mut fields_with_values = FIELDS.iter().zip(&fields);
    if let Some((field, _)) = fields_with_values.find(|(field, value)| !field.has_words_of(value)) {
        return Err(invalid(field));
    }
    let must_match_both = day_of_month.starts_with('*') || day_of_week.starts_with('*');
    let parser = CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .dom_and_dow(must_match_both)
        .build();
    let cron = parser.parse(&fields.join(" ")).map_err(|_| invalid(first_invalid(&fields)))?;
    if cron.find_next_occurrence(&FIRST_DAY, true).is_err() {
        return Err(EntryDefect::Never(text.to_owned()));
    }
    let has_any_hour = hour.starts_with('*') && cron.pattern.hours.values().len() == HOURS;
    Ok(Expression { cron, has_any_hour })
}

/// Returns the field that the parser does not accept.
fn first_invalid(fields: &[&str]) -> &'static Field {
    let is_invalid = |index: &usize| {
        // With stars in the other fields, the error is one of this field.
        let mut alone = ["*"; FIELDS.len()];
        alone[*index] = fields[*index];
        CronParser::new().parse(&alone.join(" ")).is_err()
    };
    &FIELDS[(0..FIELDS.len()).find(is_invalid).unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first starts of an expression in 2026.
    fn starts(text: &str, count: usize) -> Vec<String> {
        let Expression { cron, .. } = parse(text).unwrap();
        let starts = cron.iter_from(date(2026, 1, 1).at(0, 0, 0, 0), croner::Direction::Forward);
        starts.take(count).map(|start| start.strftime("%m-%d %H:%M").to_string()).collect()
    }

    #[test]
    fn an_expression_has_vixies_meaning() {
        // 2026-01-01 is a Thursday.
        for (text, expected) in [
            ("0 9 * * 1-4", ["01-01 09:00", "01-05 09:00", "01-06 09:00"]),
            ("0 9 * * mon-Thu", ["01-01 09:00", "01-05 09:00", "01-06 09:00"]),
            ("  0\t9 * *   SUN ", ["01-04 09:00", "01-11 09:00", "01-18 09:00"]),
            ("0 9 * * 7", ["01-04 09:00", "01-11 09:00", "01-18 09:00"]),
            ("0 9 * * 5-7", ["01-02 09:00", "01-03 09:00", "01-04 09:00"]),
            ("0 9 * * fri-sun", ["01-02 09:00", "01-03 09:00", "01-04 09:00"]),
            ("*/20 0 * * *", ["01-01 00:00", "01-01 00:20", "01-01 00:40"]),
            ("5,10-30/10 0 * * *", ["01-01 00:05", "01-01 00:10", "01-01 00:20"]),
            ("0 0 31 feb,mar *", ["03-31 00:00", "03-31 00:00", "03-31 00:00"]),
            // Both days are restricted: either matches.
            ("0 0 2 * 1", ["01-02 00:00", "01-05 00:00", "01-12 00:00"]),
            ("0 0 30 2 1", ["02-02 00:00", "02-09 00:00", "02-16 00:00"]),
            // One begins with a star: both match.
            ("0 0 */2 * 5", ["01-09 00:00", "01-23 00:00", "02-13 00:00"]),
            ("0 0 1-10 * */6", ["01-03 00:00", "01-04 00:00", "01-10 00:00"]),
        ] {
            let found = starts(text, 3);
            let months: Vec<&str> = found.iter().map(|start| &start[..]).collect();
            assert_eq!(months, expected, "{text}");
        }
    }

    /// In a list of all hours, each of them takes place once.
    #[test]
    fn an_hour_with_a_star_and_without_a_step_is_any_hour() {
        for (hour, expected) in
            [("*", true), ("*/1", true), ("*/2", false), ("0-23", false), ("0-23/1", false), ("9", false)]
        {
            assert_eq!(parse(&format!("0 {hour} * * *")).unwrap().has_any_hour, expected, "{hour}");
        }
    }

    #[test]
    fn only_five_fields_are_accepted() {
        for (text, fields) in
            [("", 0), ("0 9 * *", 4), ("0 0 9 * * 1-4", 6), ("0 9 * * 1-4 2026 1", 7), ("@daily", 1)]
        {
            let expected = EntryDefect::CronFields { cron: text.to_owned(), fields };
            assert_eq!(parse(text).unwrap_err(), expected);
        }
        for (text, expected) in [("@daily", "which has 1 field: "), ("", "which has 0 fields: ")] {
            let sentence = parse(text).unwrap_err().to_string();
            assert!(sentence.contains(expected), "{sentence}");
        }
    }

    #[test]
    fn an_invalid_field_is_named() {
        let long = format!("{} * * * *", "1,".repeat(200) + "1");
        for (text, wrong) in [
            ("60 9 * * *", "minute"),
            ("-1 9 * * *", "minute"),
            ("1,,2 9 * * *", "minute"),
            ("5/10 9 * * *", "minute"),
            ("*/0 9 * * *", "minute"),
            ("30-10 9 * * *", "minute"),
            ("mon 9 * * *", "minute"),
            (long.as_str(), "minute"),
            ("0 24 * * *", "hour"),
            ("0 ? * * *", "hour"),
            ("0 ９ * * *", "hour"),
            ("0 9 0 * *", "day of month"),
            ("0 9 32 * *", "day of month"),
            ("0 9 L * *", "day of month"),
            ("0 9 15W * *", "day of month"),
            ("0 9 ? * *", "day of month"),
            ("0 9 * 13 *", "month"),
            ("0 9 * juni *", "month"),
            ("0 9 * mon *", "month"),
            ("0 9 * * 8", "day of week"),
            ("0 9 * * 5#2", "day of week"),
            ("0 9 * * 5L", "day of week"),
            ("0 9 * * +5", "day of week"),
            ("0 9 * * Monday", "day of week"),
        ] {
            match parse(text).unwrap_err() {
                EntryDefect::CronField { field, .. } => assert_eq!(field, wrong, "{text}"),
                other => panic!("{text}: {other}"),
            }
        }
    }

    #[test]
    fn a_start_must_occur() {
        for text in ["0 0 30 2 *", "0 0 30,31 feb *", "0 0 31 4,6,9,11 *"] {
            assert_eq!(parse(text).unwrap_err(), EntryDefect::Never(text.to_owned()));
        }
        assert!(parse("0 0 29 2 *").is_ok());
    }
}
