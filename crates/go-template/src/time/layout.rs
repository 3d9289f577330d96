//! Go's time layouts.
//!
//! A layout is a text that shows one reference time; its parts are replaced by those of another time.

/// A part of a layout, for example the hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    LongMonth,
    Month,
    NumMonth,
    ZeroMonth,
    LongWeekday,
    Weekday,
    Day,
    UnderDay,
    ZeroDay,
    UnderYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    UpperHalf,
    LowerHalf,
    ZoneName,
    Offset(Offset),
    Fraction(Fraction),
}

/// The offset of a zone from UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offset {
    /// True if UTC is written as `Z`.
    pub(super) has_z: bool,
    pub(super) has_colon: bool,
    pub(super) has_minutes: bool,
    pub(super) has_seconds: bool,
}

/// A fraction of a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fraction {
    pub(super) separator: u8,
    pub(super) digits: usize,
    /// True if trailing zeros are omitted.
    pub(super) is_trimmed: bool,
}

/// Returns the first part of a layout.
///
/// The result has the length of the text before the part, the part, and the position behind it.
pub(super) fn next_part(layout: &[u8]) -> Option<(usize, Part, usize)> {
    (0..layout.len()).find_map(|at| {
        let (part, length) = part_at(&layout[at..])?;
        // The underscore before a year is literal text.
        let before = if part == Part::LongYear && layout[at] == b'_' { 1 } else { 0 };
        Some((at + before, part, at + length))
    })
}

fn part_at(rest: &[u8]) -> Option<(Part, usize)> {
    let has = |text: &str| rest.starts_with(text.as_bytes());
    let ends_word = |length: usize| !rest.get(length).is_some_and(u8::is_ascii_lowercase);
    let found = match rest[0] {
        b'J' if has("January") => (Part::LongMonth, 7),
        b'J' if has("Jan") && ends_word(3) => (Part::Month, 3),
        b'M' if has("Monday") => (Part::LongWeekday, 6),
        b'M' if has("Mon") && ends_word(3) => (Part::Weekday, 3),
        b'M' if has("MST") => (Part::ZoneName, 3),
        b'0' if has("01") => (Part::ZeroMonth, 2),
        b'0' if has("02") => (Part::ZeroDay, 2),
        b'0' if has("03") => (Part::ZeroHour12, 2),
        b'0' if has("04") => (Part::ZeroMinute, 2),
        b'0' if has("05") => (Part::ZeroSecond, 2),
        b'0' if has("06") => (Part::Year, 2),
        b'0' if has("002") => (Part::ZeroYearDay, 3),
        b'1' if has("15") => (Part::Hour, 2),
        b'1' => (Part::NumMonth, 1),
        b'2' if has("2006") => (Part::LongYear, 4),
        b'2' => (Part::Day, 1),
        b'_' if has("_2006") => (Part::LongYear, 5),
        b'_' if has("_2") => (Part::UnderDay, 2),
        b'_' if has("__2") => (Part::UnderYearDay, 3),
        b'3' => (Part::Hour12, 1),
        b'4' => (Part::Minute, 1),
        b'5' => (Part::Second, 1),
        b'P' if has("PM") => (Part::UpperHalf, 2),
        b'p' if has("pm") => (Part::LowerHalf, 2),
        b'-' | b'Z' => return offset(rest),
        b'.' | b',' => return fraction(rest),
        _ => return None,
    };
    Some(found)
}

fn offset(rest: &[u8]) -> Option<(Part, usize)> {
    let has_z = rest[0] == b'Z';
    let forms = [
        ("070000", false, true, true),
        ("07:00:00", true, true, true),
        ("0700", false, true, false),
        ("07:00", true, true, false),
        ("07", false, false, false),
    ];
    forms.into_iter().find(|(form, ..)| rest[1..].starts_with(form.as_bytes())).map(
        |(form, has_colon, has_minutes, has_seconds)| {
            (Part::Offset(Offset { has_z, has_colon, has_minutes, has_seconds }), form.len() + 1)
        },
    )
}

fn fraction(rest: &[u8]) -> Option<(Part, usize)> {
    let &digit = rest.get(1).filter(|byte| matches!(byte, b'0' | b'9'))?;
    let digits = rest[1..].iter().take_while(|byte| **byte == digit).count();
    if rest.get(1 + digits).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    Some((Part::Fraction(Fraction { separator: rest[0], digits, is_trimmed: digit == b'9' }), 1 + digits))
}
