//! Points in time, as Go's package `time` reads and prints them. Local time is UTC.

mod civil;
mod duration;
mod layout;
mod read;
mod show;

pub(crate) use civil::Date;
pub(crate) use duration::{parse_duration, show_duration};
pub(crate) use read::read;
pub(crate) use show::{month_name, weekday_name};

use crate::text::Text;

/// The offset of a zone from UTC, and what it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Zone {
    pub(crate) name: Text,
    pub(crate) offset: i64,
}

/// A point in time, seen from a zone.
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
    /// The first moment of the first year, which is Go's zero.
    pub(crate) fn zero() -> Self {
        Self { seconds: -62_135_596_800, nanoseconds: 0, zone: Zone::utc() }
    }

    /// The same, some nanoseconds later or earlier.
    pub(crate) fn plus(&self, nanoseconds: i64) -> Self {
        let total = self.nanoseconds + nanoseconds.rem_euclid(1_000_000_000);
        let seconds = self.seconds + nanoseconds.div_euclid(1_000_000_000) + total / 1_000_000_000;
        Self { seconds, nanoseconds: total % 1_000_000_000, zone: self.zone.clone() }
    }

    /// The seconds since midnight where the zone is.
    pub(crate) fn second_of_day(&self) -> i64 {
        (self.seconds + self.zone.offset).rem_euclid(86_400)
    }

    /// The day where the zone is.
    pub(crate) fn date(&self) -> Date {
        Date::of_day((self.seconds + self.zone.offset).div_euclid(86_400))
    }
}
