//! Parses one alternative: operators and patterns, separated by spaces or commas.

use super::comparator::Operator;
use crate::shape::Shape;

/// A comparator as it was written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Term<'t> {
    /// The operator's text.
    pub(super) sign: &'t str,
    /// The parsed operator.
    pub(super) operator: Operator,
    /// The version pattern after the operator.
    pub(super) pattern: Shape<'t>,
}

/// Splits an alternative into its comparators; `None` if it has anything else.
pub(super) fn terms(segment: &str) -> Option<Vec<Term<'_>>> {
    let mut found = Vec::new();
    let mut rest = segment.trim_start_matches(is_blank);
    loop {
        let (sign, after) = rest.split_at(rest.find(|c| !"=!<>~^".contains(c)).unwrap_or(rest.len()));
        let operator = Operator::parse(sign)?;
        let pattern = scan_pattern(after.trim_start_matches(is_blank))?;
        found.push(Term { sign, operator, pattern });

        let after = after.trim_start_matches(is_blank).strip_prefix(pattern.text)?;
        let next = after.trim_start_matches(is_blank);
        rest = match next.strip_prefix(',') {
            _ if next.is_empty() => return Some(found),
            Some(next) => next.trim_start_matches(is_blank),
            None if next.len() < after.len() => next,
            None => return None,
        };
    }
}

/// Returns the pattern at the beginning of a text.
pub(super) fn scan_pattern(text: &str) -> Option<Shape<'_>> {
    // The library's character class has a stray `|`, so `1|2` has the form of a pattern. It fails later, with another
    // message.
    Shape::scan(text, |byte| byte.is_ascii_digit() || b"xX*|".contains(&byte))
}

/// Returns whether a character is whitespace in Go's regular expressions.
pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0c' | '\r')
}
