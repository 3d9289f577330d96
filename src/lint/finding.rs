//! Findings of a lint: a location, the violated rule, and a message.

use serde::{Serialize, Serializer};

use crate::yaml::Node;

/// Defines the rules with their names in reports.
macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident = $name:literal,)*) => {
        /// A lint rule.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rule {
            $($(#[$doc])* $rule,)*
        }

        impl Rule {
            /// All rules, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$rule),*];

            /// The rule's name in reports; stable, because other programs read it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$rule => $name,)*
                }
            }
        }
    };
}

rules! {
    /// A relevant file is not YAML, or cannot be read at all.
    UnreadableFile = "unreadable-file",
    /// A kind or version does not exist in Flux's image group.
    UnknownKind = "unknown-kind",
    /// The kind does not have the field.
    UnknownField = "unknown-field",
    /// A field is given twice.
    DuplicateField = "duplicate-field",
    /// A field that the kind requires is missing.
    MissingField = "missing-field",
    /// An API server or a controller rejects the value.
    InvalidValue = "invalid-value",
    /// The kind does not have the annotation `tagboat.dev/…`.
    UnknownAnnotation = "unknown-annotation",
    /// An annotation `tagboat.dev/…` has an invalid value.
    InvalidAnnotation = "invalid-annotation",
    /// A release group has one policy.
    LoneGroupMember = "lone-group-member",
    /// A field or annotation has no effect together with an annotation `tagboat.dev/…`, or without one.
    IneffectiveField = "ineffective-field",
    /// A branch of a delivery has no usable name.
    InvalidBranch = "invalid-branch",
    /// The forge of a repository is unknown, or its API cannot be used.
    UnusableForge = "unusable-forge",
    /// The forge has no feature for a setting.
    UnsupportedSetting = "unsupported-setting",
    /// A template is invalid, or fails on sample data.
    TemplateError = "template-error",
    /// A template uses a field that Flux removed.
    RemovedTemplateField = "removed-template-field",
    /// A preset does not exist, or its name is misspelt.
    UnknownPreset = "unknown-preset",
    /// A marker names a policy that does not exist.
    UnknownPolicy = "unknown-policy",
    /// A marker names a part that images do not have.
    UnknownMarkerField = "unknown-marker-field",
    /// A marker belongs to no single value.
    MisplacedMarker = "misplaced-marker",
    /// A comment is almost a marker.
    MalformedMarker = "malformed-marker",
    /// No marker names the policy.
    UnmarkedPolicy = "unmarked-policy",
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A line and a column, both counted from 1; the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// The file, as named by the caller.
    pub file: String,
    /// The location in the file.
    #[serde(flatten)]
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
