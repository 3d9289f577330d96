//! Renders the shape of a file to text.
//! The text is in pieces that are fixed or may change.

use super::shapes::{Entry, FileShape, Node, Scalar, Style};
use crate::support::manifests::marker;

/// A part of a file's text.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    /// Text that must not change.
    Fixed(String),
    /// A marked value.
    Value(String),
}

impl Piece {
    fn text(&self) -> &str {
        match self {
            Self::Fixed(text) | Self::Value(text) => text,
        }
    }
}

/// A marked value and its expected value.
#[derive(Debug, Clone)]
pub(crate) struct Marked {
    pub(crate) document: usize,
    /// The JSON pointer to the value.
    pub(crate) pointer: String,
    pub(crate) policy: String,
    pub(crate) tag: String,
    field: &'static str,
}

impl Marked {
    pub(crate) fn wanted(&self) -> String {
        match self.field {
            ":tag" => self.tag.clone(),
            ":name" => "ghcr.io/acme/app".to_owned(),
            _ => format!("ghcr.io/acme/app:{}", self.tag),
        }
    }
}

/// A file's text in pieces.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) marked: Vec<Marked>,
    keys: usize,
    document: usize,
}

impl Document {
    pub(crate) fn render(shape: &FileShape) -> Self {
        let mut document = Self::default();
        if shape.has_byte_order_mark {
            document.fixed("\u{feff}");
        }
        for (index, entries) in shape.documents.iter().enumerate() {
            document.document = index;
            if index > 0 {
                document.fixed("---\n");
            }
            document.mapping(entries, 0, "");
        }
        document.finish(shape);
        document
    }

    pub(crate) fn text(&self) -> String {
        self.pieces.iter().map(Piece::text).collect()
    }

    /// Joins adjacent fixed pieces, and applies the line endings of the shape.
    fn finish(&mut self, shape: &FileShape) {
        let mut pieces: Vec<Piece> = Vec::new();
        for piece in self.pieces.drain(..) {
            match (pieces.last_mut(), piece) {
                (Some(Piece::Fixed(last)), Piece::Fixed(text)) => last.push_str(&text),
                (_, piece) => pieces.push(piece),
            }
        }
        if let Some(Piece::Fixed(text)) = pieces.last_mut()
            && !shape.has_final_newline
        {
            text.pop();
        }
        pieces.retain(|piece| !matches!(piece, Piece::Fixed(text) if text.is_empty()));
        if shape.has_crlf {
            for piece in &mut pieces {
                let (Piece::Fixed(text) | Piece::Value(text)) = piece;
                *text = text.replace('\n', "\r\n");
            }
        }
        self.pieces = pieces;
    }

    fn fixed(&mut self, text: impl Into<String>) {
        self.pieces.push(Piece::Fixed(text.into()));
    }

    fn new_key(&mut self) -> String {
        self.keys += 1;
        format!("k{}", self.keys)
    }

    fn mapping(&mut self, entries: &[Entry], indentation: usize, pointer: &str) {
        for entry in entries {
            let key = self.new_key();
            self.above(entry, indentation);
            self.fixed(format!("{}{key}:", " ".repeat(indentation)));
            self.node(&entry.node, indentation, &format!("{pointer}/{key}"));
        }
    }

    fn sequence(&mut self, entries: &[Entry], indentation: usize, pointer: &str) {
        for (index, entry) in entries.iter().enumerate() {
            self.above(entry, indentation);
            self.fixed(format!("{}-", " ".repeat(indentation)));
            self.node(&entry.node, indentation, &format!("{pointer}/{index}"));
        }
    }

    fn above(&mut self, entry: &Entry, indentation: usize) {
        for line in entry.above.split_inclusive('\n') {
            let padding = if line == "\n" { 0 } else { indentation };
            self.fixed(format!("{}{line}", " ".repeat(padding)));
        }
    }

    /// Renders the node after a key or a dash at `indentation`.
    fn node(&mut self, node: &Node, indentation: usize, pointer: &str) {
        match node {
            Node::Mapping(entries) => {
                self.fixed("\n");
                self.mapping(entries, indentation + 2, pointer);
            }
            Node::Sequence(is_indented, entries) => {
                self.fixed("\n");
                // After a dash a sequence must be indented.
                let is_behind_dash = pointer.rsplit('/').next().is_some_and(|step| !step.starts_with('k'));
                let deeper = usize::from(*is_indented || is_behind_dash) * 2;
                self.sequence(entries, indentation + deeper, pointer);
            }
            Node::FlowMapping(scalars) => self.flow(scalars, ['{', '}'], indentation + 2, pointer),
            Node::FlowSequence(scalars) => self.flow(scalars, ['[', ']'], indentation + 2, pointer),
            Node::Scalar(scalar) => {
                if let Style::Block(header, blank_lines) = scalar.style {
                    self.block(scalar, header, blank_lines, indentation, pointer);
                } else {
                    self.scalar(scalar, indentation, pointer, "");
                }
            }
        }
    }

    fn flow(&mut self, scalars: &[Scalar], brackets: [char; 2], indentation: usize, pointer: &str) {
        let padding = " ".repeat(indentation);
        self.fixed(format!(" {}\n", brackets[0]));
        for (index, scalar) in scalars.iter().enumerate() {
            let comma = if index + 1 < scalars.len() { "," } else { "" };
            if brackets[0] == '{' {
                let key = self.new_key();
                self.fixed(format!("{padding}{key}:"));
                self.scalar(scalar, indentation, &format!("{pointer}/{key}"), comma);
            } else {
                self.fixed(padding.clone());
                self.scalar(scalar, indentation, &format!("{pointer}/{index}"), comma);
            }
        }
        self.fixed(format!("{padding}{}\n", brackets[1]));
    }

    fn scalar(&mut self, scalar: &Scalar, indentation: usize, pointer: &str, comma: &str) {
        let (one, other) = &scalar.words;
        let padding = " ".repeat(indentation + 2);
        let text = match scalar.style {
            Style::Absent | Style::Block(..) => String::new(),
            Style::Plain => one.clone(),
            Style::PlainLines => format!("{one}\n{padding}{other}"),
            Style::Single => format!("'{one}''{other}'"),
            Style::Double => format!("\"{one}\\x41\\\"{other}\""),
            Style::DoubleLines => format!("\"{one}\n\n{padding}{other}\""),
        };
        let before = format!(" {}", self.properties(scalar));
        self.fixed(if text.is_empty() { before.trim_end() } else { &before });
        self.value(scalar, text);
        self.fixed(comma);
        self.comment(scalar, pointer);
    }

    fn block(
        &mut self,
        scalar: &Scalar,
        header: &str,
        blank_lines: usize,
        indentation: usize,
        pointer: &str,
    ) {
        let (one, other) = &scalar.words;
        let padding = " ".repeat(indentation + 2);
        let before = format!(" {}", self.properties(scalar));
        self.fixed(before);
        self.value(scalar, header.to_owned());
        self.comment(scalar, pointer);
        self.value(scalar, format!("{padding}{one}\n{padding}{other}"));
        self.fixed(format!("\n{}", "\n".repeat(blank_lines)));
    }

    fn properties(&mut self, scalar: &Scalar) -> String {
        let anchor = if scalar.has_anchor { format!("&{} ", self.new_key()) } else { String::new() };
        let tag = if scalar.has_tag { "!!str " } else { "" };
        format!("{anchor}{tag}")
    }

    fn value(&mut self, scalar: &Scalar, text: String) {
        self.pieces.push(if scalar.marker.is_some() { Piece::Value(text) } else { Piece::Fixed(text) });
    }

    fn comment(&mut self, scalar: &Scalar, pointer: &str) {
        let Some((field, tag)) = &scalar.marker else { return self.fixed("\n") };
        let policy = format!("p{}", self.marked.len());
        self.fixed(format!("{}{}\n", scalar.gap, marker(&format!("default:{policy}{field}"))));
        let (document, pointer) = (self.document, pointer.to_owned());
        self.marked.push(Marked { document, pointer, policy, tag: tag.clone(), field });
    }
}
