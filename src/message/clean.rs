//! Text of others, made fit to stand in a message.
//!
//! A file name, a tag or a value of somebody's repository must stay where the template puts it: a line break in it
//! would begin a line of its own, and so perhaps a header or a trailer.

use std::fmt::Write;

/// Whether a character is to be seen as an escape: control characters, whatever breaks a line, and what turns the
/// direction of the text around it.
fn is_escaped(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// An upper bound of the length in bytes that a text has when it is clean.
pub(super) fn cleaned_length(text: &str) -> usize {
    text.len() + 4 * text.chars().filter(|c| is_escaped(*c)).count()
}

/// The text with such characters as escapes, in the form that `%q` of Go has for them; other text stays as it is.
pub(super) fn clean(text: &str) -> String {
    if !text.contains(is_escaped) {
        return text.to_owned();
    }
    let mut cleaned = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\u{7}' => cleaned.push_str("\\a"),
            '\u{8}' => cleaned.push_str("\\b"),
            '\u{c}' => cleaned.push_str("\\f"),
            '\n' => cleaned.push_str("\\n"),
            '\r' => cleaned.push_str("\\r"),
            '\t' => cleaned.push_str("\\t"),
            '\u{b}' => cleaned.push_str("\\v"),
            c if !is_escaped(c) => cleaned.push(c),
            c => {
                let number = u32::from(c);
                let written = if c.is_ascii() {
                    write!(cleaned, "\\x{number:02x}")
                } else {
                    write!(cleaned, "\\u{number:04x}")
                };
                written.expect("writing to a string cannot fail");
            }
        }
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_breaks_lines_or_commands_is_seen() {
        for (text, expected) in [
            ("", ""),
            ("ghcr.io/a/b:1.0", "ghcr.io/a/b:1.0"),
            ("ä 漢字 👩‍💻 \u{200f}", "ä 漢字 👩‍💻 \u{200f}"),
            (r"C:\temp\new", r"C:\temp\new"),
            ("a\nSigned-off-by: x", r"a\nSigned-off-by: x"),
            ("\r\n\t\u{7}\u{8}\u{b}\u{c}", r"\r\n\t\a\b\v\f"),
            ("\0\u{1b}[31m\u{7f}", r"\x00\x1b[31m\x7f"),
            ("\u{80}\u{85}\u{9f}", r"\u0080\u0085\u009f"),
            ("a\u{2028}b\u{2029}c", r"a\u2028b\u2029c"),
            ("a\u{202e}b\u{2066}c", r"a\u202eb\u2066c"),
        ] {
            assert_eq!(clean(text), expected);
            assert!((expected.len()..=text.len() + 4 * 9).contains(&cleaned_length(text)));
        }
    }
}
