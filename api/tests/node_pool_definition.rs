//! The CustomResourceDefinition of NodePool: names, columns, fields, bounds.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use tagboat_api::node_pool::{DegradedReason, FINALIZER, NodePoolSpec, OWN_PREFIX, UpToDateReason};
use tagboat_api::{NodePool, OWN_GROUP, OWN_VERSION, crds};

fn schema() -> Value {
    let crd = [crds::nodes()];
    let schema = crds::schema(&crd, OWN_GROUP, OWN_VERSION, "NodePool").expect("the kind has a schema");
    serde_json::to_value(schema).expect("a schema can be written as JSON")
}

/// Returns the names of the fields at a path of properties.
fn fields(path: &[&str]) -> Vec<String> {
    let schema = schema();
    let found = path.iter().fold(&schema, |schema, name| {
        let field = &schema["properties"][name];
        if field["type"] == "array" { &field["items"] } else { field }
    });
    found["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

#[test]
fn has_its_names() {
    let crd = crds::nodes();
    assert_eq!(crd.metadata.name.as_deref(), Some("nodepools.tagboat.dev"));
    assert_eq!((crd.spec.group.as_str(), crd.spec.scope.as_str()), ("tagboat.dev", "Cluster"));
    let names = &crd.spec.names;
    assert_eq!((names.kind.as_str(), names.list_kind.as_deref()), ("NodePool", Some("NodePoolList")));
    assert_eq!(names.short_names, Some(vec!["tnp".to_owned()]));
    let [version] = &crd.spec.versions[..] else { panic!("there is one version") };
    assert_eq!((version.name.as_str(), version.served, version.storage), ("v1alpha1", true, true));
    assert!(version.subresources.as_ref().is_some_and(|found| found.status.is_some()));
    assert_eq!((FINALIZER, OWN_PREFIX), ("tagboat.dev/nodes", "tagboat.dev/"));
}

#[test]
fn prints_counts_version_and_message() {
    let crd = crds::nodes();
    let columns = crd.spec.versions[0].additional_printer_columns.iter().flatten();
    let columns: Vec<_> = columns.map(|one| (&*one.name, &*one.type_, &*one.json_path)).collect();
    assert_eq!(
        columns,
        [
            ("Nodes", "integer", ".status.nodeCount"),
            ("Updated", "integer", ".status.updatedCount"),
            ("Updating", "integer", ".status.updatingCount"),
            ("Degraded", "integer", ".status.degradedCount"),
            ("Version", "string", ".status.deployHistory[0].version"),
            ("Message", "string", r#".status.conditions[?(@.type=="UpToDate")].message"#),
        ]
    );
}

#[test]
fn has_the_documented_fields() {
    let cases: [(&[&str], &[&str]); 9] = [
        (&["spec"], &["drain", "hooks", "image", "nodeSelector", "paused", "rollout"]),
        (&["spec", "image"], &["pullSecretRef", "ref"]),
        (&["spec", "image", "pullSecretRef"], &["name", "namespace"]),
        (
            &["spec", "rollout"],
            &["drainTimeout", "maxUnavailable", "postCompleteDelay", "rebootTimeout", "windows"],
        ),
        (&["spec", "rollout", "windows"], &["days", "length", "start", "timeZone"]),
        (&["spec", "hooks"], &["beforeDrain", "beforeReboot", "beforeUncordon", "timeout"]),
        (&["spec", "drain"], &["disabled", "gracePeriod", "skip"]),
        (
            &["status"],
            &[
                "conditions",
                "degradedCount",
                "deployHistory",
                "nextTagResolutionTime",
                "nodeCount",
                "observedGeneration",
                "targetDigest",
                "updatedCount",
                "updatingCount",
            ],
        ),
        (&["status", "deployHistory"], &["digest", "lastDeployed", "nodeCount", "version"]),
    ];
    for (path, expected) in cases {
        assert_eq!(fields(path), expected, "{path:?}");
    }
    let schema = schema();
    assert_eq!(schema["required"], json!(["spec"]));
    assert_eq!(schema["properties"]["spec"]["required"], json!(["nodeSelector"]));
    let text = schema.to_string();
    for name in ["deployedDigest", "updateAvailable"] {
        assert!(!text.contains(name), "{name}");
    }
}

/// Otherwise the API server could not limit the cost of the rules.
#[test]
fn every_text_and_every_list_has_a_bound() {
    fn check(path: &str, schema: &Value) {
        let has = |name: &str| schema.get(name).is_some();
        let is_bounded = match schema["type"].as_str() {
            Some("string") => ["maxLength", "enum", "format"].into_iter().any(has),
            Some("array") => has("maxItems") || path.ends_with("/conditions"),
            Some("object") => has("properties") || has("maxProperties"),
            Some("integer") => has("minimum") || path.contains("/conditions"),
            Some("boolean") => true,
            None => has("x-kubernetes-int-or-string") && has("maxLength"),
            other => panic!("{path} has the type {other:?}"),
        };
        assert!(is_bounded, "{path} has no bound");
        assert_eq!(schema.get("nullable"), None, "{path}");
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            check(&format!("{path}/{name}"), property);
        }
        for inner in ["items", "additionalProperties"] {
            if let Some(inner) = schema.get(inner) {
                check(&format!("{path}[]"), inner);
            }
        }
    }
    let schema = schema();
    check("spec", &schema["properties"]["spec"]);
    check("status", &schema["properties"]["status"]);
}

#[test]
fn reads_back_from_yaml_as_it_was() {
    let read: CustomResourceDefinition =
        serde_saphyr::from_str(&crds::nodes_file().text).expect("the file is a CRD in YAML");
    assert_eq!(read, crds::nodes());
}

#[test]
fn an_explicit_null_is_an_absent_field() {
    let manifest = json!({
        "apiVersion": "tagboat.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "workers"},
        "spec": {
            "nodeSelector": {"matchLabels": {"a": "b"}}, "paused": null, "image": null,
            "rollout": {"windows": null}, "hooks": {"beforeDrain": null}, "drain": {"disabled": null},
        },
    });
    let pool: NodePool = serde_json::from_value(manifest).expect("each of these fields is optional");
    let NodePoolSpec { paused, image, rollout, hooks, .. } = pool.spec;
    assert_eq!((paused, image), (false, None));
    assert!(rollout.is_some_and(|rollout| rollout.windows.is_empty()));
    assert!(hooks.is_some_and(|hooks| hooks.before_drain.is_empty()));
}

#[test]
fn reasons_are_written_as_their_names_and_in_order_of_precedence() {
    use DegradedReason::{
        Healthy, InvalidSpec, NodeConflict, NodeDegraded, RolloutHalted, TagResolutionError,
    };
    let rising = [Healthy, NodeDegraded, NodeConflict, RolloutHalted, InvalidSpec, TagResolutionError];
    assert!(rising.is_sorted());
    assert_eq!(RolloutHalted.to_string(), "RolloutHalted");
    assert_eq!(UpToDateReason::OutsideWindow.to_string(), "OutsideWindow");
}
