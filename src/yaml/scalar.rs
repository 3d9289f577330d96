//! A scalar value and the bytes it is written in.

use std::borrow::Cow;
use std::ops::Range;

use granit_parser::{ScalarStyle, Span};

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// In `'…'`.
    SingleQuoted,
    /// In `"…"`.
    DoubleQuoted,
    /// As a block after `|`.
    Literal,
    /// As a block after `>`.
    Folded,
    /// Not written at all: `key:` with nothing behind it.
    Absent,
}

impl Style {
    pub(crate) fn of(style: ScalarStyle, span: &Span) -> Self {
        match style {
            ScalarStyle::Plain if span.is_empty() => Self::Absent,
            ScalarStyle::Plain => Self::Plain,
            ScalarStyle::SingleQuoted => Self::SingleQuoted,
            ScalarStyle::DoubleQuoted => Self::DoubleQuoted,
            ScalarStyle::Literal => Self::Literal,
            ScalarStyle::Folded => Self::Folded,
        }
    }

    /// Whether the scalar is a block, literal or folded.
    pub fn is_block(self) -> bool {
        matches!(self, Self::Literal | Self::Folded)
    }
}

/// An explicit tag in front of a scalar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// The bytes of the tag as written.
    pub span: Range<usize>,
    /// The tag with its prefix resolved, such as `tag:yaml.org,2002:int`.
    pub name: String,
    /// What the tag says about a scalar's type.
    pub meaning: TagMeaning,
}

/// What a tag means for a text that is put behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagMeaning {
    /// `!!str`: whatever follows is a string.
    Text,
    /// `!!int`, `!!null`, `!!timestamp` and the like: what follows would not be a string.
    OtherYamlType,
    /// A tag of the application's own, or `!`, which not every reader takes for a string.
    Custom,
}

/// A scalar in the place of a value (never a mapping's key).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar<'s> {
    /// What the scalar reads as; empty when it is [absent](Style::Absent).
    pub value: Cow<'s, str>,
    /// How it is written.
    pub style: Style,
    /// The bytes of the scalar, quotes included, anchor and tag not. Of a block: its lines, without the
    /// line that holds `|` or `>`. Of an absent scalar: an empty range near the place.
    pub span: Range<usize>,
    /// The line on which it begins (of a block, the line of its `|` or `>`), counted from 1.
    pub line: usize,
    /// Of a block: the offset behind the `|` or `>` and its indicators, blanks perhaps between. Else 0.
    pub header_end: usize,
    /// The explicit tag, if there is one.
    pub tag: Option<Tag>,
    /// The node's number as the [`Fingerprint`](super::Fingerprint) counts.
    pub(crate) node: u64,
    /// The anchor's number in the parser's count; 0 without an anchor.
    pub(crate) anchor: usize,
}
