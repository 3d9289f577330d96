//! Unquotes string and character constants.

use crate::text::{Text, push_rune};

/// Returns the string that a constant represents; `None` if it is invalid.
pub(super) fn unquote(quoted: &str) -> Option<Text> {
    let mark = quoted.chars().next()?;
    let inner = quoted.get(1..)?.strip_suffix(mark)?;
    if mark == '`' {
        return Some(inner.replace('\r', "").into());
    }
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while !rest.is_empty() {
        let is_byte = matches!(rest.as_bytes(), [b'\\', b'x' | b'0'..=b'7', ..]);
        let (rune, after) = unquote_char(rest, mark)?;
        match u8::try_from(rune) {
            Ok(byte) if is_byte => bytes.push(byte),
            _ => push_rune(&mut bytes, char::from_u32(rune)?),
        }
        rest = after;
    }
    Some(bytes.into())
}

/// Returns the first character of a constant, and the text behind it.
pub(super) fn unquote_char(text: &str, mark: char) -> Option<(u32, &str)> {
    let mut chars = text.chars();
    let first = chars.next()?;
    if first == mark {
        return None;
    }
    if first != '\\' {
        return Some((first.into(), chars.as_str()));
    }
    let escape = chars.next()?;
    let rest = chars.as_str();
    let simple = match escape {
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        '\\' => '\\',
        '\'' | '"' if escape == mark => escape,
        'x' => return digits(rest, 2, 16),
        'u' => return digits(rest, 4, 16).filter(|&(rune, _)| char::from_u32(rune).is_some()),
        'U' => return digits(rest, 8, 16).filter(|&(rune, _)| char::from_u32(rune).is_some()),
        '0'..='7' => return digits(&text[1..], 3, 8).filter(|&(byte, _)| byte <= 0xff),
        _ => return None,
    };
    Some((simple.into(), rest))
}

fn digits(text: &str, count: usize, radix: u32) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(count)?;
    if !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    Some((u32::from_str_radix(digits, radix).ok()?, rest))
}
