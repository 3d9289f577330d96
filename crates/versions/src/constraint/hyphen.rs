//! Hyphen ranges: rewrites `A - B` to `>= A, <= B `.
//!
//! The library rewrites the text before it parses anything else, and its errors show the rewritten text.

use super::segment::{is_blank, scan_pattern};

/// A hyphen range in a text.
struct HyphenRange<'t> {
    /// The range with the spaces around it.
    text: &'t str,
    lower: &'t str,
    upper: &'t str,
    /// The position behind the range.
    end: usize,
}

/// Rewrites every hyphen range in a text.
pub(super) fn rewrite(text: &str) -> String {
    let mut rewritten = text.to_owned();
    let mut at = 0;
    while let Some(range) = next_range(text, at) {
        let comparators = format!(">= {}, <= {} ", range.lower, range.upper);
        // Replaces the first equal text, not the position, as the library does.
        rewritten = rewritten.replacen(range.text, &comparators, 1);
        at = range.end;
    }
    rewritten
}

/// Returns the first range at or behind a position.
fn next_range(text: &str, from: usize) -> Option<HyphenRange<'_>> {
    let mut at = from;
    loop {
        let word_start = at + blanks(&text[at..]);
        let rest = &text[word_start..];
        if rest.is_empty() {
            return None;
        }
        let word_end = word_start + rest.find(is_blank).unwrap_or(rest.len());
        if let Some((upper, end)) = upper_bound(text, word_end)
            && let Some(lower) = lower_bound(&text[word_start..word_end])
        {
            let lower_start = word_end - lower.len();
            let start = if lower_start == word_start { at } else { lower_start };
            return Some(HyphenRange { text: &text[start..end], lower, upper, end });
        }
        at = word_end;
    }
}

/// Returns the longest pattern at the end of a word.
///
/// The library rewrites the range even if an operator precedes the pattern.
fn lower_bound(word: &str) -> Option<&str> {
    let mut endings = word.char_indices().map(|(at, _)| &word[at..]);
    endings.find(|ending| scan_pattern(ending).is_some_and(|shape| shape.text == *ending))
}

/// Returns the pattern behind a hyphen, and the position behind the spaces that follow it.
///
/// The hyphen must have spaces on both sides.
fn upper_bound(text: &str, at: usize) -> Option<(&str, usize)> {
    let rest = text[at..].trim_start_matches(is_blank).strip_prefix('-')?;
    let behind = rest.trim_start_matches(is_blank);
    if behind.len() == rest.len() {
        return None;
    }
    let upper = scan_pattern(behind)?.text;
    let end = text.len() - behind.len() + upper.len();
    Some((upper, end + blanks(&text[end..])))
}

/// Returns the length of the whitespace at the beginning of a text, in bytes.
fn blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches(is_blank).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hyphen_ranges_are_rewritten_as_in_the_library() {
        for (text, expected) in [
            ("2 - 3", ">= 2, <= 3 "),
            ("2 - 3 4.0.0 - 5.1", ">= 2, <= 3 >= 4.0.0, <= 5.1 "),
            ("1.2-1.4.5", "1.2-1.4.5"),
            ("1.2 -1.4", "1.2 -1.4"),
            ("1.2- 1.4", "1.2- 1.4"),
            (" \t1 \n-\r2\x0c", ">= 1, <= 2 "),
            (">=1.2 - 1.4", ">=>= 1.2, <= 1.4 "),
            ("^1 || 2 - 3 || 4", "^1 ||>= 2, <= 3 || 4"),
            ("1||2 - 3", ">= 1||2, <= 3 "),
            ("1.2.3.4 - 5", "1.>= 2.3.4, <= 5 "),
            ("1 - 2.3.4.5", ">= 1, <= 2.3.4 .5"),
            ("1 - 2 - 3", ">= 1, <= 2 - 3"),
            ("1 - 2 - 3 || 2 - 3", ">= 1, <=>= 2, <= 3  || 2 - 3"),
            ("ä1 - 2", "ä>= 1, <= 2 "),
            ("1\u{a0}- 2", "1\u{a0}- 2"),
            ("", ""),
            (" - ", " - "),
        ] {
            assert_eq!(rewrite(text), expected, "{text:?}");
        }
    }
}
