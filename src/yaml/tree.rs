//! Parses a YAML file into trees of nodes with their positions.
//!
//! This is for code that reads a file without editing it: a lint finding needs the line and column of a field.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use granit_parser::{Event, Span, Tag};

use super::fingerprint::tag_name;
use super::reader::Reader;
use super::{Limits, Style, YamlError};

/// A value with its position.
#[derive(Debug, PartialEq, Eq)]
pub struct Node {
    /// Its line, counted from 1; for a block scalar, that of its text.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// Its byte range; for a collection, only its start.
    pub span: Range<usize>,
    /// Its content.
    pub content: Content,
}

/// The content of a node.
#[derive(Debug, PartialEq, Eq)]
pub enum Content {
    /// A single value.
    Scalar {
        /// Its text.
        text: String,
        /// Its style.
        style: Style,
        /// Its resolved tag, if it has one.
        tag: Option<String>,
    },
    /// A list.
    Sequence(Vec<Rc<Node>>),
    /// Keys and values, in the order of the file; a key may repeat.
    Mapping(Vec<(Rc<Node>, Rc<Node>)>),
}

/// A field of a mapping.
#[derive(Debug, Clone, Copy)]
pub struct Field<'n> {
    /// The key.
    pub key: &'n Node,
    /// The text of the key.
    pub name: &'n str,
    /// The value.
    pub value: &'n Node,
}

/// Parses a file, and returns the roots of its documents.
///
/// An alias is the node that it refers to, with that node's position.
///
/// # Errors
///
/// Returns an error if the file is not YAML or exceeds the limits.
pub fn trees(source: &str, limits: &Limits) -> Result<Vec<Rc<Node>>, YamlError> {
    let mut reader = Reader::new(source, limits);
    let mut builder = Builder::default();
    while let Some((event, span)) = reader.next()? {
        builder.take(event, &span);
    }
    Ok(builder.roots)
}

impl Node {
    /// Returns a scalar's text; `None` for a collection.
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Returns a list's entries; empty for anything else.
    pub fn items(&self) -> &[Rc<Node>] {
        match &self.content {
            Content::Sequence(items) => items,
            _ => &[],
        }
    }

    /// Returns a mapping's fields with scalar keys; merged fields (`<<`) are last.
    pub fn fields(&self) -> Vec<Field<'_>> {
        let Content::Mapping(entries) = &self.content else { return Vec::new() };
        let mut fields = Vec::new();
        let mut merged = Vec::new();
        for (key, value) in entries {
            let Content::Scalar { text: name, style, .. } = &key.content else { continue };
            if name == "<<" && *style == Style::Plain {
                merged.extend(value.fields());
                merged.extend(value.items().iter().flat_map(|item| item.fields()));
            } else {
                fields.push(Field { key, name, value });
            }
        }
        for field in merged {
            if fields.iter().all(|own: &Field<'_>| own.name != field.name) {
                fields.push(field);
            }
        }
        fields
    }

    /// Returns the field of this name, the last one if it repeats.
    pub fn field(&self, name: &str) -> Option<Field<'_>> {
        self.fields().into_iter().rev().find(|field| field.name == name)
    }

    /// Returns the value at the end of a path of fields.
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, name| node.field(name).map(|field| field.value))
    }

    /// Returns the text of the scalar at the end of a path of fields.
    pub fn text_at(&self, path: &[&str]) -> Option<&str> {
        self.at(path).and_then(Self::text)
    }

    /// Returns true if the value is absent or null.
    pub fn is_null(&self) -> bool {
        match &self.content {
            Content::Scalar { text, style, tag } => {
                *style == Style::Absent
                    || (*style == Style::Plain
                        && tag.is_none()
                        && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
            }
            _ => false,
        }
    }

    /// Returns true if the node is a mapping.
    pub fn is_mapping(&self) -> bool {
        matches!(self.content, Content::Mapping(_))
    }
}

/// An open collection.
struct Open {
    node: Node,
    anchor: usize,
    /// The key of a mapping entry without a value so far.
    key: Option<Rc<Node>>,
}

#[derive(Default)]
struct Builder {
    roots: Vec<Rc<Node>>,
    open: Vec<Open>,
    anchors: HashMap<usize, Rc<Node>>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: &Span) {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let style = Style::of(style, span);
                let text = if style == Style::Absent { String::new() } else { text.into_owned() };
                let tag = tag.as_deref().map(|tag: &Tag| tag_name(tag));
                self.add(node(span, Content::Scalar { text, style, tag }).into(), anchor);
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open.push(Open { node: node(span, Content::Sequence(Vec::new())), anchor, key: None });
            }
            Event::MappingStart(_, anchor, _) => {
                self.open.push(Open { node: node(span, Content::Mapping(Vec::new())), anchor, key: None });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(Open { node, anchor, .. }) = self.open.pop() {
                    self.add(node.into(), anchor);
                }
            }
            Event::Alias(anchor) => {
                if let Some(node) = self.anchors.get(&anchor) {
                    self.add(Rc::clone(node), 0);
                }
            }
            Event::DocumentEnd => self.anchors.clear(),
            _ => {}
        }
    }

    fn add(&mut self, node: Rc<Node>, anchor: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        match self.open.last_mut() {
            None => self.roots.push(node),
            Some(Open { node: Node { content: Content::Sequence(items), .. }, .. }) => items.push(node),
            Some(Open { node: Node { content: Content::Mapping(entries), .. }, key, .. }) => match key.take()
            {
                None => *key = Some(node),
                Some(key) => entries.push((key, node)),
            },
            Some(_) => {}
        }
    }
}

fn node(span: &Span, content: Content) -> Node {
    let bytes = span.byte_range().expect("a parser over a string knows its byte offsets");
    Node { line: span.start.line(), column: span.start.col() + 1, span: bytes, content }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(source: &str) -> Rc<Node> {
        let mut roots = trees(source, &Limits::default()).unwrap();
        assert_eq!(roots.len(), 1);
        roots.remove(0)
    }

    #[test]
    fn nodes_know_their_places() {
        let root = root("# c\nä: [1, {b: \"x\"}] # c\nlist:\n- y\n- k: |\n    text\n    more\n");
        let field = root.field("ä").unwrap();
        assert_eq!((field.key.line, field.key.column), (2, 1));
        let second = &field.value.items()[1];
        let b = second.field("b").unwrap();
        assert_eq!((b.key.column, b.value.column, b.value.text()), (9, 12, Some("x")));
        let block = root.at(&["list"]).unwrap().items()[1].at(&["k"]).unwrap();
        assert_eq!((block.line, block.text()), (6, Some("text\nmore\n")));
    }

    #[test]
    fn aliases_and_merges_are_followed() {
        let root = root("a: &a {x: 1, y: 2}\nb: *a\nc: {<<: *a, y: 3}\nd: {<<: [*a, {z: 4}]}\ne:\nf: ~\n");
        assert_eq!(root.text_at(&["b", "x"]), Some("1"));
        assert_eq!(root.text_at(&["c", "y"]), Some("3"));
        assert_eq!(root.text_at(&["c", "x"]), Some("1"));
        assert_eq!(root.text_at(&["d", "z"]), Some("4"));
        assert!(root.at(&["e"]).unwrap().is_null() && root.at(&["f"]).unwrap().is_null());
        assert!(root.at(&["a", "n"]).is_none());
    }

    #[test]
    fn documents_are_separate_and_hostile_ones_are_errors() {
        assert_eq!(trees("a: 1\n---\n---\n- b\n", &Limits::default()).unwrap().len(), 3);
        assert_eq!(trees("# nothing\n", &Limits::default()).unwrap().len(), 0);
        let bomb: String = (1..12).fold("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned(), |text, level| {
            let alias = format!("*a{},", level - 1).repeat(10);
            format!("{text}a{level}: &a{level} [{alias}]\n")
        });
        for source in [bomb.as_str(), "a: [", "a: &a [*a]\n"] {
            trees(source, &Limits::default()).unwrap_err();
        }
    }
}
