//! Numbers of things in words.

/// A number and a noun, which stands in the plural unless there is one: `1 file`, `2 files`.
pub(super) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
