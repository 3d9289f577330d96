//! Text in other encodings than UTF-8.

use std::borrow::Cow;

/// Returns the content of a file for a search of ASCII text.
///
/// In UTF-16 and UTF-32, each ASCII character has its own byte and bytes that are zero, which are left out. The result is only good
/// for a search: it shows that a file in another encoding than UTF-8 matters, so that it is reported.
pub fn searchable(content: &[u8]) -> Cow<'_, [u8]> {
    match memchr::memchr(0, content) {
        Some(_) => content.iter().copied().filter(|byte| *byte != 0).collect(),
        None => content.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_text_is_found_in_each_encoding() {
        let wide =
            |to_bytes: fn(u32) -> Vec<u8>| "kind: Ä".chars().flat_map(|c| to_bytes(c.into())).collect();
        let encodings: [Vec<u8>; 5] = [
            "kind: Ä".as_bytes().to_vec(),
            wide(|c| c.to_le_bytes()[..2].to_vec()),
            wide(|c| c.to_be_bytes()[2..].to_vec()),
            wide(|c| c.to_le_bytes().to_vec()),
            wide(|c| c.to_be_bytes().to_vec()),
        ];
        for content in encodings {
            assert!(searchable(&content).starts_with(b"kind: "), "{content:?}");
        }
    }
}
