//! Formats strings.

use super::flags::Flags;
use super::quote::{can_backquote, quoted};
use crate::text::runes;

/// Formats a string; returns false if the verb does not apply to strings.
pub(super) fn print_text(out: &mut Vec<u8>, flags: &Flags, text: &[u8], verb: char) -> bool {
    match verb {
        'v' if flags.sharp_v => print_quoted(out, flags, text),
        'v' | 's' => flags.pad(out, truncated(flags, text)),
        'x' | 'X' => print_hex(out, flags, text, verb),
        'q' => print_quoted(out, flags, text),
        _ => return false,
    }
    true
}

fn truncated<'t>(flags: &Flags, text: &'t [u8]) -> &'t [u8] {
    let end =
        flags.precision.and_then(|precision| runes(text).nth(precision)).map_or(text.len(), |(at, ..)| at);
    &text[..end]
}

fn print_quoted(out: &mut Vec<u8>, flags: &Flags, text: &[u8]) {
    let text = truncated(flags, text);
    if flags.sharp && can_backquote(text) {
        flags.pad(out, &[b"`", text, b"`"].concat());
    } else {
        flags.pad(out, quoted(text, '"', flags.plus).as_bytes());
    }
}

fn print_hex(out: &mut Vec<u8>, flags: &Flags, text: &[u8], verb: char) {
    let text = &text[..flags.precision.map_or(text.len(), |precision| precision.min(text.len()))];
    let prefix: &[u8] = if verb == 'x' { b"0x" } else { b"0X" };
    let digits = if verb == 'x' { b"0123456789abcdef" } else { b"0123456789ABCDEF" };
    let mut hex = Vec::with_capacity(text.len() * 2);
    for (i, byte) in text.iter().enumerate() {
        if flags.space && i > 0 {
            hex.push(b' ');
        }
        if flags.sharp && (flags.space || i == 0) {
            hex.extend_from_slice(prefix);
        }
        hex.extend([digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]);
    }
    flags.pad(out, &hex);
}
