//! The documents of the REST API: two forms of a DeploymentStatus, and a list.
//!
//! The default form is the first proposal of the Margo specification (`deployment.margo/v1`, `DeploymentStatus`):
//! `metadata` with identity and time stamp, `status` with state, error and components. Our fields are added; the
//! status has all fields of the object's.
//!
//! The form `margo` is the current manifest of the specification (`deployment.margo.org/v1alpha1`,
//! `DeploymentStatusManifest`), with no other fields. There, the components stand beside the status, and an error has
//! no empty member and appears only with the state `failed`.

mod deployment;
mod margo;

pub use deployment::{Document, DocumentKind, DocumentList, DocumentMetadata, DocumentVersion};
pub use margo::{MargoComponent, MargoKind, MargoManifest, MargoStatus, MargoVersion};

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::{Path, PathBuf};

    use jiff::Timestamp;
    use schemars::Schema;
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use serde_json::Value;
    use tagboat_api::DeploymentStatus;
    use tagboat_api::deployment_status::{
        ComponentStatus, DeploymentStatusSpec, DeploymentStatusStatus, State, StatusError, Summary, Target,
    };
    use tagboat_api::reference::LocalObjectReference;

    use super::*;
    use crate::rollout::aggregate::{Component, DeploymentError, DeploymentErrorCode};
    use crate::rollout::report::{self, Observation};

    /// The examples of the first proposal of the Margo specification.
    const EXAMPLES: [&str; 4] = ["installing", "installed", "failed-component", "failed-host"];

    fn path(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/rollout/documents").join(name)
    }

    fn read<T: DeserializeOwned>(name: &str) -> T {
        serde_saphyr::from_str(&fs::read_to_string(path(name)).unwrap()).unwrap()
    }

    /// Compares a value with a committed file; `TAGBOAT_REGENERATE=1` writes it.
    fn check(name: &str, value: &impl Serialize) {
        let text = format!("{}\n", serde_json::to_string_pretty(value).unwrap());
        if std::env::var_os("TAGBOAT_REGENERATE").is_some() {
            fs::write(path(name), &text).unwrap();
        }
        assert_eq!(fs::read_to_string(path(name)).unwrap_or_default(), text, "{name}");
    }

    fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
        value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    fn object(status: Option<DeploymentStatusStatus>) -> DeploymentStatus {
        let policy_ref = LocalObjectReference { name: "digitron".to_owned() };
        let mut object = DeploymentStatus::new("digitron", DeploymentStatusSpec { policy_ref });
        object.metadata.namespace = Some("apps".to_owned());
        object.metadata.labels = Some(BTreeMap::from([("team".to_owned(), "edge".to_owned())]));
        object.status = status;
        object
    }

    /// Creates the object whose components and error are those of an example.
    fn observe(example: &Value) -> DeploymentStatus {
        let now: Timestamp = text(example, "/metadata/timeStamp").parse().unwrap();
        let components = example["status"]["components"].as_array().unwrap().iter().map(|component| {
            let state: State = serde_json::from_value(component["state"].clone()).unwrap();
            let error = component.get("error").map(|error| StatusError {
                code: text(error, "/code").to_owned(),
                source: String::new(),
                message: text(error, "/message").to_owned(),
            });
            let status = ComponentStatus {
                error,
                ..ComponentStatus::new(text(component, "/name"), state, now.into())
            };
            Component { status, has_wanted_image: state != State::Pending }
        });
        let error = example["status"].get("error").map(|error| {
            assert_eq!(error["code"], "HostUnavailable");
            DeploymentError {
                code: DeploymentErrorCode::HostUnavailable,
                source: "edge-1".to_owned(),
                message: text(error, "/message").to_owned(),
            }
        });
        let observation = Observation {
            deployment_id: text(example, "/metadata/deploymentId").to_owned(),
            target: Some(Target {
                name: "ghcr.io/digitron/app".to_owned(),
                tag: "1.2.0".to_owned(),
                digest: None,
            }),
            commit: None,
            revision: None,
            error,
            components: components.collect(),
        };
        object(Some(report::status(observation, None, now)))
    }

    /// Verifies that a document has every member of an example with the same value.
    ///
    /// Components are in another order: the worst is the first.
    fn assert_has(document: &Value, example: &Value, at: &str) {
        match (document, example) {
            (Value::Object(_), Value::Object(members)) => {
                for (name, member) in members {
                    assert_has(&document[name], member, &format!("{at}/{name}"));
                }
            }
            (Value::Array(items), Value::Array(members)) => {
                assert_eq!(items.len(), members.len(), "{at}");
                for member in members {
                    let item = items.iter().find(|item| item["name"] == member["name"]).expect(at);
                    assert_has(item, member, &format!("{at}/{}", member["name"]));
                }
            }
            _ if at.ends_with("/timeStamp") => {
                let time = |value: &Value| value.as_str().unwrap().parse::<Timestamp>().unwrap();
                assert_eq!(time(document), time(example), "{at}");
            }
            _ => assert_eq!(document, example, "{at}"),
        }
    }

    #[test]
    fn examples_of_the_specification() {
        for name in EXAMPLES {
            let example: Value = read(&format!("{name}.example.yaml"));
            let object = observe(&example);
            let document = Document::new(&object).unwrap();
            assert_has(&serde_json::to_value(&document).unwrap(), &example, name);
            check(&format!("{name}.json"), &document);
            check(&format!("{name}.margo.json"), &MargoManifest::new(&object, Some("edge-1")).unwrap());
            assert_eq!(read::<Document>(&format!("{name}.json")), document);
        }
    }

    #[test]
    fn a_document_has_the_fields_of_the_object() {
        let object = observe(&read("failed-component.example.yaml"));
        let document = serde_json::to_value(Document::new(&object).unwrap()).unwrap();
        let status = serde_json::to_value(object.status.as_ref().unwrap()).unwrap();
        for (name, field) in status.as_object().unwrap() {
            let place =
                if ["deploymentId", "timeStamp"].contains(&name.as_str()) { "metadata" } else { "status" };
            assert_eq!(&document[place][name], field, "{name}");
        }
        let fields = status.as_object().unwrap().len() - 2;
        assert_eq!(document["status"].as_object().unwrap().len(), fields);
    }

    #[test]
    fn an_object_without_a_status_has_no_document() {
        assert_eq!(Document::new(&object(None)), None);
        assert_eq!(MargoManifest::new(&object(None), None), None);
    }

    #[test]
    fn a_manifest_has_errors_with_failed_only_and_without_empty_members() {
        let mut object = observe(&read("failed-component.example.yaml"));
        let report = &mut object.status.as_mut().unwrap().report;
        let empty = || StatusError { code: String::new(), source: String::new(), message: String::new() };
        for component in &mut report.components {
            component.error = Some(empty());
        }
        report.error = Some(empty());
        let manifest = serde_json::to_value(MargoManifest::new(&object, Some("")).unwrap()).unwrap();
        assert_eq!(manifest.get("deviceId"), None);
        assert_eq!(manifest["components"][1].get("error"), None);
        for error in [&manifest["status"]["error"], &manifest["components"][0]["error"]] {
            for member in ["code", "source", "message"] {
                assert!(!error[member].as_str().unwrap().is_empty(), "{member}");
            }
        }
        object.status.as_mut().unwrap().report.state = State::Pending;
        let manifest = MargoManifest::new(&object, None).unwrap();
        assert_eq!(manifest.status.error, None);
    }

    #[test]
    fn a_manifest_has_the_required_members_and_no_others() {
        let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        for name in EXAMPLES {
            let manifest: Value = read(&format!("{name}.margo.json"));
            assert_eq!(
                names(&manifest),
                ["apiVersion", "kind", "deploymentId", "deviceId", "status", "components"],
                "{name}"
            );
        }
        let mut object = observe(&read("installed.example.yaml"));
        object.status.as_mut().unwrap().report.components.clear();
        let manifest = serde_json::to_value(MargoManifest::new(&object, None).unwrap()).unwrap();
        assert_eq!(names(&manifest), ["apiVersion", "kind", "deploymentId", "status", "components"]);
        assert_eq!(manifest["components"], serde_json::json!([]));
    }

    #[test]
    fn a_list_has_the_most_severe_state() {
        let document = |name: &str| Document::new(&observe(&read(&format!("{name}.example.yaml")))).unwrap();
        let list =
            DocumentList::from(vec![document("installed"), document("installing"), document("installed")]);
        assert_eq!(list.state, State::Installing);
        assert_eq!(list.summary, Summary { total: 3, installed: 2, installing: 1, ..Summary::default() });
        let empty = DocumentList::from(Vec::new());
        assert_eq!((empty.state, empty.summary), (State::Pending, Summary::default()));
    }

    #[test]
    fn schemas_name_the_required_members() {
        let required = |schema: Schema| schema.get("required").cloned().unwrap_or_default();
        let document = required(schemars::schema_for!(Document));
        assert_eq!(document, serde_json::json!(["apiVersion", "kind", "metadata", "status"]));
        let margo = required(schemars::schema_for!(MargoManifest));
        assert_eq!(margo, serde_json::json!(["apiVersion", "kind", "deploymentId", "status", "components"]));
        let list = required(schemars::schema_for!(DocumentList));
        assert_eq!(list, serde_json::json!(["state", "summary", "items"]));
    }
}
