//! Errors of reading manifests.

use std::path::{Path, PathBuf};

use tagboat_api::object_name::InvalidName;
use tagboat_api::unknown_fields::TypeMismatch;

use super::secret::SecretError;

/// The error of a manifest that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The path does not exist or cannot be read.
    #[error("{}: cannot read the manifests there", file.display())]
    Unreadable {
        /// The path as given.
        file: PathBuf,
        /// The cause.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file is not YAML.
    #[error("{}:{line}:{column}: the manifest is not YAML", file.display())]
    NotYaml {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The column, counted from 1.
        column: u64,
        /// The cause.
        #[source]
        cause: SyntaxError,
    },
    /// An unknown kind of Flux's image group.
    #[error(
        "{}: {api_version} has no kind {kind:?}; tagboat reads ImageUpdateAutomation, ImagePolicy and ImageRepository there",
        file.display()
    )]
    UnknownKind {
        /// The file.
        file: PathBuf,
        /// The document's apiVersion.
        api_version: String,
        /// The document's kind.
        kind: String,
    },
    /// A version that is not supported.
    #[error("{}: {kind} of {api_version} is not supported; use {group}/v1 or {group}/v1beta2", file.display())]
    UnknownVersion {
        /// The file.
        file: PathBuf,
        /// The document's apiVersion.
        api_version: String,
        /// The version's group.
        group: String,
        /// The document's kind.
        kind: String,
    },
    /// Almost a Namespace, whose windows and freezes would be lost.
    #[error(
        "{}: a Namespace has the apiVersion v1 and the kind Namespace, and not {api_version:?} and {kind:?}",
        file.display()
    )]
    NoNamespace {
        /// The file.
        file: PathBuf,
        /// The document's apiVersion.
        api_version: String,
        /// The document's kind.
        kind: String,
    },
    /// The object has no name.
    #[error("{}: {kind} without a metadata.name that is a string", file.display())]
    NoName {
        /// The file.
        file: PathBuf,
        /// The document's kind.
        kind: String,
    },
    /// A field that the kind does not have.
    #[error("{}: {object} has an unknown field {field}{hint}", file.display())]
    UnknownField {
        /// The file.
        file: PathBuf,
        /// Kind, namespace and name.
        object: String,
        /// The field with its path.
        field: String,
        /// The suggested field, if any.
        hint: String,
    },
    /// A field of the wrong type or value.
    #[error("{}: {object} is not valid at {field}", file.display())]
    Invalid {
        /// The file.
        file: PathBuf,
        /// Kind, namespace and name.
        object: String,
        /// The field with its path.
        field: String,
        /// The cause.
        #[source]
        cause: FieldError,
    },
    /// An explicitly named file without any object to read.
    #[error("{}: there is no object of image.toolkit.fluxcd.io or source.toolkit.fluxcd.io in it", file.display())]
    NothingToRead {
        /// The file.
        file: PathBuf,
    },
    /// A requested Secret without usable values.
    #[error("{}: {object} cannot be used", file.display())]
    Secret {
        /// The file.
        file: PathBuf,
        /// Kind, namespace and name.
        object: String,
        /// The cause.
        #[source]
        cause: SecretError,
    },
    /// A requested ServiceAccount whose pull secrets cannot be read.
    #[error("{}: {object} cannot be used: imagePullSecrets must be a list of names", file.display())]
    PullSecrets {
        /// The file.
        file: PathBuf,
        /// Kind, namespace and name.
        object: String,
    },
    /// An object that is defined twice.
    #[error("{object} is defined twice, {}; keep one", places(first, second))]
    Duplicate {
        /// Kind, namespace and name.
        object: String,
        /// The first file.
        first: PathBuf,
        /// The second file.
        second: PathBuf,
    },
}

/// Returns the files of an object that is defined twice.
fn places(first: &Path, second: &Path) -> String {
    if first == second {
        return format!("both times in {}", first.display());
    }
    format!("in {} and in {}", first.display(), second.display())
}

/// The error of a file that is not YAML.
///
/// Its message has that of its cause, so it has no source.
#[derive(Debug, thiserror::Error)]
pub enum SyntaxError {
    /// It is not UTF-8.
    #[error("it is not UTF-8 here: save the file as UTF-8")]
    NotUtf8,
    /// The parser's error. The position is omitted from its message, which begins with it already.
    #[error("{}", message(.0))]
    Parser(Box<serde_saphyr::Error>),
}

/// Returns the parser's message, without the position and without its API options.
fn message(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let line = line.split(", set DuplicateKeyPolicy").next().unwrap_or_default();
    line.split(" at line ").next().unwrap_or_default().to_owned()
}

/// The error of a field.
///
/// Its message has that of its cause, so it has no source.
#[derive(Debug, thiserror::Error)]
pub enum FieldError {
    /// It has the wrong type.
    #[error("it {0}")]
    Type(TypeMismatch),
    /// It is not one of the possible values.
    #[error(transparent)]
    Choice(Box<UnknownChoice>),
    /// It is the name of an object, and Kubernetes rejects it.
    #[error(transparent)]
    Name(InvalidName),
    /// It is null, and it is required.
    #[error("it must not be empty")]
    Null,
    /// It has an invalid value.
    #[error(transparent)]
    Value(serde_json::Error),
}

impl FieldError {
    /// Makes the error of a field from the parser's.
    ///
    /// The parser names types of this program for a null.
    pub(super) fn of(error: serde_json::Error) -> Self {
        if error.to_string().starts_with("invalid type: null") { Self::Null } else { Self::Value(error) }
    }
}

/// A value that is not one of the possible values of a field.
#[derive(Debug, thiserror::Error)]
#[error("`{value}` is not allowed; allowed are {}{}", choices.join(", "), meant(nearest.as_deref()))]
pub struct UnknownChoice {
    /// The value as it was written.
    pub value: String,
    /// The possible values.
    pub choices: Vec<String>,
    /// The suggested value, if one is similar.
    pub nearest: Option<String>,
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("; did you mean {nearest}?")).unwrap_or_default()
}
