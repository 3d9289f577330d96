//! Words: shortened, counted by their first letters, without blanks.

use crate::functions::Function;
use crate::text::push_rune;
use crate::value::{INT, Type};

const TEXT: Type = Type::String;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("abbrev", &[INT, TEXT], |a, _| {
        let width = a.int(0);
        Ok((if width < 4 { a.bytes(1).to_vec() } else { abbreviated(a.bytes(1), 0, width) }).into())
    }),
    Function::new("abbrevboth", &[INT, INT, TEXT], |a, _| {
        let (left, right, text) = (a.int(0), a.int(1), a.bytes(2));
        let is_narrow = right < 4 || left > 0 && right < 7;
        Ok((if is_narrow { text.to_vec() } else { abbreviated(text, left, right) }).into())
    }),
    Function::new("initials", &[TEXT], |a, _| Ok(initials(a.bytes(0)).into())),
    Function::new("nospace", &[TEXT], |a, _| Ok(without_space(a.bytes(0)).into())),
];

/// A text of at most a width, with dots for what is left out on either side.
fn abbreviated(text: &[u8], offset: i64, width: i64) -> Vec<u8> {
    const DOTS: &[u8] = b"...";
    let Ok(width) = usize::try_from(width) else { return text.to_vec() };
    if text.len() <= width {
        return text.to_vec();
    }
    let kept = width - DOTS.len();
    let mut offset = usize::try_from(offset).unwrap_or(0).min(text.len());
    if text.len() - offset < kept {
        offset = text.len() - kept;
    }
    if offset <= 4 {
        return [&text[..kept], DOTS].concat();
    }
    if width < 7 {
        return Vec::new();
    }
    if offset + kept < text.len() {
        let rest = abbreviated(&text[offset..], 0, i64::try_from(kept).unwrap_or(i64::MAX));
        return [DOTS, &rest].concat();
    }
    [DOTS, &text[text.len() - kept..]].concat()
}

/// The first letter of each word. The library goes byte by byte, and takes each for a character.
fn initials(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut after_gap = true;
    for &byte in text {
        let c = char::from(byte);
        if !c.is_whitespace() && after_gap {
            push_rune(&mut out, c);
        }
        after_gap = c.is_whitespace();
    }
    out
}

/// A text without blanks. The library goes byte by byte here as well, if there is a blank at all.
fn without_space(text: &[u8]) -> Vec<u8> {
    let is_space = |byte: &u8| char::from(*byte).is_whitespace();
    if !text.iter().any(is_space) {
        return text.to_vec();
    }
    let mut out = Vec::with_capacity(text.len());
    for byte in text.iter().filter(|byte| !is_space(byte)) {
        push_rune(&mut out, char::from(*byte));
    }
    out
}
