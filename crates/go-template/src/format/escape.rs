//! Escapes text for HTML, JavaScript and URL queries.

use crate::text::{push_rune, runes};
use crate::unicode::is_printable;

/// Go's `html`.
pub(crate) fn html_escape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &b in text {
        match b {
            0 => out.extend_from_slice("\u{fffd}".as_bytes()),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            _ => out.push(b),
        }
    }
    out
}

/// Go's `js`.
pub(crate) fn js_escape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for (at, c, width) in runes(text) {
        match c {
            '\\' | '\'' | '"' => {
                out.push(b'\\');
                push_rune(&mut out, c);
            }
            '<' | '>' | '&' | '=' | '\0'..' ' => {
                out.extend_from_slice(format!("\\u{:04X}", u32::from(c)).as_bytes());
            }
            c if c.is_ascii() || is_printable(c) => out.extend_from_slice(&text[at..at + width]),
            c => out.extend_from_slice(format!("\\u{:04X}", u32::from(c)).as_bytes()),
        }
    }
    out
}

/// Go's `urlquery`.
pub(crate) fn query_escape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &b in text {
        match b {
            b' ' => out.push(b'+'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(b),
            _ => out.extend_from_slice(format!("%{b:02X}").as_bytes()),
        }
    }
    out
}
