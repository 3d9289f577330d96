//! Makes foreign text safe for terminals.
//!
//! Control characters, characters that reverse the direction of text, and invisible ones become visible escapes.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns `true` for a character that is shown as an escape.
///
/// Joiners (U+200C, U+200D) and variation selectors are not escaped: words and emoji are spelled with them.
pub fn is_unprintable(c: char) -> bool {
    let breaks_or_turns_text = matches!(
        c,
        // Separators of lines and paragraphs, embeddings and overrides; isolates and related deprecated characters.
        '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
        // Direction marks.
        | '\u{61c}' | '\u{200e}' | '\u{200f}'
    );
    let is_invisible = matches!(
        c,
        '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{feff}'
        // Annotations, and the invisible copies of ASCII.
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    c.is_control() || breaks_or_turns_text || is_invisible
}

/// Escapes each unprintable character of a line, except tabs.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, &['\t'])
}

/// Escapes each unprintable character of a text, except tabs and line feeds.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, &['\t', '\n'])
}

fn escaped<'t>(text: &'t str, kept: &[char]) -> Cow<'t, str> {
    let is_escaped = |c: char| is_unprintable(c) && !kept.contains(&c);
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut result = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_escaped(c) { result.extend(c.escape_default()) } else { result.push(c) }
    }
    Cow::Owned(result)
}

/// Escapes unprintable characters of JSON on one line as `\u` escapes.
///
/// Parsers read it as the same document.
pub fn printable_json(json: String) -> String {
    if !json.contains(is_unprintable) {
        return json;
    }
    let mut result = String::with_capacity(json.len() + 8);
    for c in json.chars() {
        if is_unprintable(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(result, "\\u{unit:04x}").expect("writing to a string cannot fail");
            }
        } else {
            result.push(c);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without escapes, U+202E in a tag or a message reversed the rest of the line.
    ///
    /// Other characters hid text.
    #[test]
    fn control_bidirectional_and_invisible_characters_are_escaped() {
        for (text, expected) in [
            ("", ""),
            ("ghcr.io/a/b:1.0", "ghcr.io/a/b:1.0"),
            ("ä 漢字 שלום 👩‍💻 ❤️ a\tb", "ä 漢字 שלום 👩‍💻 ❤️ a\tb"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
            ("a\nb\r\u{1b}[2J\0\u{7f}\u{85}\u{9b}", r"a\nb\r\u{1b}[2J\u{0}\u{7f}\u{85}\u{9b}"),
            ("a\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}b", r"a\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}b"),
            ("\u{2066}\u{2067}\u{2068}\u{2069}\u{206a}", r"\u{2066}\u{2067}\u{2068}\u{2069}\u{206a}"),
            ("\u{200e}\u{200f}\u{61c}", r"\u{200e}\u{200f}\u{61c}"),
            ("\u{2028}\u{2029}", r"\u{2028}\u{2029}"),
            (
                "\u{ad}\u{200b}\u{2060}\u{feff}\u{fff9}\u{e0041}",
                r"\u{ad}\u{200b}\u{2060}\u{feff}\u{fff9}\u{e0041}",
            ),
        ] {
            assert_eq!(printable(text), expected, "{text:?}");
        }
        assert_eq!(printable_lines("a\n\tb\r\u{202e}"), "a\n\tb\\r\\u{202e}");
    }

    #[test]
    fn escaped_json_parses_to_the_same_document() {
        let text = "a\n\u{1b}\u{7f}\u{202e}b\u{e0041}ä";
        let json = serde_json::json!({ text: text });
        let printed = printable_json(json.to_string());
        assert!(
            !printed.contains(is_unprintable) && printed.contains(r"\u007f\u202eb\udb40\udc41ä"),
            "{printed}"
        );
        assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).unwrap(), json);
        assert_eq!(printable_json(r#"{"a":1}"#.to_owned()), r#"{"a":1}"#);
    }
}
