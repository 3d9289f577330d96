//! Percent-encoding for the parts of a URL that may hold any byte.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

/// Every byte but letters, digits and `-._~`.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Writes every byte but letters, digits and `-._~` as `%XX`.
pub fn encode(bytes: &[u8]) -> String {
    percent_encode(bytes, RESERVED).to_string()
}

/// Decodes a text; returns `None` if a `%` begins no escape.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let is_escape =
        |rest: &str| rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    text.split('%').skip(1).all(is_escape).then(|| decode_leniently(text))
}

/// Decodes a text as git does: a `%` that begins no escape stays.
pub fn decode_leniently(text: &str) -> Vec<u8> {
    percent_decode_str(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_is_reversible() {
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
