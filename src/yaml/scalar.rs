//! A scalar value and its source bytes.

use std::borrow::Cow;
use std::ops::Range;

use granit_parser::{ScalarStyle, Span};

/// The style in which a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// In `'…'`.
    SingleQuoted,
    /// In `"…"`.
    DoubleQuoted,
    /// A block after `|`.
    Literal,
    /// A block after `>`.
    Folded,
    /// Not written at all: `key:` without a value.
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

    /// Returns true for block scalars, literal or folded.
    pub fn is_block(self) -> bool {
        matches!(self, Self::Literal | Self::Folded)
    }
}

/// An explicit tag before a scalar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// The byte range of the tag.
    pub span: Range<usize>,
    /// The tag with its prefix resolved, such as `tag:yaml.org,2002:int`.
    pub name: String,
    /// The tag's effect on a scalar's type.
    pub meaning: TagMeaning,
}

/// The effect of a tag on a text after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagMeaning {
    /// `!!str`: the text is a string.
    Text,
    /// `!!int`, `!!null`, `!!timestamp` and the like: the text is not a string.
    OtherYamlType,
    /// A tag of the application, or `!`, which not every reader treats as a string.
    Custom,
}

/// A scalar that is a value (never a mapping's key).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scalar<'s> {
    /// Its text; empty if it is [absent](Style::Absent).
    pub value: Cow<'s, str>,
    /// Its style.
    pub style: Style,
    /// Its byte range, including quotes, without anchor and tag.
    ///
    /// For a block: its lines, without the line of its `|` or `>`. For an absent scalar: an empty range near its
    /// position.
    pub span: Range<usize>,
    /// Its line, counted from 1; for a block, the line of its `|` or `>`.
    pub line: usize,
    /// The offset after a block's header, the `|` or `>` with its indicators; else 0.
    ///
    /// Blanks may be in between.
    pub header_end: usize,
    /// The explicit tag, if there is one.
    pub tag: Option<Tag>,
    /// The node's number in the [`Fingerprint`](super::Fingerprint).
    pub(crate) node: u64,
    /// The parser's number of its anchor; 0 without an anchor.
    pub(crate) anchor: usize,
}
