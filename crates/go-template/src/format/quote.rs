//! Quotes and escapes text.

use std::fmt::Write;

use crate::text::runes;
use crate::unicode::is_printable;

/// Quotes text as Go's `%q` does.
pub(crate) fn quote(text: &str) -> String {
    quote_bytes(text.as_bytes())
}

/// Quotes bytes as Go's `%q` does.
pub(crate) fn quote_bytes(bytes: &[u8]) -> String {
    quoted(bytes, '"', false)
}

/// Quotes bytes with a quotation mark; `only_ascii` escapes everything outside ASCII.
pub(super) fn quoted(bytes: &[u8], mark: char, only_ascii: bool) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push(mark);
    for (at, c, width) in runes(bytes) {
        if c == char::REPLACEMENT_CHARACTER && width == 1 {
            write!(out, "\\x{:02x}", bytes[at]).expect("a string takes any text");
        } else {
            push_escaped(&mut out, c, mark, only_ascii);
        }
    }
    out.push(mark);
    out
}

fn push_escaped(out: &mut String, c: char, mark: char, only_ascii: bool) {
    if c == mark || c == '\\' {
        out.push('\\');
        out.push(c);
        return;
    }
    if is_printable(c) && (c.is_ascii() || !only_ascii) {
        out.push(c);
        return;
    }
    let simple = match c {
        '\x07' => 'a',
        '\x08' => 'b',
        '\x0c' => 'f',
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\x0b' => 'v',
        _ => {
            let code = u32::from(c);
            match code {
                0..=0x1f | 0x7f => write!(out, "\\x{code:02x}"),
                0..=0xffff => write!(out, "\\u{code:04x}"),
                _ => write!(out, "\\U{code:08x}"),
            }
            .expect("a string takes any text");
            return;
        }
    };
    out.push('\\');
    out.push(simple);
}

/// Returns whether bytes can be written unchanged between backquotes.
pub(crate) fn can_backquote(bytes: &[u8]) -> bool {
    runes(bytes).all(|(_, c, width)| {
        !(width == 1 && c == char::REPLACEMENT_CHARACTER)
            && c != '\u{feff}'
            && (c == '\t' || c >= ' ' && c != '`' && c != '\x7f')
    })
}

/// Formats a character with its code point, as Go's `%#U` does.
pub(crate) fn unicode_point(c: char) -> String {
    let code = u32::from(c);
    if is_printable(c) { format!("U+{code:04X} '{c}'") } else { format!("U+{code:04X}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_as_in_go() {
        for (bytes, expected) in [
            (b"".as_slice(), r#""""#),
            (br#"a "b" \ 'c'"#, r#""a \"b\" \\ 'c'""#),
            (b"\x07\x08\x0c\n\r\t\x0b\0\x1b\x7f\xff", r#""\a\b\f\n\r\t\v\x00\x1b\x7f\xff""#),
            ("\u{80}\u{a0}\u{fffd}ä😀\u{e0001}".as_bytes(), "\"\\u0080\\u00a0\u{fffd}ä😀\\U000e0001\""),
        ] {
            assert_eq!(quote_bytes(bytes), expected);
        }
        assert_eq!(quoted("ä'".as_bytes(), '\'', true), r"'\u00e4\''");
    }
}
