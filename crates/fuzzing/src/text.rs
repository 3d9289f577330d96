//! Text of fuzz inputs.

/// Returns the beginning of an input, up to the first byte that is not UTF-8.
pub(crate) fn text_of(input: &[u8]) -> &str {
    input.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}
