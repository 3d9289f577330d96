//! Names of time zones, and times with or without an offset.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};

use super::error::EntryDefect;

/// The time zones in the program. Those of the system may be older, or missing.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// Returns the time zone of an IANA name, or UTC without a name.
pub(super) fn time_zone(name: Option<&str>) -> Result<TimeZone, EntryDefect> {
    let Some(name) = name else { return Ok(TimeZone::UTC) };
    let zone = ZONES.get(name).ok().filter(|zone| !zone.is_unknown());
    zone.ok_or_else(|| EntryDefect::Zone(name.to_owned()))
}

/// Parses a time such as `2026-12-18T12:00`, with seconds or an offset if it has them.
///
/// Without an offset it is a time of the zone.
///
/// # Errors
///
/// If the value has another form, or is no time of the calendar, or is too late.
pub fn parse_time(field: &'static str, value: &str, zone: &TimeZone) -> Result<Timestamp, EntryDefect> {
    let not_a_time = || EntryDefect::Time { field, value: value.to_owned() };
    let Shape { local, offset } = shape(value).ok_or_else(not_a_time)?;
    let local: DateTime = local.parse().map_err(|_| not_a_time())?;
    let time = match offset {
        None => first_instant(zone, local),
        Some(offset) => {
            // The offset alone, at a time that any offset allows.
            let _: Timestamp = format!("2000-01-01T00:00{offset}").parse().map_err(|_| not_a_time())?;
            value.parse().ok()
        }
    };
    time.ok_or_else(|| EntryDefect::TooLate { field, value: value.to_owned() })
}

/// Returns true if clocks show the second of two local times later.
pub(super) fn is_later_on_clocks(from: &str, until: &str) -> bool {
    let local = |value: &str| {
        let shape = shape(value).filter(|shape| shape.offset.is_none())?;
        shape.local.parse::<DateTime>().ok()
    };
    local(from).zip(local(until)).is_some_and(|(from, until)| from < until)
}

/// Returns the first instant at which clocks show a time or a later one.
///
/// A time that a clock change skips is that of the change; of one that occurs twice, the first counts.
pub(super) fn first_instant(zone: &TimeZone, local: DateTime) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(local).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local).ok(),
        AmbiguousOffset::Gap { before, .. } => {
            let as_much_later = before.to_timestamp(local).ok()?;
            last_change(zone, as_much_later).map(|(at, _)| at)
        }
    }
}

/// Returns the last clock change, and the local time right before it.
pub(super) fn last_change(zone: &TimeZone, now: Timestamp) -> Option<(Timestamp, DateTime)> {
    let just_after = Timestamp::from_second(now.as_second().checked_add(1)?).ok()?;
    let at = zone.preceding(just_after).next()?.timestamp();
    let just_before = Timestamp::from_second(at.as_second().checked_sub(1)?).ok()?;
    Some((at, zone.to_offset(just_before).to_datetime(at)))
}

/// The parts of a time.
struct Shape<'v> {
    local: &'v str,
    offset: Option<&'v str>,
}

/// Returns the parts of a time in ISO 8601 with minutes or seconds.
fn shape(value: &str) -> Option<Shape<'_>> {
    let (date, time) = value.split_once('T')?;
    let (clock, offset) = time.split_at(time.find(['Z', '+', '-']).unwrap_or(time.len()));
    let is_clock = has_pattern(clock, "00:00") || has_pattern(clock, "00:00:00");
    // The parser would take a leap second for the one before it.
    if !has_pattern(date, "0000-00-00") || !is_clock || clock.get(5..) == Some(":60") {
        return None;
    }
    let is_offset = || offset == "Z" || offset.get(1..).is_some_and(|offset| has_pattern(offset, "00:00"));
    let (local, _) = value.split_at(value.len() - offset.len());
    match offset {
        "" => Some(Shape { local, offset: None }),
        _ => is_offset().then_some(Shape { local, offset: Some(offset) }),
    }
}

/// Returns `true` if a text is equal to a pattern, whose zeros stand for digits.
fn has_pattern(text: &str, pattern: &str) -> bool {
    text.len() == pattern.len()
        && text.bytes().zip(pattern.bytes()).all(|(byte, wanted)| match wanted {
            b'0' => byte.is_ascii_digit(),
            _ => byte == wanted,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::error::LAST;

    #[test]
    fn a_time_has_an_offset_or_is_local() {
        let berlin = time_zone(Some("Europe/Berlin")).unwrap();
        for (value, expected) in [
            ("2026-12-18T12:00", "2026-12-18T11:00:00Z"),
            ("2026-12-18T12:00:30", "2026-12-18T11:00:30Z"),
            ("2026-07-18T12:00", "2026-07-18T10:00:00Z"),
            ("2026-12-18T12:00Z", "2026-12-18T12:00:00Z"),
            ("2026-12-18T12:00+05:30", "2026-12-18T06:30:00Z"),
            ("2026-12-18T12:00:00-03:00", "2026-12-18T15:00:00Z"),
            // Skipped: the time of the change. Twice: the first time.
            ("2026-03-29T02:00", "2026-03-29T01:00:00Z"),
            ("2026-03-29T02:30", "2026-03-29T01:00:00Z"),
            ("2026-03-29T03:00", "2026-03-29T01:00:00Z"),
            ("2026-10-25T02:30", "2026-10-25T00:30:00Z"),
            ("2026-10-25T03:00", "2026-10-25T02:00:00Z"),
        ] {
            assert_eq!(parse_time("from", value, &berlin).unwrap().to_string(), expected, "{value}");
        }
    }

    #[test]
    fn every_other_shape_of_a_time_is_refused() {
        for value in [
            "",
            "tomorrow",
            "2026-12-18",
            "2026-12-18 12:00",
            "2026-12-18t12:00",
            "2026-12-18T12",
            "2026-12-18T1200",
            "20261218T12:00",
            "2026-13-18T12:00",
            "2026-02-30T12:00",
            "2026-12-18T25:00",
            "2026-12-18T12:00z",
            "2026-12-18T12:00ZZ",
            "2026-12-18T12:00+01:00Z",
            "2026-12-18T12:00+01",
            "2026-12-18T12:00+0100",
            "2026-12-18T12:00+99:00",
            "2026-12-18T12:00[Europe/Berlin]",
            "2026-12-18T12:00+01:00[Europe/Berlin]",
            "2026-12-18T12:00:00.5",
            "2026-12-18T23:59:60",
            "2026-12-18T23:59:60Z",
            "2026-12-18T12:00+01:99",
            "２026-12-18T12:00",
        ] {
            let expected = EntryDefect::Time { field: "from", value: value.to_owned() };
            assert_eq!(parse_time("from", value, &TimeZone::UTC), Err(expected), "{value}");
        }
    }

    /// The sentence said that it is no time.
    #[test]
    fn a_time_that_is_too_late_is_named_as_that() {
        let late = |value: &str, zone: &str| {
            let zone = time_zone(Some(zone)).unwrap();
            match parse_time("until", value, &zone) {
                Ok(time) => Ok(time.to_string()),
                Err(defect) => Err(defect.to_string()),
            }
        };
        assert_eq!(late("9999-12-30T22:00", "UTC").unwrap(), "9999-12-30T22:00:00Z");
        assert_eq!(late(LAST, "UTC").unwrap(), "9999-12-30T22:00:00Z");
        for (value, zone) in [
            ("9999-12-30T22:01", "UTC"),
            ("9999-12-31T23:59", "UTC"),
            ("9999-12-31T00:00", "America/New_York"),
            ("9999-12-31T23:59Z", "UTC"),
            ("9999-12-31T23:59-12:00", "UTC"),
        ] {
            let expected =
                format!("until is `{value}`, which is too late: write a time up to 9999-12-30T22:00Z");
            assert_eq!(late(value, zone), Err(expected), "{value} {zone}");
        }
    }

    #[test]
    fn a_time_zone_is_a_name_of_the_database() {
        assert_eq!(time_zone(None), Ok(TimeZone::UTC));
        for name in ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5"] {
            assert!(time_zone(Some(name)).is_ok(), "{name}");
        }
        for name in ["", "Mars/Olympus", "Etc/Unknown", "../../etc/passwd", "CET-1CEST", "+01:00", "Local"] {
            assert_eq!(time_zone(Some(name)), Err(EntryDefect::Zone(name.to_owned())), "{name}");
        }
    }
}
