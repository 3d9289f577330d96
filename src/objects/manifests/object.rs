//! Parses a document into a typed object.

use std::collections::BTreeMap;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tagboat_api::nearest::nearest;
use tagboat_api::object_name::{validate_name, validate_namespace};
use tagboat_api::substitution::contains_placeholder;
use tagboat_api::unknown_fields::Violation;
use tagboat_api::{DEPRECATED_VERSION, IMAGE_GROUP, Kind, KnownFields, v1beta2};

use super::defect::{DEFAULT_NAMESPACE, Defect, name_of};
use super::document::Document;
use super::error::UnknownChoice;
use super::kind::ManifestKind;
use super::{FieldError, Manifest, ManifestError, Object, secret};
use crate::error::chain;

/// A parsed document; its object is `None` if we do not read its kind.
struct Parsed {
    object: Option<Object>,
    notes: Vec<String>,
}

/// Parses one document into an object, if we read its kind, and notes.
///
/// An error has the name of the object, if that can be read.
pub(super) fn parse(
    file: &Path,
    document: Document,
    known: &KnownFields,
) -> Result<(Option<Manifest>, Vec<String>), Box<Defect>> {
    let group = document.text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    let identity = ManifestKind::of(group, document.text("kind")).zip(name_of(&document.value));
    match parse_object(file, document, known) {
        Ok(Parsed { object, notes }) => {
            let file = file.to_owned();
            let manifest = identity.zip(object);
            Ok((manifest.map(|((kind, name), object)| Manifest { file, kind, name, object }), notes))
        }
        Err(error) => Err(Box::new(Defect::of(identity, error))),
    }
}

fn parse_object(file: &Path, document: Document, known: &KnownFields) -> Result<Parsed, ManifestError> {
    let (api_version, kind) = (document.text("apiVersion").to_owned(), document.text("kind").to_owned());
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let Some(kind) = ManifestKind::of(group, &kind) else {
        return match group {
            IMAGE_GROUP => Err(ManifestError::UnknownKind { file: file.to_owned(), api_version, kind }),
            "" if is_like_namespace(&kind, &document.value) => {
                Err(ManifestError::NoNamespace { file: file.to_owned(), api_version, kind })
            }
            _ => Ok(foreign(file, &api_version, &kind)),
        };
    };
    if !kind.versions().contains(&version) {
        let (file, group, name) = (file.to_owned(), group.to_owned(), kind.name().to_owned());
        return match kind {
            ManifestKind::Secret | ManifestKind::ServiceAccount => Ok(foreign(&file, &api_version, &name)),
            ManifestKind::Namespace => Err(ManifestError::NoNamespace { file, api_version, kind: name }),
            ManifestKind::Flux(_) => {
                Err(ManifestError::UnknownVersion { file, api_version, group, kind: name })
            }
        };
    }
    let mut parser = Parser { file, version, kind, name: String::new(), notes: Vec::new() };
    let mut value = document.value;
    if let Err(error) = parser.ensure_name(&mut value) {
        // Without a valid name it cannot be requested, so it does no harm.
        return match kind {
            ManifestKind::Secret | ManifestKind::ServiceAccount => {
                Ok(unsupported(file, &format!("a {} without a valid name", kind.name())))
            }
            _ => Err(error),
        };
    }
    let violations = known.violations(group, version, kind.name(), &value);
    parser.check_fields(violations.unwrap_or_default(), &mut value)?;
    parser.add_required_fields(&mut value);
    let object = parser.typed(value)?;
    Ok(Parsed { object: Some(object), notes: parser.notes })
}

/// Returns true if an object of the core group is a misspelt Namespace.
fn is_like_namespace(kind: &str, value: &Value) -> bool {
    let name = ManifestKind::Namespace.name();
    value["metadata"].is_object() && (kind.eq_ignore_ascii_case(name) || nearest(kind, [name]).is_some())
}

/// Takes the labels and annotations of a Namespace whose fields have been checked.
///
/// A value without a text is empty, as in a cluster.
fn namespace(value: &Value) -> Object {
    let texts = |member: &str| -> BTreeMap<String, String> {
        let values = value["metadata"][member].as_object().into_iter().flatten();
        values.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
    };
    Object::Namespace { labels: texts("labels"), annotations: texts("annotations") }
}

fn foreign(file: &Path, api_version: &str, kind: &str) -> Parsed {
    let what = if kind.is_empty() || api_version.is_empty() {
        "a document without apiVersion and kind".to_owned()
    } else {
        format!("a {kind} of {api_version}")
    };
    unsupported(file, &what)
}

fn unsupported(file: &Path, what: &str) -> Parsed {
    let note = format!("{}: skipped {what}, which tagboat does not read", file.display());
    Parsed { object: None, notes: vec![note] }
}

/// Fields whose unknown values the reconcile rejects, with Flux's messages.
const VALIDATED_LATER: [&str; 5] = [
    "spec.policy.alphabetical.order",
    "spec.policy.numerical.order",
    "spec.sourceRef.kind",
    "spec.update.strategy",
    "spec.git.commit.signingKey.type",
];

/// A document that is being parsed.
struct Parser<'a> {
    file: &'a Path,
    version: &'a str,
    kind: ManifestKind,
    /// Kind, namespace and name, for messages.
    name: String,
    notes: Vec<String>,
}

impl Parser<'_> {
    /// Ensures that the object has a valid name and namespace.
    fn ensure_name(&mut self, value: &mut Value) -> Result<(), ManifestError> {
        let no_name =
            || ManifestError::NoName { file: self.file.to_owned(), kind: self.kind.name().to_owned() };
        let metadata = value.get_mut("metadata").and_then(Value::as_object_mut).ok_or_else(no_name)?;
        let name = metadata.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let name = name.ok_or_else(no_name)?.to_owned();
        let namespace = metadata.get("namespace").and_then(Value::as_str).filter(|text| !text.is_empty());
        let namespace = namespace.unwrap_or(DEFAULT_NAMESPACE).to_owned();
        // A Namespace is in none, and its name is that of one.
        let is_namespace = self.kind == ManifestKind::Namespace;
        self.name = if is_namespace {
            format!("{} {name}", self.kind.name())
        } else {
            format!("{} {namespace}/{name}", self.kind.name())
        };
        let invalid = |field: &str, cause| self.invalid(field.to_owned(), FieldError::Name(cause));
        // A name with a placeholder gets its value when the manifest is applied; here it must not lead to another path.
        let is_open = |text: &str| contains_placeholder(text) && !text.contains('/');
        if !is_open(&name) {
            let validate = if is_namespace { validate_namespace } else { validate_name };
            validate(&name).map_err(|cause| invalid("metadata.name", cause))?;
        }
        if !is_namespace && !is_open(&namespace) {
            validate_namespace(&namespace).map_err(|cause| invalid("metadata.namespace", cause))?;
        }
        // A namespace of a wrong type stays, for the check of types.
        if metadata.get("namespace").is_none_or(|namespace| namespace.is_null() || namespace.is_string()) {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
        Ok(())
    }

    /// Rejects unknown fields and values, and values of wrong types.
    ///
    /// In a status, which a program wrote, they are only noted; with a wrong type in it, it is omitted. A misspelled field
    /// must not be taken for an absent one, nor a misspelled value for the default.
    fn check_fields(&mut self, violations: Vec<Violation>, value: &mut Value) -> Result<(), ManifestError> {
        for violation in violations {
            match violation {
                Violation::UnknownField { path, .. } if is_in_status(&path) => {
                    self.note_status(&format!("it has the unknown field {path}"));
                }
                Violation::UnknownField { path, nearest } => {
                    let hint =
                        nearest.map(|nearest| format!("; did you mean {nearest}?")).unwrap_or_default();
                    return Err(ManifestError::UnknownField {
                        file: self.file.to_owned(),
                        object: self.name.clone(),
                        field: path,
                        hint,
                    });
                }
                Violation::UnknownValue { path, value, .. } if is_in_status(&path) => {
                    self.note_status(&format!("it has the unknown value {value:?} at {path}"));
                }
                Violation::UnknownValue { path, .. } if self.is_validated_later(&path) => {}
                Violation::UnknownValue { path, value, choices, nearest } => {
                    let choice = UnknownChoice { value, choices, nearest };
                    return Err(self.invalid(path, FieldError::Choice(Box::new(choice))));
                }
                Violation::WrongType { path, mismatch } if is_in_status(&path) => {
                    self.omit_status(value, &path, &FieldError::Type(mismatch));
                }
                Violation::WrongType { path, mismatch } => {
                    return Err(self.invalid(path, FieldError::Type(mismatch)));
                }
            }
        }
        Ok(())
    }

    /// Returns whether the reconcile always rejects an unknown value of a field, with Flux's message.
    fn is_validated_later(&self, path: &str) -> bool {
        VALIDATED_LATER.contains(&path)
            || (self.kind == ManifestKind::Flux(Kind::GitRepository) && path == "spec.provider")
    }

    /// Adds the fields that a cluster requires and an update does not need.
    fn add_required_fields(&mut self, value: &mut Value) {
        for &(field, placeholder) in self.kind.placeholders() {
            let (parent, key) = match field.rsplit_once('.') {
                Some((parent, key)) => (value.get_mut(parent), key),
                None => (Some(&mut *value), field),
            };
            let Some(Value::Object(object)) = parent else { continue };
            if object.get(key).is_none_or(Value::is_null) {
                object.insert(key.to_owned(), placeholder());
                self.notes.push(format!(
                    "{}: {} has no {field}, which a cluster requires; it is not needed here",
                    self.file.display(),
                    self.name
                ));
            }
        }
    }

    fn typed(&mut self, value: Value) -> Result<Object, ManifestError> {
        Ok(match self.kind {
            ManifestKind::Flux(Kind::Automation) => Object::Automation(Box::new(self.deserialize(value)?)),
            ManifestKind::Flux(Kind::Policy) if self.version == DEPRECATED_VERSION => {
                let old: v1beta2::ImagePolicy = self.deserialize(value)?;
                let without_status = v1beta2::ImagePolicy { status: None, ..old.clone() };
                let policy = old.into_v1().or_else(|error| {
                    self.note_status(&chain(&error));
                    without_status.into_v1()
                });
                Object::Policy(Box::new(policy.expect("without a status there is no image to split")))
            }
            ManifestKind::Flux(Kind::Policy) => Object::Policy(Box::new(self.deserialize(value)?)),
            ManifestKind::Flux(Kind::Repository) => Object::Repository(Box::new(self.deserialize(value)?)),
            ManifestKind::Flux(Kind::GitRepository) => {
                Object::GitRepository(Box::new(self.deserialize(value)?))
            }
            ManifestKind::Secret => Object::Secret(secret::values(value)),
            ManifestKind::ServiceAccount => Object::ServiceAccount(names(&value["imagePullSecrets"])),
            ManifestKind::Namespace => namespace(&value),
        })
    }

    /// Makes the typed object.
    ///
    /// A status that cannot be parsed is omitted with a note: it is not the user's intent and must not keep the rest
    /// from being read.
    fn deserialize<T: DeserializeOwned>(&mut self, mut value: Value) -> Result<T, ManifestError> {
        let error = match serde_path_to_error::deserialize(&value) {
            Ok(object) => return Ok(object),
            Err(error) => error,
        };
        let (path, cause) = (error.path().to_string(), FieldError::of(error.into_inner()));
        if is_in_status(&path) {
            self.omit_status(&mut value, &path, &cause);
            return serde_path_to_error::deserialize(value)
                .map_err(|error| self.invalid(error.path().to_string(), FieldError::of(error.into_inner())));
        }
        Err(self.invalid(path, cause))
    }

    /// Removes the status from an object, with a note about the invalid field in it.
    fn omit_status(&mut self, value: &mut Value, path: &str, cause: &FieldError) {
        if let Some(object) = value.as_object_mut() {
            object.remove("status");
        }
        self.note_status(&format!("{path}: {cause}"));
    }

    fn note_status(&mut self, cause: &str) {
        let (file, object) = (self.file.display(), &self.name);
        self.notes.push(format!("{file}: a part of the status of {object} was ignored: {cause}"));
    }

    fn invalid(&self, field: String, cause: FieldError) -> ManifestError {
        let (file, object) = (self.file.to_owned(), self.name.clone());
        ManifestError::Invalid { file, object, field, cause }
    }
}

fn is_in_status(path: &str) -> bool {
    path == "status" || path.starts_with("status.")
}

/// Reads the names of a ServiceAccount's pull secrets.
fn names(list: &Value) -> Option<Vec<String>> {
    match list {
        Value::Null => Some(Vec::new()),
        Value::Array(items) => items.iter().map(|item| item["name"].as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pull_secrets_are_a_list_of_names() {
        for (list, expected) in [
            (json!(null), Some(&[][..])),
            (json!([{"name": "b"}, {"name": "a"}]), Some(&["b", "a"])),
            (json!(["a"]), None),
            (json!({"name": "a"}), None),
        ] {
            let expected = expected.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
            assert_eq!(names(&list), expected, "{list}");
        }
    }
}
