//! Percent-encoding.

use crate::format::{quote, quote_bytes};

/// The part of a URL, which decides the characters that need no escaping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Path,
    Host,
    Zone,
    User,
    Fragment,
}

impl Part {
    fn may_hold(self, byte: u8) -> bool {
        let others: &[u8] = match self {
            Self::Path => b"$&+,-./:;=@_~",
            Self::Host | Self::Zone => b"!\"$&'()*+,-.:;<=>[]_~",
            Self::User => b"$&+,-.;=_~",
            Self::Fragment => b"!$&()*+,-./:;=?@_~",
        };
        byte.is_ascii_alphanumeric() || others.contains(&byte)
    }
}

/// Escapes the bytes that the part cannot hold.
pub(super) fn escape(bytes: &[u8], part: Part) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        if part.may_hold(byte) {
            out.push(byte);
        } else {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    out
}

/// Unescapes bytes; the error is Go's.
pub(super) fn unescape(bytes: &[u8], part: Part) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'%' {
            if matches!(part, Part::Host | Part::Zone) && byte < 0x80 && !part.may_hold(byte) {
                let shown = quote(&char::from(byte).to_string());
                return Err(format!("invalid character {shown} in host name"));
            }
            out.push(byte);
            rest = after;
            continue;
        }
        let digit = |at: usize| after.get(at).and_then(|&byte| char::from(byte).to_digit(16));
        let code = digit(0).zip(digit(1)).and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        let shown = &rest[..rest.len().min(3)];
        let Some(code) = code else { return Err(wrong(shown)) };
        let is_percent = shown == b"%25";
        let is_refused = match part {
            Part::Host => code < 0x80 && !is_percent,
            Part::Zone => !is_percent && code != b' ' && !Part::Host.may_hold(code),
            _ => false,
        };
        if is_refused {
            return Err(wrong(shown));
        }
        out.push(code);
        rest = &after[2..];
    }
    Ok(out)
}

fn wrong(shown: &[u8]) -> String {
    format!("invalid URL escape {}", quote_bytes(shown))
}
