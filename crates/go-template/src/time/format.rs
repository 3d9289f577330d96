//! Formats points in time.

use super::Moment;
use super::layout::{Fraction, Offset, Part, next_part};

/// The names of the weekdays.
pub(super) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The names of the months.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Returns the name of a month or, out of range, Go's substitute.
pub(crate) fn month_name(month: i64) -> String {
    let name = usize::try_from(month - 1).ok().and_then(|at| MONTHS.get(at));
    name.map_or_else(|| format!("%!Month({month})"), |name| (*name).to_owned())
}

/// Returns the name of a weekday or, out of range, Go's substitute.
pub(crate) fn weekday_name(day: i64) -> String {
    let name = usize::try_from(day).ok().and_then(|at| DAYS.get(at));
    name.map_or_else(|| format!("%!Weekday({day})"), |name| (*name).to_owned())
}

impl Moment {
    /// Formats the time as Go's `String` does.
    pub(crate) fn text(&self) -> Vec<u8> {
        self.format(b"2006-01-02 15:04:05.999999999 -0700 MST")
    }

    /// Formats the time by a layout.
    pub(crate) fn format(&self, layout: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut rest = layout;
        while let Some((before, part, end)) = next_part(rest) {
            out.extend_from_slice(&rest[..before]);
            self.push(&mut out, part);
            rest = &rest[end..];
        }
        out.extend_from_slice(rest);
        out
    }

    fn push(&self, out: &mut Vec<u8>, part: Part) {
        let date = self.date();
        let second = self.second_of_day();
        let (hour, minute) = (second / 3600, second / 60 % 60);
        let hour12 = if hour % 12 == 0 { 12 } else { hour % 12 };
        let text = match part {
            Part::Year => format!("{:02}", date.year.abs() % 100),
            Part::LongYear if date.year < 0 => format!("-{:04}", -date.year),
            Part::LongYear => format!("{:04}", date.year),
            Part::Month => month_name(date.month)[..3].to_owned(),
            Part::LongMonth => month_name(date.month),
            Part::NumMonth => date.month.to_string(),
            Part::ZeroMonth => format!("{:02}", date.month),
            Part::Weekday => weekday_name(date.weekday())[..3].to_owned(),
            Part::LongWeekday => weekday_name(date.weekday()),
            Part::Day => date.day.to_string(),
            Part::UnderDay => format!("{:2}", date.day),
            Part::ZeroDay => format!("{:02}", date.day),
            Part::UnderYearDay => format!("{:3}", date.day_of_year()),
            Part::ZeroYearDay => format!("{:03}", date.day_of_year()),
            Part::Hour => format!("{hour:02}"),
            Part::Hour12 => hour12.to_string(),
            Part::ZeroHour12 => format!("{hour12:02}"),
            Part::Minute => minute.to_string(),
            Part::ZeroMinute => format!("{minute:02}"),
            Part::Second => (second % 60).to_string(),
            Part::ZeroSecond => format!("{:02}", second % 60),
            Part::UpperHalf => if hour >= 12 { "PM" } else { "AM" }.to_owned(),
            Part::LowerHalf => if hour >= 12 { "pm" } else { "am" }.to_owned(),
            Part::ZoneName if !self.zone.name.is_empty() => {
                out.extend_from_slice(self.zone.name.as_bytes());
                return;
            }
            Part::ZoneName => self.offset_text(Offset {
                has_z: false,
                has_colon: false,
                has_minutes: true,
                has_seconds: false,
            }),
            Part::Offset(offset) => self.offset_text(offset),
            Part::Fraction(fraction) => self.fraction_text(fraction),
        };
        out.extend_from_slice(text.as_bytes());
    }

    fn offset_text(&self, form: Offset) -> String {
        let offset = self.zone.offset;
        if form.has_z && offset == 0 {
            return "Z".to_owned();
        }
        // Go takes the sign from the offset in minutes.
        let sign = if offset / 60 < 0 { '-' } else { '+' };
        let minutes = (offset / 60).abs();
        let colon = if form.has_colon { ":" } else { "" };
        let mut text = format!("{sign}{:02}", minutes / 60);
        if form.has_minutes {
            text += &format!("{colon}{:02}", minutes % 60);
        }
        if form.has_seconds {
            text += &format!("{colon}{:02}", offset.abs() % 60);
        }
        text
    }

    fn fraction_text(&self, form: Fraction) -> String {
        if form.is_trimmed && self.nanoseconds == 0 {
            return String::new();
        }
        let digits = format!("{:09}", self.nanoseconds);
        let mut text = String::from(char::from(form.separator));
        text += &digits[..form.digits.min(9)];
        if form.is_trimmed {
            let kept = text.trim_end_matches('0').len();
            text.truncate(if kept == 1 { 0 } else { kept });
        }
        text
    }
}
