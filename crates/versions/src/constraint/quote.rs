//! Quotes text as Go's `%q` does, for messages that must equal Flux's.

use std::fmt::{self, Write};

/// A text that is displayed in quotes.
pub(super) struct Quoted<'t>(pub(super) &'t str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(formatter, "\\{c}")?,
                '\x07' => formatter.write_str("\\a")?,
                '\x08' => formatter.write_str("\\b")?,
                '\x0c' => formatter.write_str("\\f")?,
                '\n' => formatter.write_str("\\n")?,
                '\r' => formatter.write_str("\\r")?,
                '\t' => formatter.write_str("\\t")?,
                '\x0b' => formatter.write_str("\\v")?,
                c if is_printable(c) => formatter.write_char(c)?,
                c if c.is_ascii() => write!(formatter, "\\x{:02x}", u32::from(c))?,
                c if u32::from(c) <= 0xffff => write!(formatter, "\\u{:04x}", u32::from(c))?,
                c => write!(formatter, "\\U{:08x}", u32::from(c))?,
            }
        }
        formatter.write_char('"')
    }
}

/// Returns whether Go prints a character as it is.
///
/// These are letters, marks, numbers, punctuation, symbols and the ASCII space.
fn is_printable(c: char) -> bool {
    // Rust uses the same classes, except that it escapes a mark at the beginning, so a letter precedes it here.
    let mut buffer = [b'a'; 5];
    let length = c.encode_utf8(&mut buffer[1..]).len();
    let pair = std::str::from_utf8(&buffer[..=length]).expect("a letter and a character are UTF-8");
    c == '\'' || pair.escape_debug().count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_as_in_go() {
        for (text, expected) in [
            ("", r#""""#),
            (r#"a "b" \ 'c'"#, r#""a \"b\" \\ 'c'""#),
            ("\x07\x08\x0c\n\r\t\x0b\0\x1b\x7f", r#""\a\b\f\n\r\t\v\x00\x1b\x7f""#),
            ("\u{80}\u{a0}\u{ad}\u{200b}\u{2028}\u{feff}", r#""\u0080\u00a0\u00ad\u200b\u2028\ufeff""#),
            ("ä٣e\u{301}€\u{fffd}😀", "\"ä٣e\u{301}€\u{fffd}😀\""),
            ("\u{e0001}\u{10ffff}", r#""\U000e0001\U0010ffff""#),
        ] {
            assert_eq!(Quoted(text).to_string(), expected);
        }
    }
}
