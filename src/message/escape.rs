//! Escapes foreign text for commit messages.
//!
//! A file name, tag or value from a repository must stay where the template puts it: a line break in it could start a
//! header or a trailer.

use std::fmt::Write;

/// Returns true for control characters, line breaks and bidirectional controls.
fn is_escaped(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// An upper bound of the length in bytes of the escaped text.
pub(super) fn escaped_length(text: &str) -> usize {
    text.len() + 4 * text.chars().filter(|c| is_escaped(*c)).count()
}

/// Escapes such characters in the form of Go's `%q`; other text is unchanged.
pub(super) fn escape(text: &str) -> String {
    if !text.contains(is_escaped) {
        return text.to_owned();
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\u{7}' => escaped.push_str("\\a"),
            '\u{8}' => escaped.push_str("\\b"),
            '\u{c}' => escaped.push_str("\\f"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            '\u{b}' => escaped.push_str("\\v"),
            c if !is_escaped(c) => escaped.push(c),
            c => {
                let number = u32::from(c);
                let written = if c.is_ascii() {
                    write!(escaped, "\\x{number:02x}")
                } else {
                    write!(escaped, "\\u{number:04x}")
                };
                written.expect("writing to a string cannot fail");
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_and_control_characters_are_escaped() {
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
            assert_eq!(escape(text), expected);
            assert!((expected.len()..=text.len() + 4 * 9).contains(&escaped_length(text)));
        }
    }
}
