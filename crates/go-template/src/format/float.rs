//! Formats floating-point and complex numbers.

use super::flags::Flags;
use crate::strconv::{FloatFormat, format_float};

/// Formats a float; returns false if the verb does not apply to floats.
pub(super) fn print_float(out: &mut Vec<u8>, flags: &Flags, number: f64, verb: char) -> bool {
    let (format, precision) = match verb {
        'v' | 'g' | 'G' => (FloatFormat::General, None),
        'b' => (FloatFormat::Binary, None),
        'x' | 'X' => (FloatFormat::Hex, None),
        'f' | 'F' => (FloatFormat::Plain, Some(6)),
        'e' | 'E' => (FloatFormat::Exponent, Some(6)),
        _ => return false,
    };
    let precision = flags.precision.or(precision);
    let mut text = format_float(number, format, precision);
    let is_finite = number.is_finite();
    if is_finite && matches!(verb, 'G' | 'X' | 'E') {
        text = text.to_uppercase();
    }
    if !text.starts_with(['-', '+']) {
        text.insert(0, '+');
    }
    if flags.space && text.starts_with('+') && !flags.plus {
        text.replace_range(..1, " ");
    }
    if !is_finite {
        let bare = number.is_nan() && !flags.space && !flags.plus
            || number.is_infinite() && text.starts_with('+') && !flags.plus;
        flags.pad_with_blanks(out, &text.as_bytes()[usize::from(bare && number.is_nan())..]);
        return true;
    }
    if flags.sharp && verb != 'b' {
        text = with_point(&text, verb, precision);
    }
    if flags.plus || !text.starts_with('+') {
        let width = flags.width.unwrap_or(0);
        if flags.zero && !flags.minus && width > text.len() {
            out.push(text.as_bytes()[0]);
            flags.fill(out, width - text.len());
            out.extend_from_slice(&text.as_bytes()[1..]);
        } else {
            flags.pad(out, text.as_bytes());
        }
        return true;
    }
    flags.pad(out, &text.as_bytes()[1..]);
    true
}

/// Implements the `#` flag: always a decimal point, and no trailing zeros removed.
fn with_point(text: &str, verb: char, precision: Option<usize>) -> String {
    let mut missing = match verb {
        'v' | 'g' | 'G' | 'x' => precision.unwrap_or(6) as i64,
        _ => 0,
    };
    let is_hex = matches!(verb, 'x' | 'X');
    let tail_at = text.find(|c: char| matches!(c, 'p' | 'P') || !is_hex && matches!(c, 'e' | 'E'));
    let (number, tail) = text.split_at(tail_at.unwrap_or(text.len()));
    let mut saw_nonzero = false;
    for c in number[1..].chars().filter(|&c| c != '.') {
        saw_nonzero |= c != '0';
        missing -= i64::from(saw_nonzero);
    }
    let mut number = number.to_owned();
    if !number.contains('.') {
        if number.len() == 2 && number.ends_with('0') {
            missing -= 1;
        }
        number.push('.');
    }
    number.extend(std::iter::repeat_n('0', usize::try_from(missing).unwrap_or(0)));
    number + tail
}

/// Formats a complex number; returns false if the verb does not apply to it.
pub(super) fn print_complex(out: &mut Vec<u8>, flags: &Flags, number: (f64, f64), verb: char) -> bool {
    if !matches!(verb, 'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E') {
        return false;
    }
    out.push(b'(');
    print_float(out, flags, number.0, verb);
    print_float(out, &Flags { plus: true, ..*flags }, number.1, verb);
    out.extend_from_slice(b"i)");
    true
}
