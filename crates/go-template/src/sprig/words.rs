//! Functions that abbreviate text, take initials and remove whitespace.

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

/// Abbreviates a text to a width, with dots for the omitted text on either side.
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

/// Returns the first letter of each word.
///
/// The library iterates over bytes, and converts each to a character.
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

/// Removes whitespace.
///
/// If there is any, the library iterates over bytes here as well.
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
