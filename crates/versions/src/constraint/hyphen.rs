//! Ranges with a hyphen: `A - B` becomes `>= A, <= B `.
//!
//! The library does so in the text, before it looks at anything else, and errors show the text so changed.

use super::segment::{is_blank, scan_pattern};

/// A range in a text.
struct HyphenRange<'t> {
    /// The range with the blanks around it.
    text: &'t str,
    lower: &'t str,
    upper: &'t str,
    /// Where the text behind it begins.
    end: usize,
}

/// Rewrites every range in a text.
pub(super) fn rewrite(text: &str) -> String {
    let mut rewritten = text.to_owned();
    let mut at = 0;
    while let Some(range) = next_range(text, at) {
        let comparators = format!(">= {}, <= {} ", range.lower, range.upper);
        // By its text and not by its place, as the library does it.
        rewritten = rewritten.replacen(range.text, &comparators, 1);
        at = range.end;
    }
    rewritten
}

/// The first range at or behind a place.
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

/// The longest pattern that ends where the word ends: an operator in front does not keep the library from rewriting.
fn lower_bound(word: &str) -> Option<&str> {
    let mut endings = word.char_indices().map(|(at, _)| &word[at..]);
    endings.find(|ending| scan_pattern(ending).is_some_and(|shape| shape.text == *ending))
}

/// The pattern behind a hyphen with blanks on both sides, and where the blanks behind it end.
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

/// How many bytes of blanks are in front of a text.
fn blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches(is_blank).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_rewritten_as_the_library_does_it() {
        for (text, wanted) in [
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
            assert_eq!(rewrite(text), wanted, "{text:?}");
        }
    }
}
