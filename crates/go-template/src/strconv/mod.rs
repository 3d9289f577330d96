//! Numbers from text and to text, as Go's `strconv` does it.

mod float;
mod integer;

pub(crate) use float::{FloatFormat, format_float, parse_float};
pub(crate) use integer::{parse_int, parse_uint};

/// Why a text is no number, in Go's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problem {
    Syntax,
    Range,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Syntax => "invalid syntax",
            Self::Range => "value out of range",
        })
    }
}

/// Whether underscores stand only between digits, or between a prefix and a digit.
fn has_proper_underscores(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let bytes = text.as_bytes();
    let has_prefix = bytes.first() == Some(&b'0')
        && bytes.get(1).is_some_and(|b| matches!(b.to_ascii_lowercase(), b'b' | b'o' | b'x'));
    let is_hex = has_prefix && bytes[1].eq_ignore_ascii_case(&b'x');
    // What came last: a digit (the prefix counts as one), an underscore, something else, or nothing yet.
    let mut last = if has_prefix { b'0' } else { b'^' };
    for &b in if has_prefix { &bytes[2..] } else { bytes } {
        let is_digit = b.is_ascii_digit() || is_hex && b.is_ascii_hexdigit();
        if b == b'_' {
            if last != b'0' {
                return false;
            }
            last = b'_';
        } else {
            if !is_digit && last == b'_' {
                return false;
            }
            last = if is_digit { b'0' } else { b'!' };
        }
    }
    last != b'_'
}
