//! A part of a manifest that its kind does not allow.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::fields::ValueType;

/// A value of a type that its field does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMismatch {
    /// The required type, with its article.
    required: String,
    /// The type of the value, or a number or boolean itself.
    found: String,
}

impl TypeMismatch {
    pub(super) fn new(value: &Value, types: &BTreeSet<ValueType>) -> Self {
        let required: Vec<String> = types.iter().map(ToString::to_string).collect();
        let found = match value {
            Value::Null => "null".to_owned(),
            Value::Object(_) => ValueType::Mapping.to_string(),
            Value::Array(_) => ValueType::List.to_string(),
            Value::String(_) => ValueType::String.to_string(),
            Value::Bool(_) | Value::Number(_) if types.contains(&ValueType::String) => {
                format!("`{value}`; put it in quotes")
            }
            Value::Bool(_) | Value::Number(_) => format!("`{value}`"),
        };
        Self { required: required.join(" or "), found }
    }
}

/// Formats the mismatch as a predicate: `must be a mapping, but is a list`.
impl fmt::Display for TypeMismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "must be {}, but is {}", self.required, self.found)
    }
}

/// A field or value that the schema of a kind does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// An unknown field.
    UnknownField {
        /// Path of the field, such as `spec.accessFrom.namespaceSelectors[0].labels`.
        path: String,
        /// A similar name of a known field.
        nearest: Option<String>,
    },
    /// A value that is not one of the possible values of a field.
    UnknownValue {
        /// Path of the field.
        path: String,
        /// The value.
        value: String,
        /// The possible values.
        choices: Vec<String>,
        /// A similar possible value.
        nearest: Option<String>,
    },
    /// A value of a wrong type.
    WrongType {
        /// Path of the value; empty for the manifest as a whole.
        path: String,
        /// The types.
        mismatch: TypeMismatch,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownField { path, nearest: None } => write!(formatter, "unknown field `{path}`"),
            Self::UnknownField { path, nearest: Some(nearest) } => {
                write!(formatter, "unknown field `{path}`: did you mean `{nearest}`?")
            }
            Self::UnknownValue { path, value, choices, nearest } => {
                write!(formatter, "`{path}` cannot be {value:?}, only {}", choices.join(", "))?;
                nearest.iter().try_for_each(|nearest| write!(formatter, ": did you mean `{nearest}`?"))
            }
            Self::WrongType { path, mismatch } if path.is_empty() => {
                write!(formatter, "the manifest {mismatch}")
            }
            Self::WrongType { path, mismatch } => write!(formatter, "`{path}` {mismatch}"),
        }
    }
}
