//! The errors of windows and freezes.

use std::fmt;

use crate::printable::printable;

/// The last time that can be given.
pub(super) const LAST: &str = "9999-12-30T22:00Z";

/// The maximum number of characters of a value in a message.
const MAX_SHOWN: usize = 160;

/// The error of an annotation with windows or a freeze.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The value is not a list of entries.
    #[error("it is not a list of windows: {}: write a YAML list of entries with name and kind, and with cron and window or from and until", shown(.defect))]
    NotAList {
        /// The parser's error.
        defect: String,
    },
    /// The list is too long.
    #[error("it has {count} windows: at most {maximum} are allowed, so combine some of them")]
    TooMany {
        /// Number of entries.
        count: usize,
        /// The allowed number.
        maximum: usize,
    },
    /// An entry is not valid.
    #[error("{place}: {defect}")]
    Entry {
        /// The entry.
        place: EntryPlace,
        /// The defect.
        defect: EntryDefect,
    },
    /// The value is a mapping, and not one of a freeze.
    #[error("it is not a freeze: {}: write a reason, or {{reason: TEXT, from: TIME, until: TIME}}", shown(.defect))]
    NotAFreeze {
        /// The parser's error.
        defect: String,
    },
    /// A time of a freeze is not valid.
    #[error("the freeze: {0}")]
    Freeze(EntryDefect),
}

/// The place of an entry in its list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryPlace {
    /// The entry of this name.
    Named(String),
    /// The entry at this place, counted from 1.
    Numbered(usize),
}

impl fmt::Display for EntryPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => write!(formatter, "entry `{}`", shown(name)),
            Self::Numbered(number) => write!(formatter, "entry {number}"),
        }
    }
}

/// The defect of an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryDefect {
    /// It has no usable name.
    #[error("name is missing or not valid: write 1 to {maximum} characters that can be printed")]
    Name {
        /// The allowed number of characters.
        maximum: usize,
    },
    /// Its kind is missing.
    #[error("kind is missing: write allow or deny")]
    NoKind,
    /// Its kind is unknown.
    #[error("kind is `{}`: write allow or deny", shown(.0))]
    Kind(String),
    /// It recurs and takes place once.
    #[error("it has cron or window, and from or until: write either cron and window, or from and until")]
    BothForms,
    /// It neither recurs nor takes place once.
    #[error("it has no times: write cron and window, or from and until")]
    NoForm,
    /// A field is missing.
    #[error("{missing} is missing: {present} requires it")]
    Incomplete {
        /// The field to add.
        missing: &'static str,
        /// The field that requires it.
        present: &'static str,
    },
    /// The time zone is unknown.
    #[error("timeZone is `{}`, which is unknown: write a name of the IANA database, such as Europe/Berlin", shown(.0))]
    Zone(String),
    /// The cron expression does not have five fields.
    #[error("cron is `{}`, which has {fields} field{}: write minute, hour, day of month, month and day of week", shown(.cron), plural(*.fields))]
    CronFields {
        /// The expression.
        cron: String,
        /// Number of fields.
        fields: usize,
    },
    /// A field of the cron expression is not valid.
    #[error("cron is `{}`, and its {field} is not valid: write {allowed} or *, a list such as 1,3, a range such as 1-3, or a step such as */2", shown(.cron))]
    CronField {
        /// The expression.
        cron: String,
        /// Name of the field.
        field: &'static str,
        /// The values of the field.
        allowed: &'static str,
    },
    /// The cron expression matches no day.
    #[error("cron is `{}`, which never occurs: change the day of month or the month", shown(.0))]
    Never(String),
    /// The length is not a duration.
    #[error("window is `{}`, which is not a duration: write it in w, d, h, m, s and ms, such as 7h", shown(.0))]
    Length(String),
    /// The length is zero or too long.
    #[error("window is `{}`: write more than 0 and at most 366d", shown(.0))]
    LengthRange(String),
    /// A time is not valid.
    #[error("{field} is `{}`, which is not a time: write it like 2026-12-18T12:00, or with an offset like 2026-12-18T12:00+01:00", shown(.value))]
    Time {
        /// Name of the field.
        field: &'static str,
        /// The value.
        value: String,
    },
    /// A time is later than any that can be given.
    #[error("{field} is `{}`, which is too late: write a time up to {}", shown(.value), LAST)]
    TooLate {
        /// Name of the field.
        field: &'static str,
        /// The value.
        value: String,
    },
    /// Clocks skip the time between the beginning and the end.
    #[error("until is `{}`, which is the same moment as from, `{}`: clocks in {} go forward then; write a later time", shown(.until), shown(.from), shown(.zone))]
    Skipped {
        /// The beginning.
        from: String,
        /// The end.
        until: String,
        /// Name of the time zone.
        zone: String,
    },
    /// The end is not after the beginning.
    #[error("until is `{}`, which is not after from, `{}`: write a later time", shown(.until), shown(.from))]
    Order {
        /// The beginning.
        from: String,
        /// The end.
        until: String,
    },
}

/// Returns the ending of the noun after a number.
fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Truncates a long value, and escapes characters that cannot be printed.
pub(super) fn shown(value: &str) -> String {
    let mut start: String = value.chars().take(MAX_SHOWN).collect();
    if start.len() < value.len() {
        start.push('…');
    }
    printable(&start).into_owned()
}
