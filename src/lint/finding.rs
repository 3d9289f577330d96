//! Findings of a lint: a location, the violated rule, and a message.

use crate::yaml::Node;

/// A rule that files are checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A relevant file is not YAML, or cannot be read at all.
    UnreadableFile,
    /// A kind or version does not exist in Flux's image group.
    UnknownKind,
    /// The kind does not have the field.
    UnknownField,
    /// A field is given twice.
    DuplicateField,
    /// A field that the kind requires is missing.
    MissingField,
    /// An API server or a controller rejects the value.
    InvalidValue,
    /// The kind does not have the annotation `tagboat.dev/…`.
    UnknownAnnotation,
    /// An annotation `tagboat.dev/…` has an invalid value.
    InvalidAnnotation,
    /// A template is invalid, or fails on sample data.
    TemplateError,
    /// A template uses a field that Flux removed.
    RemovedTemplateField,
    /// A preset does not exist, or its name is misspelt.
    UnknownPreset,
    /// A marker names a policy that does not exist.
    UnknownPolicy,
    /// A marker names a part that images do not have.
    UnknownMarkerField,
    /// A marker belongs to no single value.
    MisplacedMarker,
    /// A comment is almost a marker.
    MalformedMarker,
    /// No marker names the policy.
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

    /// The rule's name in reports; stable, because other programs read it.
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
pub struct Location {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Location {
    /// The start of a file.
    pub const START: Self = Self { line: 1, column: 1 };

    /// The start of a node.
    pub(super) fn of(node: &Node) -> Self {
        Self { line: node.line, column: node.column }
    }
}

/// A violation of a rule. Findings are ordered by file, location and rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, as named by the caller.
    pub file: String,
    /// The location in the file.
    pub location: Location,
    /// The violated rule.
    pub rule: Rule,
    /// The error and its correction, as a sentence.
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

    pub(super) fn add(&mut self, location: Location, rule: Rule, message: impl Into<String>) {
        self.found.push(Finding { file: self.file.to_owned(), location, rule, message: message.into() });
    }
}

/// Formats `; did you mean …?` if there is a similar name.
pub(super) fn hint(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default()
}
