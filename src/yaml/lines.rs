//! Finds lines in a text by byte offset.
//!
//! Like in YAML, a line ends at LF, CR or CR LF.

fn is_break(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

/// The start of the line that contains `offset`.
pub fn line_start(source: &str, offset: usize) -> usize {
    source.as_bytes()[..offset].iter().rposition(|&byte| is_break(byte)).map_or(0, |at| at + 1)
}

/// The text of the line that contains `offset`, up to `offset`.
pub fn text_before(source: &str, offset: usize) -> &str {
    let text = &source[line_start(source, offset)..offset];
    if text.len() == offset { text.trim_start_matches('\u{feff}') } else { text }
}

/// Returns the start of the line above the line that starts at `start`.
///
/// Returns `None` on the first line.
pub fn start_of_line_above(source: &str, start: usize) -> Option<usize> {
    let break_length = match source.as_bytes()[..start] {
        [] => return None,
        [.., b'\r', b'\n'] => 2,
        _ => 1,
    };
    Some(line_start(source, start - break_length))
}

/// The end of the line that contains `offset`, including its line break.
pub fn next_line(source: &str, offset: usize) -> usize {
    let bytes = source.as_bytes();
    let Some(at) = bytes[offset..].iter().position(|&byte| is_break(byte)).map(|at| offset + at) else {
        return bytes.len();
    };
    if bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n') { at + 2 } else { at + 1 }
}

/// The line that starts at `start`, without its line break.
pub fn line_at(source: &str, start: usize) -> &str {
    let rest = &source[start..];
    let end = rest.bytes().position(is_break).unwrap_or(rest.len());
    &rest[..end]
}

/// Returns true if a line is empty or white space.
pub fn is_blank(line: &str) -> bool {
    line.bytes().all(|byte| byte == b' ' || byte == b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_every_kind_of_break() {
        let source = "one\r\ntwo\rthree\nfour";
        let at = |word: &str| source.find(word).unwrap();
        assert_eq!(line_start(source, at("wo")), at("two"));
        assert_eq!(start_of_line_above(source, at("two")), Some(0));
        assert_eq!(start_of_line_above(source, at("three")), Some(at("two")));
        assert_eq!(start_of_line_above(source, at("four")), Some(at("three")));
        assert_eq!(start_of_line_above(source, 0), None);
        assert_eq!(next_line(source, 0), at("two"));
        assert_eq!(next_line(source, at("two")), at("three"));
        assert_eq!(next_line(source, at("four")), source.len());
        assert_eq!(line_at(source, at("three")), "three");
    }

    #[test]
    fn a_byte_order_mark_is_not_content() {
        assert_eq!(text_before("\u{feff}# c", 3), "");
        assert_eq!(text_before("x\n# c", 2), "");
    }
}
