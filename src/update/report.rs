//! Reports of markers with their outcomes, and of files that could not be read.

use std::fmt::Display;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use tagboat_api::ObjectName;

use super::marker::MarkerError;
use super::result::ObjectIdentifier;
use super::tree::TreeError;
use crate::error::chain;
use crate::yaml::YamlError;

/// The outcome of a marker.
///
/// Its name in reports is stable, because other programs read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkerOutcome {
    /// Its value was replaced.
    Changed,
    /// Its value is already the desired one.
    Current,
    /// It names a policy of a namespace other than the automation's.
    OtherNamespace,
    /// It names a policy that the automation's selector does not select.
    PolicyNotSelected,
    /// It names a policy that does not exist.
    UnknownPolicy,
    /// Its policy has chosen no image.
    PolicyWithoutImage,
    /// It asks for a field that images do not have.
    UnknownField,
    /// It has no effect because it belongs to no scalar value.
    NotOnScalar,
    /// Its value is to be replaced, and may not be yet.
    Waiting,
    /// Its value was taken back by others, and is not replaced.
    Held,
}

impl MarkerOutcome {
    /// All outcomes, for tables and tests.
    pub const ALL: [Self; 10] = [
        Self::Changed,
        Self::Current,
        Self::OtherNamespace,
        Self::PolicyNotSelected,
        Self::UnknownPolicy,
        Self::PolicyWithoutImage,
        Self::UnknownField,
        Self::NotOnScalar,
        Self::Waiting,
        Self::Held,
    ];

    /// The outcome of a marker without a scalar, given the value that it would set.
    pub(super) fn for_stray(wanted: &Result<String, Self>) -> Self {
        match wanted {
            Err(Self::OtherNamespace) => Self::OtherNamespace,
            _ => Self::NotOnScalar,
        }
    }

    /// The severity with which the outcome is reported.
    pub fn severity(self) -> Severity {
        match self {
            Self::Changed
            | Self::Current
            | Self::OtherNamespace
            | Self::PolicyNotSelected
            | Self::Waiting => Severity::Info,
            Self::UnknownPolicy
            | Self::PolicyWithoutImage
            | Self::UnknownField
            | Self::NotOnScalar
            | Self::Held => Severity::Warning,
        }
    }

    /// The error as a phrase to follow a marker's location; `None` if there is none.
    pub fn warning(self) -> Option<&'static str> {
        match self {
            Self::UnknownPolicy => Some("there is no such ImagePolicy"),
            Self::PolicyWithoutImage => Some("the ImagePolicy has no latest image that can be used"),
            Self::UnknownField => Some(
                "images have no such field; it must be one of tag, name, digest, tag@digest, or left out",
            ),
            Self::NotOnScalar => Some("the marker belongs to no single value, so it has no effect"),
            Self::Held => Some("its image was taken back, and tagboat.dev/on-revert keeps it so"),
            _ => None,
        }
    }
}

/// The severity of a marker's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing to look at: only lists of all markers name it.
    Info,
    /// The warnings of a report, the condition, the event and the log name it.
    Warning,
}

/// A marker and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkerReport {
    /// The file, relative to `update.path`.
    pub file: String,
    /// The line of the comment, counted from 1.
    pub line: usize,
    /// The object that contains the marker.
    pub object: ObjectIdentifier,
    /// The setter as written, such as `default:podinfo:tag`.
    pub setter: String,
    /// The policy that the setter names.
    pub policy: ObjectName,
    /// The value of the marked scalar before the update.
    ///
    /// `None` if the marker marks no scalar, or a scalar of more than 1,024 bytes.
    pub value: Option<String>,
    /// The marker's outcome.
    pub outcome: MarkerOutcome,
}

/// A comment that mentions the token and is not a marker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NearMiss {
    /// The file, relative to `update.path`.
    pub file: String,
    /// The line of the comment, counted from 1.
    pub line: usize,
    /// The reason for which it is not a marker.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String")]
    pub cause: MarkerError,
}

/// A file that holds the token and cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unparsable {
    /// The file, relative to `update.path`.
    pub file: String,
    /// The error of reading it.
    #[serde(flatten)]
    pub error: ReadError,
}

/// The error of reading a file, as text, so that the index can store it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
pub struct ReadError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The error as a phrase to follow the file name and location.
    ///
    /// It has at most 300 characters.
    // Indexes of earlier versions have it as `message`.
    #[serde(rename = "cause", alias = "message")]
    #[schemars(description = "The error there.")]
    pub message: String,
}

/// The maximum length of a message in characters.
///
/// Parsers quote their input, so longer messages are cut.
const MAX_MESSAGE_LENGTH: usize = 300;

impl ReadError {
    fn new((line, column): (usize, usize), message: &str) -> Self {
        let mut message: String = message.chars().take(MAX_MESSAGE_LENGTH + 1).collect();
        if let Some((end, _)) = message.char_indices().nth(MAX_MESSAGE_LENGTH) {
            message.truncate(end);
            message.push('…');
        }
        Self { line, column, message }
    }

    /// The error for a file of more bytes than [`Limits::file_size`](crate::yaml::Limits::file_size).
    pub(crate) fn too_large(size: u64, limit: usize) -> Self {
        Self::new((1, 1), &format!("the file has {size} bytes, more than the limit of {limit}"))
    }
}

impl From<YamlError> for ReadError {
    fn from(error: YamlError) -> Self {
        Self::new((error.line, error.column), &chain(&error.cause))
    }
}

impl From<TreeError> for ReadError {
    fn from(error: TreeError) -> Self {
        let message = match &error {
            TreeError::Read { cause, .. } => chain(cause.as_ref()),
            other => chain(other),
        };
        Self::new((1, 1), &message)
    }
}

/// Serializes a value as it prints.
pub(super) fn as_text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_two_characters() {
        let failure = ReadError::new((1, 1), &"é".repeat(2 * MAX_MESSAGE_LENGTH));
        assert_eq!(failure.message, format!("{}…", "é".repeat(MAX_MESSAGE_LENGTH)));
        let failure = ReadError::new((1, 1), &"é".repeat(MAX_MESSAGE_LENGTH));
        assert_eq!(failure.message, "é".repeat(MAX_MESSAGE_LENGTH));
    }
}
