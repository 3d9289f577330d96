//! Days and calendar dates.

/// A calendar date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Date {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: i64,
    /// From 1.
    pub(crate) day: i64,
}

pub(crate) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// The number of days of a month.
pub(crate) fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Date {
    /// Returns the date of a day, counted from 1970-01-01.
    pub(crate) fn of_day(day: i64) -> Self {
        // Years begin in March here, so that the leap day is the last day of a year.
        let day = day + 719_468;
        let era = day.div_euclid(146_097);
        let of_era = day.rem_euclid(146_097);
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        Self { year: year + era * 400 + i64::from(month <= 2), month, day }
    }

    /// Returns the day, counted from 1970-01-01.
    ///
    /// Months and days beyond the calendar carry over.
    pub(crate) fn number(self) -> i64 {
        let months = self.month - 1;
        let year = self.year + months.div_euclid(12);
        let month = months.rem_euclid(12) + 1;
        let year = year - i64::from(month <= 2);
        let era = year.div_euclid(400);
        let of_era = year.rem_euclid(400);
        let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + self.day - 1;
        era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
    }

    /// Returns the day of the week; Sunday is 0.
    pub(crate) fn weekday(self) -> i64 {
        (self.number() + 4).rem_euclid(7)
    }

    /// Returns the day of the year, from 1.
    pub(crate) fn day_of_year(self) -> i64 {
        self.number() - Self { month: 1, day: 1, ..self }.number() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_day_numbers_round_trip() {
        assert_eq!(Date { year: 1970, month: 1, day: 1 }.number(), 0);
        assert_eq!(Date { year: 2024, month: 2, day: 30 }.number(), 19_783);
        assert_eq!(Date { year: 2024, month: 13, day: 1 }.number(), 20_089);
        for day in (-800_000..800_000).step_by(97) {
            assert_eq!(Date::of_day(day).number(), day);
        }
        assert_eq!(Date { year: 2024, month: 12, day: 31 }.day_of_year(), 366);
        assert_eq!(Date { year: 2026, month: 11, day: 21 }.weekday(), 6);
    }
}
