//! Locates a block scalar.
//! It has a header, which is not in the parser's span, and lines.

use std::ops::Range;

use granit_parser::Event;

use super::parsed::{self, Node, Parsed};

/// The parts of a block scalar.
#[derive(Debug)]
pub(crate) struct Block {
    /// The `|` or `>` with its indicators.
    pub(crate) header: Range<usize>,
    /// The header's line, counted from 1.
    pub(crate) line: usize,
    /// The lines below the header, up to the last one that is not blank.
    ///
    /// The last line break is excluded.
    pub(crate) lines: Range<usize>,
}

impl Block {
    /// Returns the parts of the block scalar `node`.
    pub(crate) fn of(text: &Parsed<'_>, node: &Node<'_>) -> Self {
        let source = text.source;
        let span = parsed::bytes(&node.1);
        let is_blank = matches!(&node.0, Event::Scalar(value, ..) if value.trim_matches('\n').is_empty());
        let header_line_end = if is_blank && source[span.start..].starts_with(['|', '>']) {
            // A block without text at the end of the file: here the span covers the header.
            line_end(source, span.start)
        } else {
            trim(&source[..span.start]).len()
        };
        let line_start = source[..header_line_end].rfind(['\n', '\r']).map_or(0, |at| at + 1);
        let in_line = |start: &usize| (line_start..header_line_end).contains(start);
        let comment = text.comments.iter().map(|comment| comment.start).find(in_line);
        let before = trim(&source[..comment.unwrap_or(header_line_end)]);
        let header = before.rsplit([' ', '\t', '\n', '\r']).next().unwrap_or_default();
        assert!(header.starts_with(['|', '>']), "the block at {span:?} has no header in {source:?}");
        let first = next_line(source, header_line_end);
        let last = trim(&source[..span.end]).len();
        let end = if last > first { line_end(source, last) } else { first };
        let header = before.len() - header.len()..before.len();
        let line = 1 + source[..header.start].replace("\r\n", "\n").matches(['\n', '\r']).count();
        Self { header, line, lines: first..end }
    }
}

/// Returns the offset behind the line that holds `offset`, its line break included.
pub(crate) fn next_line(source: &str, offset: usize) -> usize {
    let end = line_end(source, offset);
    let rest = &source[end..];
    end + if rest.starts_with("\r\n") { 2 } else { usize::from(!rest.is_empty()) }
}

fn line_end(source: &str, offset: usize) -> usize {
    source[offset..].find(['\n', '\r']).map_or(source.len(), |at| offset + at)
}

fn trim(text: &str) -> &str {
    text.trim_end_matches([' ', '\t', '\n', '\r'])
}
