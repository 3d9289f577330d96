//! Reads results printed as JSON into the data of messages.
//!
//! `tagboat run --output json` prints a list of results, `tagboat update --output json` a single one. Only `automation`
//! and `changes` are required in a result; unknown members are ignored.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use tagboat_api::ObjectName;

use super::data::MessageData;
use crate::reference::{ImageReference, ReferenceError};
use crate::update::{Change, Marker, ObjectIdentifier, ResultV2};

/// The schema version of results.
pub const SCHEMA: &str = "tagboat.dev/outcome/v1";

/// The error of a text that is not a result.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It is not JSON, or not a result.
    #[error("at {path} (line {line}, column {column}): {message}")]
    Json {
        /// The path of the member.
        path: String,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// The cause.
        message: String,
    },
    /// It is a result of another version.
    #[error("its schema is {schema:?}, and this version of tagboat reads {SCHEMA:?}")]
    Schema {
        /// The version that the result states.
        schema: String,
    },
    /// The image of a policy is no image reference.
    #[error("the image of the policy {policy} under \"policies\" cannot be used")]
    Image {
        /// The policy's key.
        policy: String,
        /// The cause.
        #[source]
        cause: ReferenceError,
    },
}

/// One result.
#[derive(Debug, Clone, Deserialize)]
#[serde(expecting = "an object")]
pub struct Recorded {
    schema: Option<String>,
    /// Present in a list of results.
    automations: Option<IgnoredAny>,
    automation: Option<Name>,
    changes: BTreeMap<String, FileChanges>,
    values: Option<BTreeMap<String, String>>,
    policies: Option<BTreeMap<String, Image>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(expecting = "an object")]
struct Name {
    #[serde(default)]
    namespace: String,
    name: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(expecting = "an object")]
struct Image {
    name: String,
    #[serde(default)]
    tag: String,
    #[serde(default)]
    digest: Option<String>,
}

/// The changes in one file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "an object")]
pub struct FileChanges {
    /// The changes by object, sorted by apiVersion, kind, name, namespace.
    pub objects: Vec<ObjectChanges>,
}

/// The changes in one object; missing parts of its identity are empty.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, expecting = "an object")]
// A printed object has all members; one that is read may lack some.
#[schemars(!default)]
pub struct ObjectChanges {
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// The changes in the order of the document.
    pub changes: Vec<Change>,
}

/// Distinguishes the two forms of a document.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Form {
    schema: Option<String>,
    automations: Option<Vec<Form>>,
}

impl Form {
    /// The first version in the document that is not [`SCHEMA`].
    fn foreign_schema(&self) -> Option<&String> {
        let own = self.schema.as_ref().filter(|schema| *schema != SCHEMA);
        own.or_else(|| self.automations.iter().flatten().find_map(Self::foreign_schema))
    }
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct List {
    automations: Vec<Recorded>,
}

/// Parses the output of `--output json` into its results, in their order.
///
/// # Errors
///
/// Returns an error if it is not JSON or is of another version, or if a member has the wrong form.
pub fn read(json: &[u8]) -> Result<Vec<Recorded>, RecordError> {
    // Most documents are one result: those are read in one pass.
    if let Ok(one) = serde_json::from_slice::<Recorded>(json)
        && one.automations.is_none()
        && one.schema.as_deref().is_none_or(|schema| schema == SCHEMA)
    {
        return Ok(vec![one]);
    }
    let form: Form = parse(json)?;
    if let Some(schema) = form.foreign_schema() {
        return Err(RecordError::Schema { schema: schema.clone() });
    }
    if form.automations.is_some() {
        let list: List = parse(json)?;
        Ok(list.automations)
    } else {
        Ok(vec![parse(json)?])
    }
}

fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, RecordError> {
    // Tracking the path costs a third more, and only an error needs it.
    serde_json::from_slice(json).or_else(|_| parse_with_path(json))
}

fn parse_with_path<T: DeserializeOwned>(json: &[u8]) -> Result<T, RecordError> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let failed = |path: String, cause: serde_json::Error| {
        let path = if path == "." { "the top".to_owned() } else { path };
        // The text ends with the position, which is stated separately.
        let (line, column) = (cause.line(), cause.column());
        let message = cause.to_string();
        let message =
            message.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&message).to_owned();
        RecordError::Json { path, line, column, message }
    };
    let value = serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| failed(error.path().to_string(), error.into_inner()))?;
    reader.end().map_err(|error| failed(".".to_owned(), error))?;
    Ok(value)
}

impl Recorded {
    /// The automation; `None` if the update had only policies.
    pub fn automation(&self) -> Option<ObjectName> {
        let name = self.automation.as_ref()?;
        Some(ObjectName { namespace: name.namespace.clone(), name: name.name.clone() })
    }

    /// Converts the result into the data of a message of an automation.
    ///
    /// # Errors
    ///
    /// Returns an error if the image of a policy with changes is not an image reference.
    pub fn data(&self, automation: &ObjectName) -> Result<MessageData, RecordError> {
        let result = self.result();
        let mut images: BTreeMap<ObjectName, ImageReference> = BTreeMap::new();
        for change in result.changes() {
            let policy = Marker::of_setter(&change.setter).policy;
            if images.contains_key(&policy) {
                continue;
            }
            if let Some((key, image)) = self.image(&policy) {
                let read = ImageReference::from_parts(&image.name, &image.tag, image.digest.as_deref());
                let image = read.map_err(|cause| RecordError::Image { policy: key.clone(), cause })?;
                images.insert(policy, image);
            }
        }
        let values = self.values.clone().unwrap_or_default();
        Ok(MessageData::new(automation, values, &result, &images.iter().collect()))
    }

    /// Returns the image of a policy.
    ///
    /// Its key is the policy's name, or its namespace and name if names repeat.
    fn image(&self, policy: &ObjectName) -> Option<(&String, &Image)> {
        let policies = self.policies.as_ref()?;
        policies.get_key_value(&policy.to_string()).or_else(|| policies.get_key_value(&policy.name))
    }

    fn result(&self) -> ResultV2 {
        let mut result = ResultV2::default();
        for (file, FileChanges { objects }) in &self.changes {
            let mut changed = Vec::new();
            for object in objects {
                let identifier = ObjectIdentifier {
                    api_version: object.api_version.clone(),
                    kind: object.kind.clone(),
                    name: object.name.clone(),
                    namespace: object.namespace.clone(),
                };
                let changes = object.changes.iter();
                changed.extend(changes.map(|change| (identifier.clone(), change.clone())));
            }
            result.file_changes.insert(file.as_str().into(), Arc::new(changed.into_iter().collect()));
        }
        result
    }
}

/// The embedded sample.
pub(super) fn sample() -> MessageData {
    embedded(include_bytes!("../../templates/commit/sample.json"))
}

/// The embedded sample of plain changes.
pub(super) fn plain_sample() -> MessageData {
    embedded(include_bytes!("../../templates/commit/plain.json"))
}

fn embedded(json: &[u8]) -> MessageData {
    let results = read(json);
    let sample = results.expect("the sample is a result").remove(0);
    let automation = sample.automation().expect("the sample has an automation");
    sample.data(&automation).expect("the images of the sample are references")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::chain;

    #[test]
    fn both_forms_are_read_and_unknown_members_are_ignored() {
        let one = r#"{"automation": {"namespace": "n", "name": "a", "x": 1}, "changes": {}, "new": [1]}"#;
        for (json, names) in [
            (one.to_owned(), vec!["n/a"]),
            (format!(r#"{{"automations": [{one}, {one}], "more": null}}"#), vec!["n/a", "n/a"]),
            (r#"{"automations": []}"#.to_owned(), vec![]),
            (r#"{"changes": {}, "automations": null}"#.to_owned(), vec!["none"]),
        ] {
            let results = read(json.as_bytes()).unwrap();
            let found: Vec<String> = results
                .iter()
                .map(|result| result.automation().map_or("none".to_owned(), |name| name.to_string()))
                .collect();
            assert_eq!(found, names, "{json}");
        }
    }

    #[test]
    fn invalid_results_are_refused_with_their_place() {
        for (json, message) in [
            ("", "at the top (line 1, column 0): EOF while parsing a value"),
            ("7", "at the top (line 1, column 1): invalid type: integer `7`, expected an object"),
            ("[]", "at the top"),
            (r#"{"automation": {"name": "a"}}"#, "missing field `changes`"),
            (r#"{"changes": {"f": {}}}"#, "at changes.f"),
            (r#"{"changes": {"f": {"objects": [{"kind": 1}]}}}"#, "at changes.f.objects[0].kind"),
            (r#"{"changes": {}} x"#, "trailing characters"),
            (r#"{"automations": [{"changes": {}}, {}]}"#, "at automations[1]"),
            (r#"{"schema": 7, "changes": {}}"#, "at schema (line 1, column 12)"),
        ] {
            let error = chain(&read(json.as_bytes()).unwrap_err());
            assert!(error.contains(message), "{json}: {error}");
            assert!(!error.contains("struct") && error.matches("column").count() == 1, "{json}: {error}");
        }
    }

    #[test]
    fn a_result_of_another_version_is_refused() {
        let own = format!(r#"{{"schema": "{SCHEMA}", "changes": {{}}}}"#);
        let other = r#"{"schema": "tagboat.dev/outcome/v2", "edits": []}"#;
        assert!(read(own.as_bytes()).is_ok());
        for json in [other.to_owned(), format!(r#"{{"automations": [{own}, {other}]}}"#)] {
            assert_eq!(
                chain(&read(json.as_bytes()).unwrap_err()),
                r#"its schema is "tagboat.dev/outcome/v2", and this version of tagboat reads "tagboat.dev/outcome/v1""#
            );
        }
    }

    #[test]
    fn images_are_listed_for_policies_with_changes_only() {
        let json = r#"{"changes": {"f": {"objects": [{"changes": [
            {"setter": "n:one:tag"}, {"setter": "n:two:name"}, {"setter": "m:two"}, {"setter": "n:gone"}
        ]}]}}, "policies": {
            "one": {"name": "reg.io/one", "tag": "1", "digest": ""}, "idle": {"name": "UPPER", "tag": ""},
            "n/two": {"name": "reg.io/nn", "tag": "2"}, "m/two": {"name": "reg.io/mm", "tag": "3"}
        }}"#;
        let automation = ObjectName { namespace: "n".to_owned(), name: "a".to_owned() };
        let data = read(json.as_bytes()).unwrap()[0].data(&automation).unwrap();
        let objects = data.files()["f"].values();
        let images: Vec<String> = objects
            .flat_map(|update| &update.images)
            .map(|image| format!("{} {}", image.policy, image.image))
            .collect();
        assert_eq!(images, ["n/one reg.io/one:1", "n/two reg.io/nn:2", "m/two reg.io/mm:3"]);
    }
}
