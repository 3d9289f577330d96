//! What a lint finds: a place, the rule that is broken there, and a sentence.

use crate::yaml::Node;

/// A rule that files are held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A file that matters is not YAML, or cannot be had at all.
    UnreadableFile,
    /// A kind or version of Flux's image group that does not exist.
    UnknownKind,
    /// A field that the kind does not have.
    UnknownField,
    /// A field that is given twice.
    DuplicateField,
    /// A field that the kind requires is not there.
    MissingField,
    /// A value that an API server or a controller refuses.
    InvalidValue,
    /// An annotation `tagboat.dev/…` that the kind does not have.
    UnknownAnnotation,
    /// An annotation `tagboat.dev/…` with a value that it does not take.
    InvalidAnnotation,
    /// A template that is none, or that fails on sample data.
    TemplateError,
    /// A template that uses a field which Flux has removed.
    RemovedTemplateField,
    /// A preset that does not exist, or one that is almost named.
    UnknownPreset,
    /// A marker that names no policy.
    UnknownPolicy,
    /// A marker that asks for a part which images do not have.
    UnknownMarkerField,
    /// A marker that belongs to no single value.
    MisplacedMarker,
    /// A comment that is almost a marker.
    MalformedMarker,
    /// A policy that no marker names.
    UnmarkedPolicy,
}

impl Rule {
    /// All rules, in the order of the documentation.
    pub const ALL: [Self; 16] = [
        Self::UnreadableFile,
        Self::UnknownKind,
        Self::UnknownField,
        Self::DuplicateField,
        Self::MissingField,
        Self::InvalidValue,
        Self::UnknownAnnotation,
        Self::InvalidAnnotation,
        Self::TemplateError,
        Self::RemovedTemplateField,
        Self::UnknownPreset,
        Self::UnknownPolicy,
        Self::UnknownMarkerField,
        Self::MisplacedMarker,
        Self::MalformedMarker,
        Self::UnmarkedPolicy,
    ];

    /// The rule's name in reports, fixed for other programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::UnreadableFile => "unreadable-file",
            Self::UnknownKind => "unknown-kind",
            Self::UnknownField => "unknown-field",
            Self::DuplicateField => "duplicate-field",
            Self::MissingField => "missing-field",
            Self::InvalidValue => "invalid-value",
            Self::UnknownAnnotation => "unknown-annotation",
            Self::InvalidAnnotation => "invalid-annotation",
            Self::TemplateError => "template-error",
            Self::RemovedTemplateField => "removed-template-field",
            Self::UnknownPreset => "unknown-preset",
            Self::UnknownPolicy => "unknown-policy",
            Self::UnknownMarkerField => "unknown-marker-field",
            Self::MisplacedMarker => "misplaced-marker",
            Self::MalformedMarker => "malformed-marker",
            Self::UnmarkedPolicy => "unmarked-policy",
        }
    }
}

/// A line and a column, both counted from 1; the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Place {
    /// Where a file begins.
    pub const START: Self = Self { line: 1, column: 1 };

    /// Where a node begins.
    pub(super) fn of(node: &Node) -> Self {
        Self { line: node.line, column: node.column }
    }
}

/// One thing that was found. Findings are ordered by file, place and rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, as the caller named it.
    pub file: String,
    /// Where in the file.
    pub place: Place,
    /// The rule that is broken.
    pub rule: Rule,
    /// What is wrong and what to do, in a sentence.
    pub message: String,
}

/// Collects the findings of one file.
#[derive(Debug)]
pub(super) struct Findings<'a> {
    file: &'a str,
    found: &'a mut Vec<Finding>,
}

impl<'a> Findings<'a> {
    pub(super) fn new(file: &'a str, found: &'a mut Vec<Finding>) -> Self {
        Self { file, found }
    }

    pub(super) fn add(&mut self, place: Place, rule: Rule, message: impl Into<String>) {
        self.found.push(Finding { file: self.file.to_owned(), place, rule, message: message.into() });
    }
}

/// `; did you mean …?` where something near is known.
pub(super) fn hint(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default()
}
