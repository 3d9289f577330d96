//! A text as `granit-parser` parses it, without Tagboat's own reader.

use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span};

/// An event other than a comment, and its position.
pub(crate) type Node<'s> = (Event<'s>, Span);

/// A comment and its position.
#[derive(Debug)]
pub(crate) struct Comment<'s> {
    /// The line, counted from 1.
    pub(crate) line: usize,
    /// The offset of its `#`.
    pub(crate) start: usize,
    /// The whole comment, `#` included.
    pub(crate) text: &'s str,
}

/// A text as a sequence of events.
#[derive(Debug)]
pub(crate) struct Parsed<'s> {
    /// The text.
    pub(crate) source: &'s str,
    /// Every event other than a comment.
    pub(crate) nodes: Vec<Node<'s>>,
    /// Every comment.
    pub(crate) comments: Vec<Comment<'s>>,
}

impl<'s> Parsed<'s> {
    /// Parses a text that must be YAML.
    pub(crate) fn of(source: &'s str) -> Self {
        let options = granit_parser::options! {
            max_buffered_comment_events: 100_000,
            flow_nesting_limit: 1000,
            block_nesting_limit: 1000,
        };
        let mut parsed = Self { source, nodes: Vec::new(), comments: Vec::new() };
        for event in Parser::new_from_str_with_options(source, options) {
            let (event, span) = event.unwrap_or_else(|error| panic!("not YAML: {error}\n{source:?}"));
            if let Event::Comment(..) = event {
                let bytes = bytes(&span);
                let (line, start) = (span.start.line(), bytes.start);
                parsed.comments.push(Comment { line, start, text: &source[bytes] });
            } else {
                parsed.nodes.push((event, span));
            }
        }
        parsed
    }

    /// Returns the comment on a line.
    pub(crate) fn comment_on(&self, line: usize) -> Option<&Comment<'s>> {
        self.comments.iter().find(|comment| comment.line == line)
    }
}

/// Returns the bytes of a span.
pub(crate) fn bytes(span: &Span) -> Range<usize> {
    span.byte_range().expect("a parser over a string knows its byte offsets")
}

/// Returns whether a scalar is implicit: not written in the text.
pub(crate) fn is_absent(style: ScalarStyle, span: &Span) -> bool {
    style == ScalarStyle::Plain && span.is_empty()
}

/// Returns whether a scalar is a block behind `|` or `>`.
pub(crate) fn is_block(style: ScalarStyle) -> bool {
    matches!(style, ScalarStyle::Literal | ScalarStyle::Folded)
}
