//! Percent-encoding, for the parts of a URL that may hold any byte.

use std::fmt::Write;

/// Every byte but letters, digits and `-._~` as `%XX`.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            write!(text, "%{byte:02X}").expect("a string takes whatever is written");
        }
    }
    text
}

/// The bytes that a text stands for, or nothing when a `%` begins no escape.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    decode_with(text, |_| None)
}

/// The bytes that git makes of a text: a `%` that begins no escape stays.
pub(super) fn decode_leniently(text: &str) -> Vec<u8> {
    decode_with(text, Some).unwrap_or_default()
}

/// Decodes a text; `unescaped` gives the byte for a `%` that begins no escape, or ends it all.
fn decode_with(text: &str, unescaped: impl Fn(u8) -> Option<u8>) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
        } else if let Some((value, after)) = escape(after) {
            bytes.push(value);
            rest = after;
        } else {
            bytes.push(unescaped(byte)?);
        }
    }
    Some(bytes)
}

/// The value of the two digits behind a `%`, and what follows them.
fn escape(text: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, after) = text.split_at_checked(2)?;
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some((16 * digit(digits[0])? + digit(digits[1])?, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_comes_back() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
        assert_eq!(encode(b"a/B c~%"), "a%2FB%20c~%25");
    }

    #[test]
    fn a_percent_sign_without_two_digits_is_refused() {
        for text in ["%", "a%", "%4", "%zz", "%4g", "%+1", "%é"] {
            assert_eq!(decode(text), None, "{text}");
        }
        assert_eq!(decode("%4a%4A"), Some(b"JJ".to_vec()));
        assert_eq!(decode_leniently("%4a%%4A%z%"), b"J%J%z%");
    }
}
