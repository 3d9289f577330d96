//! A digest of everything a YAML stream says, made so that single scalars can be exchanged in it.
//!
//! After a rewrite the new bytes are parsed and their fingerprint is compared with the one that the old
//! bytes should have after the exchange. It is a sum over the nodes, each hashed with its number, so an
//! exchange subtracts one term and adds another, and the old file need be neither kept nor parsed again.
//! Comments are hashed in a sequence of their own, because an absent value comes before its comment and a value
//! that took its place may come behind. Spans do not count.

use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::quality::FixedState;
use granit_parser::{Event, Span, StructureStyle, Tag};

use super::scalar::{Scalar, Style};
use super::splice::Replacement;

/// The digest of a stream of nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fingerprint {
    nodes: u64,
    comments: u64,
    sum: u64,
}

impl Fingerprint {
    /// How many nodes have been counted, ends of collections and documents included.
    pub(crate) fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Counts one event of the parser.
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
                hash_tag(&mut hasher, tag.as_deref().map(tag_name).as_deref());
            }
            Event::SequenceStart(style, anchor, tag) => {
                ("sequence", *style == StructureStyle::Flow, anchor).hash(&mut hasher);
                hash_tag(&mut hasher, tag.as_deref().map(tag_name).as_deref());
            }
            Event::MappingStart(style, anchor, tag) => {
                ("mapping", *style == StructureStyle::Flow, anchor).hash(&mut hasher);
                hash_tag(&mut hasher, tag.as_deref().map(tag_name).as_deref());
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

    /// Exchanges `scalar` for one that reads as `value`, is written as `replacement` says and has the same anchor.
    pub fn exchange(&mut self, scalar: &Scalar<'_>, value: &str, replacement: &Replacement) {
        let term = |value: &str, style: Style, tag: Option<&str>| {
            let mut hasher = FixedState::default().build_hasher();
            scalar.node.hash(&mut hasher);
            (value, style, scalar.anchor).hash(&mut hasher);
            hash_tag(&mut hasher, tag);
            hasher.finish()
        };
        let old = term(&scalar.value, scalar.style, scalar.tag.as_ref().map(|tag| tag.name.as_str()));
        let new = term(value, replacement.style, replacement.tag.as_deref());
        self.sum = self.sum.wrapping_sub(old).wrapping_add(new);
    }
}

/// The resolved tag in one text.
pub(crate) fn tag_name(tag: &Tag) -> String {
    format!("{}{}", tag.handle(), tag.suffix())
}

fn hash_tag(hasher: &mut impl Hasher, tag: Option<&str>) {
    tag.hash(hasher);
}
