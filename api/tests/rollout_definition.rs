//! The CustomResourceDefinition of DeploymentStatus: names, columns, rule, bounds.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use tagboat_api::{OWN_GROUP, OWN_VERSION, crds};

fn schema() -> Value {
    let crd = [crds::rollout()];
    let schema =
        crds::schema(&crd, OWN_GROUP, OWN_VERSION, "DeploymentStatus").expect("the kind has a schema");
    serde_json::to_value(schema).expect("a schema can be written as JSON")
}

#[test]
fn has_its_names() {
    let crd = crds::rollout();
    assert_eq!(crd.metadata.name.as_deref(), Some("deploymentstatuses.tagboat.dev"));
    assert_eq!((crd.spec.group.as_str(), crd.spec.scope.as_str()), ("tagboat.dev", "Namespaced"));
    let names = &crd.spec.names;
    assert_eq!(
        (names.kind.as_str(), names.list_kind.as_deref()),
        ("DeploymentStatus", Some("DeploymentStatusList"))
    );
    assert_eq!(names.short_names, Some(vec!["dst".to_owned()]));
    let [version] = &crd.spec.versions[..] else { panic!("there is one version") };
    assert_eq!((version.name.as_str(), version.served, version.storage), ("v1alpha1", true, true));
    assert!(version.subresources.as_ref().is_some_and(|found| found.status.is_some()));
    let annotations = crd.metadata.annotations.as_ref().expect("every CRD has annotations");
    assert_eq!(annotations["kustomize.toolkit.fluxcd.io/substitute"], "disabled");
}

#[test]
fn prints_state_progress_version_and_since() {
    let crd = crds::rollout();
    let columns = crd.spec.versions[0].additional_printer_columns.iter().flatten();
    let columns: Vec<_> =
        columns.map(|one| (&*one.name, &*one.type_, &*one.json_path, one.priority)).collect();
    assert_eq!(
        columns,
        [
            ("State", "string", ".status.state", None),
            ("Progress", "string", ".status.progress", None),
            ("Version", "string", ".status.target.tag", None),
            ("Since", "date", ".status.since", None),
        ]
    );
}

/// The rule is not evaluated if the spec is removed, so the spec is required.
#[test]
fn the_spec_is_required_and_immutable() {
    let schema = schema();
    assert_eq!(schema["required"], json!(["spec"]));
    let spec = &schema["properties"]["spec"];
    assert_eq!(
        spec["x-kubernetes-validations"],
        json!([{ "message": "spec is immutable", "rule": "self == oldSelf" }])
    );
    assert_eq!(spec["required"], json!(["policyRef"]));
    assert_eq!(spec["properties"]["policyRef"]["required"], json!(["name"]));
}

#[test]
fn the_status_has_the_fields_of_the_report_beside_its_own() {
    let schema = schema();
    let status = &schema["properties"]["status"];
    assert_eq!(status["type"], "object");
    let fields: Vec<&str> =
        status["properties"].as_object().into_iter().flatten().map(|(name, _)| &**name).collect();
    let expected = [
        "commit",
        "components",
        "conditions",
        "deployHistory",
        "deploymentId",
        "error",
        "failedSince",
        "message",
        "omitted",
        "progress",
        "reason",
        "revision",
        "since",
        "state",
        "summary",
        "target",
        "timeStamp",
    ];
    assert_eq!(fields, expected);
    let mut required: Vec<&str> =
        status["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    required.sort_unstable();
    assert_eq!(required, ["deploymentId", "progress", "since", "state", "summary", "timeStamp"]);
    let states = json!(["pending", "installing", "installed", "failed", "removing", "removed"]);
    assert_eq!(status["properties"]["state"]["enum"], states);
    let reasons = json!(["NotChosen", "NotCommitted", "AwaitingMerge", "NotApplied", "NotFound"]);
    assert_eq!(status["properties"]["reason"]["enum"], reasons);
}

#[test]
fn there_is_no_field_of_a_deployed_digest() {
    let text = schema().to_string();
    for name in ["deployedDigest", "updateAvailable"] {
        assert!(!text.contains(name), "{name}");
    }
    let entry = &schema()["properties"]["status"]["properties"]["deployHistory"]["items"]["properties"];
    let names: Vec<&str> = entry.as_object().into_iter().flatten().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["commit", "digest", "lastDeployed", "objectCount", "version"]);
}

/// Texts come from clusters; the image of a policy is parsed before it is reported.
#[test]
fn every_text_and_every_list_has_a_bound() {
    fn check(path: &str, schema: &Value) {
        let is_bounded = match schema["type"].as_str() {
            Some("string") => ["maxLength", "enum", "format"].iter().any(|name| schema.get(name).is_some()),
            Some("array") => schema.get("maxItems").is_some() || path.ends_with("/conditions"),
            Some("object" | "integer") => true,
            other => panic!("{path} has the type {other:?}"),
        };
        assert!(is_bounded || path.contains("/target/"), "{path} has no bound");
        assert_eq!(schema.get("nullable"), None, "{path}");
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            check(&format!("{path}/{name}"), property);
        }
        if let Some(items) = schema.get("items") {
            check(&format!("{path}[]"), items);
        }
    }
    let schema = schema();
    check("spec", &schema["properties"]["spec"]);
    check("status", &schema["properties"]["status"]);
}

#[test]
fn reads_back_from_yaml_as_it_was() {
    let read: CustomResourceDefinition =
        serde_saphyr::from_str(&crds::rollout_file().text).expect("the file is a CRD in YAML");
    assert_eq!(read, crds::rollout());
}
