//! The parts of foreign text that are shown.

use crate::printable::printable;

/// The maximum of a program's output in an error, in bytes before they are escaped.
const MAX_OUTPUT_END: usize = 1024;

/// Returns the end of a program's output on one line, with visible control characters.
pub(super) fn end(output: &[u8]) -> String {
    let kept = &output[output.len().saturating_sub(MAX_OUTPUT_END)..];
    // The first character may be cut.
    let is_continuation = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    let cut = if kept.len() < output.len() {
        kept.iter().take_while(|byte| is_continuation(byte)).count()
    } else {
        0
    };
    printable(String::from_utf8_lossy(&kept[cut..]).trim()).into_owned()
}

/// Returns the beginning of a text, with visible control characters.
///
/// It has at most `limit` bytes before it is escaped.
pub(super) fn beginning(text: &str, limit: usize) -> String {
    let kept = &text[..text.floor_char_boundary(limit)];
    let more = if kept.len() < text.len() { "…" } else { "" };
    format!("{}{more}", printable(kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_output_is_bounded_and_printable() {
        for (output, expected) in [
            (b"".as_slice(), ""),
            (b"error: no space\n", "error: no space"),
            (b"one\ntwo\n\n", r"one\ntwo"),
            (b"\x1b[31mred\x07", r"\u{1b}[31mred\u{7}"),
            (b"\xff\xfe", "\u{fffd}\u{fffd}"),
            (b"\x80 is no character", "\u{fffd} is no character"),
        ] {
            assert_eq!(end(output), expected);
        }
        let long = [b"begin".as_slice(), &[b'x'; 4096], b"last words"].concat();
        let shown = end(&long);
        assert!(shown.len() == MAX_OUTPUT_END && shown.ends_with("xlast words"), "{shown}");
        let cut = "ä".repeat(MAX_OUTPUT_END);
        assert_eq!(end(&cut.as_bytes()[..cut.len() - 1]).chars().rev().nth(1), Some('ä'));
        assert!(end(format!("{cut}x").as_bytes()).starts_with('ä'));
    }

    #[test]
    fn the_beginning_of_a_text_is_bounded_and_printable() {
        assert_eq!(beginning("42.1", 4), "42.1");
        assert_eq!(beginning("42.10", 4), "42.1…");
        assert_eq!(beginning("aä", 2), "a…");
        assert_eq!(beginning("\u{202e}42\n", 10), r"\u{202e}42\n");
    }
}
