//! Points in time, as Go's package `time` reads and prints them. Local time is UTC.

mod date;
mod duration;
mod format;
mod layout;
mod parse;

pub(crate) use date::Date;
pub(crate) use duration::{parse_duration, show_duration};
pub(crate) use format::{month_name, weekday_name};
pub(crate) use parse::parse;

use crate::text::Text;

/// A time zone: its offset from UTC, and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Zone {
    pub(crate) name: Text,
    pub(crate) offset: i64,
}

/// A point in time with its time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Seconds since 1970 in UTC.
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: i64,
    pub(crate) zone: Zone,
}

impl Zone {
    pub(crate) fn utc() -> Self {
        Self { name: "UTC".into(), offset: 0 }
    }
}

impl Moment {
    /// Returns the first moment of year 1, the zero value of Go's `time.Time`.
    pub(crate) fn zero() -> Self {
        Self { seconds: -62_135_596_800, nanoseconds: 0, zone: Zone::utc() }
    }

    /// Adds nanoseconds, which may be negative.
    pub(crate) fn plus(&self, nanoseconds: i64) -> Self {
        let total = self.nanoseconds + nanoseconds.rem_euclid(1_000_000_000);
        let seconds = self.seconds + nanoseconds.div_euclid(1_000_000_000) + total / 1_000_000_000;
        Self { seconds, nanoseconds: total % 1_000_000_000, zone: self.zone.clone() }
    }

    /// Returns the seconds since midnight in the zone.
    pub(crate) fn second_of_day(&self) -> i64 {
        (self.seconds + self.zone.offset).rem_euclid(86_400)
    }

    /// Returns the date in the zone.
    pub(crate) fn date(&self) -> Date {
        Date::of_day((self.seconds + self.zone.offset).div_euclid(86_400))
    }
}
