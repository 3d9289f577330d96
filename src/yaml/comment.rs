//! A comment with its position.

use std::ops::Range;

/// One comment, from its `#` to the end of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// Its byte range, from the `#` to the line break, which is excluded.
    pub span: Range<usize>,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 0, like indentation in YAML.
    pub column: usize,
}

impl Comment {
    /// Returns the comment's text in `source`, including the `#`.
    pub fn text<'s>(&self, source: &'s str) -> &'s str {
        &source[self.span.clone()]
    }
}
