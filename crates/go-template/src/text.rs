//! Go strings: any bytes, decoded as UTF-8 if characters are needed.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use memchr::memmem;

use crate::heap::{Heap, Held};

/// The memory that a text takes beside its bytes.
pub(crate) const TEXT_OVERHEAD: usize = 96;

/// A Go string: bytes that need not be UTF-8.
#[derive(Clone)]
pub struct Text(Arc<Held<Box<[u8]>>>);

impl Text {
    /// Returns the bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the length in bytes, as Go's `len` does.
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    /// Returns whether the text has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }

    /// Counts the bytes `factor` times, unless they were counted before.
    pub(crate) fn count(&self, heap: &Heap, factor: usize) {
        self.0.count(heap, factor * self.footprint());
    }

    /// Returns the approximate size of a copy, in bytes.
    pub(crate) fn footprint(&self) -> usize {
        TEXT_OVERHEAD + self.len()
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Text {}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::from(text.as_bytes())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::from(text.into_bytes())
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        Self(Arc::new(Held::new(bytes.into())))
    }
}

impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Held::new(bytes.into())))
    }
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&shown(self.as_bytes()))
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", shown(self.as_bytes()))
    }
}

/// Returns the first character and its width; invalid UTF-8 is U+FFFD of width 1.
pub(crate) fn first_rune(bytes: &[u8]) -> Option<(char, usize)> {
    let &first = bytes.first()?;
    let width = match first {
        0..0x80 => return Some((char::from(first), 1)),
        0xc2..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf5 => 4,
        _ => return Some((char::REPLACEMENT_CHARACTER, 1)),
    };
    let decoded = bytes.get(..width).and_then(|bytes| std::str::from_utf8(bytes).ok());
    Some(
        decoded.and_then(|text| text.chars().next()).map_or((char::REPLACEMENT_CHARACTER, 1), |c| (c, width)),
    )
}

/// Iterates over the characters with their positions and widths.
pub(crate) fn runes(bytes: &[u8]) -> impl Iterator<Item = (usize, char, usize)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (c, width) = first_rune(&bytes[at..])?;
        at += width;
        Some((at - width, c, width))
    })
}

/// Formats bytes for errors; each invalid byte becomes U+FFFD.
pub(crate) fn shown(bytes: &[u8]) -> String {
    runes(bytes).map(|(_, c, _)| c).collect()
}

/// The length up to which errors show a text in full.
const MAX_SHOWN: usize = 8192;

/// The lengths of the beginning and the end that are shown of a longer text.
const SHOWN_ENDS: (usize, usize) = (1024, 512);

/// Removes the middle of an error message of more than 8 KiB.
///
/// A message may show a value, which may be all data, or a name, which may be most of the template.
#[must_use]
pub fn without_middle(text: String) -> String {
    if text.len() <= MAX_SHOWN {
        return text;
    }
    let (first, last) =
        (text.floor_char_boundary(SHOWN_ENDS.0), text.ceil_char_boundary(text.len() - SHOWN_ENDS.1));
    format!("{} … {}", &text[..first], &text[last..])
}

/// Returns the number of characters.
pub(crate) fn rune_count(bytes: &[u8]) -> usize {
    if bytes.is_ascii() { bytes.len() } else { runes(bytes).count() }
}

/// Appends a character.
pub(crate) fn push_rune(bytes: &mut Vec<u8>, c: char) {
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Returns the position of the first occurrence of a part.
pub(crate) fn find(whole: &[u8], part: &[u8]) -> Option<usize> {
    memmem::find(whole, part)
}

/// Returns the position of the last occurrence of a part.
pub(crate) fn find_last(whole: &[u8], part: &[u8]) -> Option<usize> {
    memmem::rfind(whole, part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_very_long_text_both_ends_are_shown() {
        let whole = "ä".repeat(1024);
        assert_eq!(without_middle(whole.clone()), whole);
        let cut = without_middle(format!("begin {} end", "ä".repeat(5000)));
        assert!(cut.starts_with("begin ä") && cut.ends_with("ä end") && cut.contains("ä … ä"), "{cut}");
        assert!(cut.len() <= 1024 + 512 + 5, "{}", cut.len());
    }

    #[test]
    fn invalid_utf8_counts_byte_by_byte() {
        let found: Vec<_> = runes(b"a\xc3\xa4\xff\xe2\x82b\xed\xa0\x80").map(|(at, c, _)| (at, c)).collect();
        let odd = char::REPLACEMENT_CHARACTER;
        let expected =
            [(0, 'a'), (1, 'ä'), (3, odd), (4, odd), (5, odd), (6, 'b'), (7, odd), (8, odd), (9, odd)];
        assert_eq!(found, expected);
    }
}
