//! Formats integers.

use super::flags::Flags;
use super::quote::{quoted, unicode_point};
use crate::text::push_rune;

/// An integer as sign and magnitude.
#[derive(Debug, Clone, Copy)]
pub(super) struct Integer {
    pub(super) is_negative: bool,
    pub(super) magnitude: u64,
    pub(super) is_signed: bool,
}

impl Integer {
    pub(super) fn signed(number: i64) -> Self {
        Self { is_negative: number < 0, magnitude: number.unsigned_abs(), is_signed: true }
    }

    pub(super) fn unsigned(number: u64) -> Self {
        Self { is_negative: false, magnitude: number, is_signed: false }
    }

    /// Returns the character with this code point.
    fn character(self) -> char {
        let code = u32::try_from(self.magnitude).ok().filter(|_| !self.is_negative);
        code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

/// Formats an integer; returns false if the verb does not apply to integers.
pub(super) fn print_integer(out: &mut Vec<u8>, flags: &Flags, number: Integer, verb: char) -> bool {
    match verb {
        'v' if flags.sharp_v && !number.is_signed => {
            print_digits(out, &Flags { sharp: true, ..*flags }, number, 'x');
        }
        'v' | 'd' => print_digits(out, flags, number, 'd'),
        'b' | 'o' | 'O' | 'x' | 'X' => print_digits(out, flags, number, verb),
        'c' => {
            let mut bytes = Vec::new();
            push_rune(&mut bytes, number.character());
            flags.pad(out, &bytes);
        }
        'q' => {
            let c = number.character();
            let text = quoted(c.encode_utf8(&mut [0; 4]).as_bytes(), '\'', flags.plus);
            flags.pad(out, text.as_bytes());
        }
        'U' => print_unicode(out, flags, number),
        _ => return false,
    }
    true
}

/// Appends the digits with prefix and sign.
pub(super) fn print_digits(out: &mut Vec<u8>, flags: &Flags, number: Integer, verb: char) {
    if flags.precision == Some(0) && number.magnitude == 0 {
        Flags { zero: false, ..*flags }.fill(out, flags.width.unwrap_or(0));
        return;
    }
    let has_sign = number.is_negative || flags.plus || flags.space;
    let least = match (flags.precision, flags.width) {
        (Some(precision), _) => precision,
        (None, Some(width)) if flags.zero && !flags.minus => width.saturating_sub(usize::from(has_sign)),
        _ => 0,
    };
    let n = number.magnitude;
    let digits = match verb {
        'b' => format!("{n:b}"),
        'o' | 'O' => format!("{n:o}"),
        'x' => format!("{n:x}"),
        'X' => format!("{n:X}"),
        _ => n.to_string(),
    };
    let mut digits = with_zeros(&digits, least);
    let prefix = match verb {
        'b' if flags.sharp => "0b",
        'o' if flags.sharp && !digits.starts_with('0') => "0",
        'O' if flags.sharp && !digits.starts_with('0') => "0o0",
        'O' => "0o",
        'x' if flags.sharp => "0x",
        'X' if flags.sharp => "0X",
        _ => "",
    };
    digits.insert_str(0, prefix);
    if number.is_negative {
        digits.insert(0, '-');
    } else if flags.plus {
        digits.insert(0, '+');
    } else if flags.space {
        digits.insert(0, ' ');
    }
    flags.pad_with_blanks(out, digits.as_bytes());
}

/// Pads digits with leading zeros to a length.
///
/// The length may exceed the limit of Rust's own formatting.
fn with_zeros(digits: &str, length: usize) -> String {
    "0".repeat(length.saturating_sub(digits.len())) + digits
}

fn print_unicode(out: &mut Vec<u8>, flags: &Flags, number: Integer) {
    // A negative number is shown as its bit pattern.
    let code = if number.is_negative { number.magnitude.wrapping_neg() } else { number.magnitude };
    let digits = flags.precision.unwrap_or(0).max(4);
    let mut text = format!("U+{}", with_zeros(&format!("{code:X}"), digits));
    if flags.sharp
        && let Some(c) = u32::try_from(code).ok().and_then(char::from_u32)
    {
        let point = unicode_point(c);
        text.push_str(point.find(' ').map_or("", |at| &point[at..]));
    }
    flags.pad_with_blanks(out, text.as_bytes());
}
