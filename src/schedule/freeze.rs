//! A freeze with a reason, a beginning and an end.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::annotation;
use super::entry::period;
use super::error::SettingsError;
use super::period::{Period, Phase};
use crate::printable::printable;

/// The maximum number of characters of a reason; a longer one is shortened.
const MAX_REASON: usize = 300;

/// The value of `tagboat.dev/freeze` or `tagboat.dev/freeze-all`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freeze {
    reason: Option<String>,
    period: Period,
}

/// A freeze as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenFreeze {
    reason: Option<String>,
    from: Option<String>,
    until: Option<String>,
}

impl Freeze {
    /// Parses the value of an annotation; `false` is no freeze.
    ///
    /// A YAML mapping has a reason, a beginning and an end, each of them optional. Times without an offset are in UTC.
    /// Every other text is the reason of a freeze without an end, such as `incident: database`.
    ///
    /// # Errors
    ///
    /// The value is a mapping, or begins like one, and is not valid.
    pub fn parse(value: &str) -> Result<Option<Self>, SettingsError> {
        let value = value.trim();
        if value == "false" {
            return Ok(None);
        }
        let is_field = |name: &String| ["reason", "from", "until"].contains(&name.as_str());
        let is_mapping = value.starts_with('{')
            || annotation::parse::<BTreeMap<String, IgnoredAny>>(value)
                .is_ok_and(|mapping| mapping.keys().any(is_field));
        if value.is_empty() || !is_mapping {
            return Ok(Some(Self { reason: short(value), period: Period { from: None, until: None } }));
        }
        let written: WrittenFreeze =
            annotation::parse(value).map_err(|defect| SettingsError::NotAFreeze { defect })?;
        let period = period(written.from.as_deref(), written.until.as_deref(), &TimeZone::UTC);
        let period = period.map_err(SettingsError::Freeze)?;
        Ok(Some(Self { reason: written.reason.as_deref().and_then(short), period }))
    }

    /// Returns the reason, on one line and of bounded length.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Returns `true` if the freeze is active.
    #[must_use]
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.phase(now).is_active
    }

    pub(super) fn phase(&self, now: Timestamp) -> Phase {
        self.period.phase(now)
    }
}

/// Returns a text on one line, shortened if it is long.
fn short(text: &str) -> Option<String> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut start: String = line.chars().take(MAX_REASON).collect();
    if start.len() < line.len() {
        start.push('…');
    }
    (!start.is_empty()).then(|| printable(&start).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_no_mapping_is_a_reason() {
        let long = "x".repeat(301);
        let shortened = format!("{}…", "x".repeat(300));
        for (value, reason) in [
            ("", None),
            (" \n", None),
            ("{}", None),
            ("incident 4711", Some("incident 4711")),
            (" incident\n 4711 ", Some("incident 4711")),
            ("see https://status.example.com", Some("see https://status.example.com")),
            ("12:30", Some("12:30")),
            ("incident: 4711", Some("incident: 4711")),
            ("true", Some("true")),
            ("False", Some("False")),
            ("[1, 2]", Some("[1, 2]")),
            ("- x", Some("- x")),
            ("@ops: stop", Some("@ops: stop")),
            ("a\u{1b}[1m", Some("a\\u{1b}[1m")),
            (long.as_str(), Some(shortened.as_str())),
            ("{reason: incident 4711}", Some("incident 4711")),
            ("reason: 4711", Some("4711")),
            ("reason: |\n  incident\n  4711\n", Some("incident 4711")),
            ("{reason: ''}", None),
            ("{reason: ~}", None),
        ] {
            let freeze = Freeze::parse(value).unwrap().unwrap();
            assert_eq!(freeze.reason(), reason, "{value}");
            assert!(freeze.is_active(Timestamp::UNIX_EPOCH), "{value}");
        }
        assert_eq!(Freeze::parse("false"), Ok(None));
        assert_eq!(Freeze::parse(" false\n"), Ok(None));
    }

    #[test]
    fn a_freeze_is_active_from_its_beginning_to_its_end() {
        let both = "{reason: audit, from: 2026-12-18T12:00, until: '2027-01-04T08:00+01:00'}";
        for (value, now, is_active) in [
            (both, "2026-12-18T11:59:59Z", false),
            (both, "2026-12-18T12:00:00Z", true),
            (both, "2027-01-04T06:59:59Z", true),
            (both, "2027-01-04T07:00:00Z", false),
            ("until: 2026-12-18T12:00", "2026-12-18T11:59:59Z", true),
            ("until: 2026-12-18T12:00", "2026-12-18T12:00:00Z", false),
            ("from: 2026-12-18T12:00", "2026-12-18T11:59:59Z", false),
            ("from: 2026-12-18T12:00", "2036-12-18T12:00:00Z", true),
        ] {
            let freeze = Freeze::parse(value).unwrap().unwrap();
            assert_eq!(freeze.is_active(now.parse().unwrap()), is_active, "{value} {now}");
        }
    }

    #[test]
    fn a_mapping_of_another_form_is_refused() {
        for value in
            ["reason: x\nend: y", "{reason: x, end: 2026-12-18T12:00}", "{incident 4711", "{reason: [x]}"]
        {
            let sentence = Freeze::parse(value).unwrap_err().to_string();
            assert!(sentence.starts_with("it is not a freeze: "), "{value}: {sentence}");
            assert!(
                sentence.ends_with("write a reason, or {reason: TEXT, from: TIME, until: TIME}"),
                "{sentence}"
            );
        }
        for (value, expected) in [
            (
                "{until: friday}",
                "the freeze: until is `friday`, which is not a time: write it like 2026-12-18T12:00, or with an \
                 offset like 2026-12-18T12:00+01:00",
            ),
            (
                "{from: 2026-12-18T12:00, until: 2026-12-18T12:00}",
                "the freeze: until is `2026-12-18T12:00`, which is not after from, `2026-12-18T12:00`: write a later \
                 time",
            ),
        ] {
            assert_eq!(Freeze::parse(value).unwrap_err().to_string(), expected);
        }
    }
}
