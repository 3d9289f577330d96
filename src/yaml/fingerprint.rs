//! A hash of a YAML stream that can be updated when single scalars are replaced.
//!
//! After a rewrite, the new bytes are parsed, and their fingerprint is compared with that of the old bytes updated by
//! the replacements. The fingerprint is a sum over the nodes, each hashed with its number, so a replacement subtracts
//! one term and adds another, and the old file need not be kept or parsed again. Comments are hashed in a sequence of
//! their own: an absent value comes before its comment, and the value that replaces it may come after. Spans do not
//! count.

use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::quality::FixedState;
use granit_parser::{Event, Span, StructureStyle, Tag};

use super::scalar::{Scalar, Style};
use super::splice::Replacement;

/// The hash of a stream of nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fingerprint {
    nodes: u64,
    comments: u64,
    sum: u64,
}

impl Fingerprint {
    /// The number of nodes so far, including the ends of collections and documents.
    pub(crate) fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Adds one event of the parser.
    pub(crate) fn add(&mut self, event: &Event<'_>, span: &Span) {
        let mut hasher = FixedState::default().build_hasher();
        if let Event::Comment(text, _) = event {
            ("comment", self.comments, text).hash(&mut hasher);
            self.comments += 1;
            self.sum = self.sum.wrapping_add(hasher.finish());
            return;
        }
        self.nodes.hash(&mut hasher);
        match event {
            Event::Scalar(value, style, anchor, tag) => {
                let style = Style::of(*style, span);
                let value = if style == Style::Absent { "" } else { value };
                (value, style, anchor).hash(&mut hasher);
                tag.as_deref().map(tag_name).hash(&mut hasher);
            }
            Event::SequenceStart(style, anchor, tag) => {
                ("sequence", *style == StructureStyle::Flow, anchor).hash(&mut hasher);
                tag.as_deref().map(tag_name).hash(&mut hasher);
            }
            Event::MappingStart(style, anchor, tag) => {
                ("mapping", *style == StructureStyle::Flow, anchor).hash(&mut hasher);
                tag.as_deref().map(tag_name).hash(&mut hasher);
            }
            Event::Alias(anchor) => ("alias", anchor).hash(&mut hasher),
            Event::SequenceEnd | Event::MappingEnd => "end".hash(&mut hasher),
            Event::DocumentStart(..) => "document".hash(&mut hasher),
            Event::DocumentEnd => "document end".hash(&mut hasher),
            _ => return,
        }
        self.sum = self.sum.wrapping_add(hasher.finish());
        self.nodes += 1;
    }

    /// Replaces `scalar` by one of the text `value` and the same anchor.
    ///
    /// Style and tag are those of `replacement`.
    pub fn replace(&mut self, scalar: &Scalar<'_>, value: &str, replacement: &Replacement) {
        let term = |value: &str, style: Style, tag: Option<&str>| {
            let mut hasher = FixedState::default().build_hasher();
            scalar.node.hash(&mut hasher);
            (value, style, scalar.anchor).hash(&mut hasher);
            tag.hash(&mut hasher);
            hasher.finish()
        };
        let old = term(&scalar.value, scalar.style, scalar.tag.as_ref().map(|tag| tag.name.as_str()));
        let new = term(value, replacement.style, replacement.tag.as_deref());
        self.sum = self.sum.wrapping_sub(old).wrapping_add(new);
    }
}

/// The resolved tag as one text.
pub(crate) fn tag_name(tag: &Tag) -> String {
    format!("{}{}", tag.handle(), tag.suffix())
}
