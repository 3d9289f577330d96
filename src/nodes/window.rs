//! The times at which a rollout may begin.

use std::time::Duration;

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp, ToSpan};

/// The maximum length of a window.
const MAX_LENGTH: Duration = Duration::from_hours(7 * 24);

/// A window that opens at a time of day on some days of the week.
///
/// It may span midnight. Its length is elapsed time, also across a clock change. A start that a clock change skips is
/// as much later; of one that occurs twice, the first counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The days on which it opens; every day, if empty.
    days: Vec<Weekday>,
    start: Time,
    length: SignedDuration,
    zone: TimeZone,
}

/// A window that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// A day is not one of the seven.
    #[error("`{0}` is not a day: write Mon, Tue, Wed, Thu, Fri, Sat or Sun")]
    Day(String),
    /// The start is not a time of day.
    #[error("`{0}` is not a time of day: write hours and minutes, such as 23:00")]
    Start(String),
    /// The length is zero, or longer than a week.
    #[error("the length of a window is more than 0 and at most a week")]
    Length,
    /// The time zone is unknown.
    #[error("`{0}` is not a time zone of the IANA database, such as Europe/Berlin")]
    Zone(String),
}

impl WindowError {
    /// Returns the name of the field that is not valid.
    #[must_use]
    pub fn field(&self) -> &'static str {
        match self {
            Self::Day(_) => "days",
            Self::Start(_) => "start",
            Self::Length => "length",
            Self::Zone(_) => "timeZone",
        }
    }
}

impl Window {
    /// Creates a window from days like `Mon`, a start like `23:00`, and a time zone.
    ///
    /// An empty name is UTC.
    ///
    /// # Errors
    ///
    /// A text is not valid.
    pub fn new(days: &[String], start: &str, length: Duration, zone: &str) -> Result<Self, WindowError> {
        let days = days.iter().map(|day| weekday(day)).collect::<Result<_, _>>()?;
        let start = time_of_day(start).ok_or_else(|| WindowError::Start(start.to_owned()))?;
        if length.is_zero() || length > MAX_LENGTH {
            return Err(WindowError::Length);
        }
        let length = SignedDuration::try_from(length).map_err(|_| WindowError::Length)?;
        let zone = match zone {
            "" | "UTC" => TimeZone::UTC,
            name => TimeZone::get(name).map_err(|_| WindowError::Zone(name.to_owned()))?,
        };
        Ok(Self { days, start, length, zone })
    }

    /// Returns `true` if the window is open.
    #[must_use]
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.around(now).any(|(start, end)| start <= now && now < end)
    }

    /// Returns the time of the next opening, within two weeks.
    #[must_use]
    pub fn next_opening(&self, now: Timestamp) -> Option<Timestamp> {
        self.around(now).map(|(start, _)| start).filter(|start| *start > now).min()
    }

    /// Returns the time of the next opening or closing, within two weeks.
    #[must_use]
    pub fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        self.around(now).flat_map(|(start, end)| [start, end]).filter(|time| *time > now).min()
    }

    /// Returns the openings and closings of the weeks around a time.
    fn around(&self, now: Timestamp) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        let today = self.zone.to_datetime(now).date();
        let dates = (-8..=15).filter_map(move |day| today.checked_add(days(day)).ok());
        dates.filter(|date| self.days.is_empty() || self.days.contains(&date.weekday())).filter_map(|date| {
            let start = self.start_on(date)?;
            Some((start, start.checked_add(self.length).ok()?))
        })
    }

    fn start_on(&self, date: Date) -> Option<Timestamp> {
        self.zone.to_ambiguous_timestamp(date.to_datetime(self.start)).compatible().ok()
    }
}

fn days(number: i32) -> Span {
    number.days()
}

fn weekday(text: &str) -> Result<Weekday, WindowError> {
    const DAYS: [(&str, Weekday); 7] = [
        ("Mon", Weekday::Monday),
        ("Tue", Weekday::Tuesday),
        ("Wed", Weekday::Wednesday),
        ("Thu", Weekday::Thursday),
        ("Fri", Weekday::Friday),
        ("Sat", Weekday::Saturday),
        ("Sun", Weekday::Sunday),
    ];
    let found = DAYS.into_iter().find(|(name, _)| *name == text);
    found.map(|(_, day)| day).ok_or_else(|| WindowError::Day(text.to_owned()))
}

/// Parses hours and minutes with two digits each.
fn time_of_day(text: &str) -> Option<Time> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |text: &str| {
        let is_plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| text.parse::<i8>().ok()).flatten()
    };
    Time::new(number(hours)?, number(minutes)?, 0, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(days: &[&str], start: &str, hours: u64, zone: &str) -> Window {
        let days: Vec<String> = days.iter().map(|day| (*day).to_owned()).collect();
        Window::new(&days, start, Duration::from_hours(hours), zone).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// The changes of a window from a time on.
    fn changes(window: &Window, from: &str, count: usize) -> Vec<String> {
        let mut now = at(from);
        let changes = std::iter::from_fn(|| {
            now = window.next_change(now)?;
            Some(format!("{now} {}", if window.is_open(now) { "open" } else { "closed" }))
        });
        changes.take(count).collect()
    }

    #[test]
    fn a_window_spans_midnight() {
        let window = window(&["Thu"], "23:00", 2, "");
        // 2026-11-26 is a Thursday.
        assert_eq!(
            changes(&window, "2026-11-23T00:00:00Z", 3),
            ["2026-11-26T23:00:00Z open", "2026-11-27T01:00:00Z closed", "2026-12-03T23:00:00Z open"]
        );
        assert!(window.is_open(at("2026-11-27T00:59:59Z")) && !window.is_open(at("2026-11-27T23:30:00Z")));
        assert_eq!(window.next_opening(at("2026-11-27T00:30:00Z")), Some(at("2026-12-03T23:00:00Z")));
    }

    #[test]
    fn without_days_a_window_opens_every_day() {
        let window = window(&[], "06:30", 1, "Asia/Kolkata");
        assert_eq!(
            changes(&window, "2026-11-23T00:00:00Z", 3),
            ["2026-11-23T01:00:00Z open", "2026-11-23T02:00:00Z closed", "2026-11-24T01:00:00Z open"]
        );
    }

    /// In Berlin, 2026-03-29 has no 02:30, and 2026-10-25 has two.
    #[test]
    fn a_clock_change_moves_the_start_and_not_the_length() {
        let night = window(&["Sun"], "02:30", 2, "Europe/Berlin");
        assert_eq!(
            changes(&night, "2026-03-28T12:00:00Z", 2),
            ["2026-03-29T01:30:00Z open", "2026-03-29T03:30:00Z closed"]
        );
        assert_eq!(
            changes(&night, "2026-10-24T12:00:00Z", 2),
            ["2026-10-25T00:30:00Z open", "2026-10-25T02:30:00Z closed"]
        );
        let across = window(&["Sat"], "23:00", 4, "Europe/Berlin");
        assert_eq!(
            changes(&across, "2026-03-28T12:00:00Z", 2),
            ["2026-03-28T22:00:00Z open", "2026-03-29T02:00:00Z closed"]
        );
    }

    #[test]
    fn a_window_of_a_week_never_closes() {
        let window = window(&["Mon"], "00:00", 7 * 24, "UTC");
        for text in ["2026-11-23T00:00:00Z", "2026-11-29T23:59:59Z", "2026-11-30T00:00:00Z"] {
            assert!(window.is_open(at(text)), "{text}");
        }
    }

    #[test]
    fn an_invalid_field_is_named() {
        let hour = Duration::from_hours(1);
        let error = |days: &[&str], start: &str, length: Duration, zone: &str| {
            let days: Vec<String> = days.iter().map(|day| (*day).to_owned()).collect();
            let error = Window::new(&days, start, length, zone).unwrap_err();
            format!("{}: {error}", error.field())
        };
        assert!(error(&["Monday"], "23:00", hour, "").starts_with("days: `Monday`"));
        for start in ["24:00", "9:00", "23.00", "23:60", "+1:00", ""] {
            assert!(error(&[], start, hour, "").starts_with("start: "), "{start}");
        }
        for length in [Duration::ZERO, MAX_LENGTH + hour] {
            assert!(error(&[], "23:00", length, "").starts_with("length: "));
        }
        assert!(error(&[], "23:00", hour, "Mars/Olympus").starts_with("timeZone: `Mars/Olympus`"));
    }
}
