//! Character classes and case mappings by Go's tables, whose Unicode version differs from Rust's.

mod tables;

use std::cmp::Ordering;

use tables::{CASES, DIGIT, LETTER, LOWER, NUMBER, PRINTABLE, PUNCTUATION, TAKES_TURNS, TITLE, UPPER};

/// A letter case; the numbers are indexes into the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Upper = 0,
    Lower = 1,
    Title = 2,
}

pub(crate) fn is_letter(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphabetic() } else { is_among(LETTER, c) }
}

pub(crate) fn is_digit(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_digit() } else { is_among(DIGIT, c) }
}

pub(crate) fn is_number(c: char) -> bool {
    is_among(NUMBER, c)
}

pub(crate) fn is_upper(c: char) -> bool {
    is_among(UPPER, c)
}

pub(crate) fn is_lower(c: char) -> bool {
    is_among(LOWER, c)
}

pub(crate) fn is_title(c: char) -> bool {
    is_among(TITLE, c)
}

pub(crate) fn is_punctuation(c: char) -> bool {
    is_among(PUNCTUATION, c)
}

/// Returns whether Go prints a character as it is.
///
/// These are letters, marks, numbers, punctuation, symbols and the ASCII space.
pub(crate) fn is_printable(c: char) -> bool {
    if c.is_ascii() { matches!(c, ' '..='~') } else { is_among(PRINTABLE, c) }
}

pub(crate) fn to_upper(c: char) -> char {
    to(c, Case::Upper)
}

pub(crate) fn to_lower(c: char) -> char {
    to(c, Case::Lower)
}

pub(crate) fn to_title(c: char) -> char {
    to(c, Case::Title)
}

fn is_among(ranges: &[(u32, u32)], c: char) -> bool {
    ranges.binary_search_by(|&(first, last)| place(first, last, c)).is_ok()
}

fn place(first: u32, last: u32, c: char) -> Ordering {
    let c = u32::from(c);
    if last < c {
        Ordering::Less
    } else if first > c {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}

/// Maps one character to one character, unlike Rust's own mapping, which may give several.
fn to(c: char, case: Case) -> char {
    let Ok(found) = CASES.binary_search_by(|&(first, last, _)| place(first, last, c)) else { return c };
    let (first, _, distances) = CASES[found];
    let distance = distances[case as usize];
    let changed = if distance == TAKES_TURNS {
        // In such a run, upper case has even distances from the first character, lower case odd ones.
        let is_lower = u32::from(case == Case::Lower);
        first + (((u32::from(c) - first) & !1) | is_lower)
    } else {
        u32::from(c).wrapping_add_signed(distance)
    };
    char::from_u32(changed).unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_changes_character_by_character() {
        assert_eq!(['a', 'ß', 'ǆ', 'ā', 'ÿ', 'ı'].map(to_upper), ['A', 'ß', 'Ǆ', 'Ā', 'Ÿ', 'I']);
        assert_eq!(['A', 'ǅ', 'Ā', 'İ', 'K'].map(to_lower), ['a', 'ǆ', 'ā', 'i', 'k']);
        assert_eq!(['a', 'ǆ', '1'].map(to_title), ['A', 'ǅ', '1']);
    }

    #[test]
    fn characters_are_classified() {
        assert!(is_letter('é') && is_digit('٣') && is_number('½') && is_punctuation('«') && is_title('ǅ'));
        assert!(is_printable('😀') && !is_printable('\u{a0}') && !is_printable('\u{200b}'));
        assert!(is_upper('É') && is_lower('é') && !is_letter('_'));
    }
}
