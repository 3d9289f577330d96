//! A comment and its place.

use std::ops::Range;

/// One comment, from its `#` to the end of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// The bytes it covers, the `#` included and the line break not.
    pub span: Range<usize>,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 0, as YAML counts indentation.
    pub column: usize,
}

impl Comment {
    /// The comment's text as it stands in `source`, `#` included.
    pub fn text<'s>(&self, source: &'s str) -> &'s str {
        &source[self.span.clone()]
    }
}
