//! Parses points in time.

use super::date::{Date, days_in, is_leap};
use super::format::{DAYS, MONTHS};
use super::layout::{Fraction, Offset, Part, next_part};
use super::{Moment, Zone};

/// Parses a point in time by a layout; the error is Go's.
pub(crate) fn parse(layout: &[u8], value: &[u8]) -> Result<Moment, String> {
    let mut reader =
        Reader { layout, value, rest: value, month: None, day: None, day_of_year: None, ..Reader::default() };
    let mut left = layout;
    loop {
        let (before, part) = match next_part(left) {
            Some((before, part, end)) => (before, Some((part, end))),
            None => (left.len(), None),
        };
        reader.skip(&left[..before]).map_err(|()| reader.wrong(&left[..before], reader.rest))?;
        let Some((part, end)) = part else { break };
        let element = &left[before..end];
        left = &left[end..];
        let hold = reader.rest;
        match reader.part(part, left) {
            Ok(()) => {}
            Err(ParseError::Bad) => return Err(reader.wrong(element, hold)),
            Err(ParseError::Range(what)) => return Err(reader.message(&format!(": {what} out of range"))),
        }
    }
    if !reader.rest.is_empty() {
        return Err(reader.message(&format!(": extra text: {}", quote(reader.rest))));
    }
    reader.moment()
}

enum ParseError {
    Bad,
    Range(&'static str),
}

#[derive(Default)]
struct Reader<'t> {
    layout: &'t [u8],
    value: &'t [u8],
    rest: &'t [u8],
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanoseconds: i64,
    /// True if `PM` was read, false for `AM`.
    is_afternoon: Option<bool>,
    is_utc: bool,
    offset: Option<i64>,
    zone_name: &'t [u8],
}

impl<'t> Reader<'t> {
    fn wrong(&self, element: &[u8], found: &[u8]) -> String {
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote(self.value),
            quote(self.layout),
            quote(found),
            quote(element)
        )
    }

    fn message(&self, message: &str) -> String {
        format!("parsing time {}{message}", quote(self.value))
    }

    /// Skips text that must match; a run of spaces matches any other run.
    fn skip(&mut self, prefix: &[u8]) -> Result<(), ()> {
        let mut prefix = prefix;
        while let Some(&byte) = prefix.first() {
            if byte == b' ' {
                if self.rest.first().is_some_and(|&found| found != b' ') {
                    return Err(());
                }
                prefix = trim_start(prefix);
                self.rest = trim_start(self.rest);
                continue;
            }
            if self.rest.first() != Some(&byte) {
                return Err(());
            }
            prefix = &prefix[1..];
            self.rest = &self.rest[1..];
        }
        Ok(())
    }

    fn take(&mut self, length: usize) -> Result<&'t [u8], ParseError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(ParseError::Bad)?;
        self.rest = rest;
        Ok(taken)
    }

    fn is_digit(&self, at: usize) -> bool {
        self.rest.get(at).is_some_and(u8::is_ascii_digit)
    }

    /// Reads one or two digits, exactly two if `is_fixed`.
    fn number(&mut self, is_fixed: bool) -> Result<i64, ParseError> {
        let length = match (self.is_digit(0), self.is_digit(1)) {
            (true, true) => 2,
            (true, false) if !is_fixed => 1,
            _ => return Err(ParseError::Bad),
        };
        number(self.take(length)?)
    }

    fn number_within(&mut self, is_fixed: bool, most: i64, what: &'static str) -> Result<i64, ParseError> {
        let number = self.number(is_fixed)?;
        if number > most { Err(ParseError::Range(what)) } else { Ok(number) }
    }

    fn name(&mut self, names: &[&str], length: Option<usize>) -> Result<i64, ParseError> {
        for (i, name) in names.iter().enumerate() {
            let name = &name.as_bytes()[..length.unwrap_or(name.len())];
            if self.rest.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)) {
                self.rest = &self.rest[name.len()..];
                return Ok(i64::try_from(i).unwrap_or(0));
            }
        }
        Err(ParseError::Bad)
    }

    fn part(&mut self, part: Part, following: &[u8]) -> Result<(), ParseError> {
        match part {
            Part::Year => {
                let year = number(self.take(2)?)?;
                self.year = year + if year >= 69 { 1900 } else { 2000 };
            }
            Part::LongYear => {
                if !self.is_digit(0) {
                    return Err(ParseError::Bad);
                }
                self.year = number(self.take(4)?)?;
            }
            Part::Month => self.month = Some(self.name(&MONTHS, Some(3))? + 1),
            Part::LongMonth => self.month = Some(self.name(&MONTHS, None)? + 1),
            Part::NumMonth | Part::ZeroMonth => {
                let month = self.number_within(part == Part::ZeroMonth, 12, "month")?;
                if month == 0 {
                    return Err(ParseError::Range("month"));
                }
                self.month = Some(month);
            }
            Part::Weekday => drop(self.name(&DAYS, Some(3))?),
            Part::LongWeekday => drop(self.name(&DAYS, None)?),
            Part::Day | Part::UnderDay | Part::ZeroDay => {
                if part == Part::UnderDay {
                    self.rest = self.rest.strip_prefix(b" ").unwrap_or(self.rest);
                }
                self.day = Some(self.number(part == Part::ZeroDay)?);
            }
            Part::UnderYearDay | Part::ZeroYearDay => {
                if part == Part::UnderYearDay {
                    self.rest = self.rest.strip_prefix(b" ").unwrap_or(self.rest);
                    self.rest = self.rest.strip_prefix(b" ").unwrap_or(self.rest);
                }
                let length = (0..3).take_while(|&at| self.is_digit(at)).count();
                if length == 0 || part == Part::ZeroYearDay && length != 3 {
                    return Err(ParseError::Bad);
                }
                self.day_of_year = Some(number(self.take(length)?)?);
            }
            Part::Hour => self.hour = self.number_within(false, 23, "hour")?,
            Part::Hour12 | Part::ZeroHour12 => {
                self.hour = self.number_within(part == Part::ZeroHour12, 12, "hour")?;
            }
            Part::Minute | Part::ZeroMinute => {
                self.minute = self.number_within(part == Part::ZeroMinute, 59, "minute")?;
            }
            Part::Second | Part::ZeroSecond => self.seconds(part == Part::ZeroSecond, following)?,
            Part::UpperHalf => self.half(b"AM", b"PM")?,
            Part::LowerHalf => self.half(b"am", b"pm")?,
            Part::Offset(form) => self.offset(form)?,
            Part::ZoneName => {
                if let Some(rest) = self.rest.strip_prefix(b"UTC") {
                    self.rest = rest;
                    self.is_utc = true;
                } else {
                    let length = zone_length(self.rest).ok_or(ParseError::Bad)?;
                    self.zone_name = self.take(length)?;
                }
            }
            Part::Fraction(Fraction { is_trimmed: false, digits, .. }) => self.fraction(digits + 1)?,
            Part::Fraction(_) => self.any_fraction()?,
        }
        Ok(())
    }

    fn seconds(&mut self, is_fixed: bool, following: &[u8]) -> Result<(), ParseError> {
        self.second = self.number_within(is_fixed, 59, "second")?;
        // The value may have a fraction that the layout lacks.
        if !matches!(next_part(following), Some((_, Part::Fraction(_), _))) {
            self.any_fraction()?;
        }
        Ok(())
    }

    fn any_fraction(&mut self) -> Result<(), ParseError> {
        if matches!(self.rest.first(), Some(b'.' | b',')) && self.is_digit(1) {
            let length = 1 + self.rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            self.fraction(length)?;
        }
        Ok(())
    }

    fn fraction(&mut self, length: usize) -> Result<(), ParseError> {
        let taken = self.take(length)?;
        if !matches!(taken[0], b'.' | b',') {
            return Err(ParseError::Bad);
        }
        let digits = &taken[1..taken.len().min(10)];
        let missing = u32::try_from(9 - digits.len()).unwrap_or(0);
        self.nanoseconds = number(digits)? * 10i64.pow(missing);
        Ok(())
    }

    fn half(&mut self, morning: &[u8], afternoon: &[u8]) -> Result<(), ParseError> {
        let found = self.take(2)?;
        if found != morning && found != afternoon {
            return Err(ParseError::Bad);
        }
        self.is_afternoon = Some(found == afternoon);
        Ok(())
    }

    fn offset(&mut self, form: Offset) -> Result<(), ParseError> {
        if form.has_z
            && let Some(rest) = self.rest.strip_prefix(b"Z")
        {
            self.rest = rest;
            self.is_utc = true;
            return Ok(());
        }
        let colon = usize::from(form.has_colon);
        let length =
            3 + if form.has_minutes { colon + 2 } else { 0 } + if form.has_seconds { colon + 2 } else { 0 };
        let taken = self.take(length)?;
        let mut parts = [0; 3];
        let mut at = 1;
        for (i, part) in parts
            .iter_mut()
            .enumerate()
            .take(1 + usize::from(form.has_minutes) + usize::from(form.has_seconds))
        {
            if i > 0 && form.has_colon {
                if taken[at] != b':' {
                    return Err(ParseError::Bad);
                }
                at += 1;
            }
            *part = number(&taken[at..at + 2])?;
            at += 2;
        }
        for (part, most, what) in [
            (parts[0], 24, "time zone offset hour"),
            (parts[1], 60, "time zone offset minute"),
            (parts[2], 60, "time zone offset second"),
        ] {
            if part > most {
                return Err(ParseError::Range(what));
            }
        }
        let offset = (parts[0] * 60 + parts[1]) * 60 + parts[2];
        self.offset = Some(match taken[0] {
            b'+' => offset,
            b'-' => -offset,
            _ => return Err(ParseError::Bad),
        });
        Ok(())
    }

    fn date(&self) -> Result<Date, String> {
        let year = self.year;
        let Some(day_of_year) = self.day_of_year else {
            let date = Date { year, month: self.month.unwrap_or(1), day: self.day.unwrap_or(1) };
            if date.day < 1 || date.day > days_in(year, date.month) {
                return Err(self.message(": day out of range"));
            }
            return Ok(date);
        };
        if day_of_year < 1 || day_of_year > 365 + i64::from(is_leap(year)) {
            return Err(self.message(": day-of-year out of range"));
        }
        let date = Date::of_day(Date { year, month: 1, day: day_of_year }.number());
        if self.month.is_some_and(|month| month != date.month) {
            return Err(self.message(": day-of-year does not match month"));
        }
        if self.day.is_some_and(|day| day != date.day) {
            return Err(self.message(": day-of-year does not match day"));
        }
        Ok(date)
    }

    fn moment(&self) -> Result<Moment, String> {
        let hour = match self.is_afternoon {
            Some(true) if self.hour < 12 => self.hour + 12,
            Some(false) if self.hour == 12 => 0,
            _ => self.hour,
        };
        let seconds = self.date()?.number() * 86_400 + hour * 3600 + self.minute * 60 + self.second;
        let (zone, offset) = match self.offset {
            _ if self.is_utc => (Zone::utc(), 0),
            // An offset equal to Go's sentinel for "no offset" is treated as no offset.
            Some(0) if self.zone_name.is_empty() || self.zone_name == b"UTC" => (Zone::utc(), 0),
            Some(offset) if offset != -1 => (Zone { name: self.zone_name.into(), offset }, offset),
            _ if !self.zone_name.is_empty() => {
                let digits =
                    self.zone_name.strip_prefix(b"GMT").and_then(|hours| std::str::from_utf8(hours).ok());
                let hours: i64 = digits.and_then(|hours| hours.parse().ok()).unwrap_or(0);
                // This zone affects only how the time is shown: the value counts as UTC.
                (Zone { name: self.zone_name.into(), offset: hours * 3600 }, 0)
            }
            _ => (Zone::utc(), 0),
        };
        Ok(Moment { seconds: seconds - offset, nanoseconds: self.nanoseconds, zone })
    }
}

fn trim_start(text: &[u8]) -> &[u8] {
    &text[text.iter().take_while(|byte| **byte == b' ').count()..]
}

fn number(digits: &[u8]) -> Result<i64, ParseError> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(ParseError::Bad);
    }
    Ok(digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

/// Returns the length of a zone name.
fn zone_length(text: &[u8]) -> Option<usize> {
    if text.len() < 3 {
        return None;
    }
    if text.starts_with(b"ChST") || text.starts_with(b"MeST") {
        return Some(4);
    }
    if let Some(rest) = text.strip_prefix(b"GMT") {
        return Some(3 + signed_length(rest));
    }
    if matches!(text[0], b'+' | b'-') {
        return Some(signed_length(text)).filter(|&length| length > 0);
    }
    match text.iter().take(6).take_while(|byte| byte.is_ascii_uppercase()).count() {
        5 if text[4] == b'T' => Some(5),
        4 if text[3] == b'T' || text.starts_with(b"WITA") => Some(4),
        3 => Some(3),
        _ => None,
    }
}

/// Returns the length of a sign and a number of at most 23 hours.
fn signed_length(text: &[u8]) -> usize {
    if !matches!(text.first(), Some(b'+' | b'-')) {
        return 0;
    }
    let digits: Vec<u8> = text[1..].iter().copied().take_while(u8::is_ascii_digit).collect();
    let hours = number(&digits[..digits.len().min(18)]).unwrap_or(24);
    if hours > 23 { 0 } else { 1 + digits.len() }
}

/// Quotes text as Go's package `time` does: bytes outside ASCII are escaped one by one.
pub(super) fn quote(text: &[u8]) -> String {
    let mut out = String::from("\"");
    for &byte in text {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b' '..0x80 => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}
