//! The kustomizations: what they list is there, and a real API server takes it.

use serde_json::Value;

use super::{folder, read};
use crate::support::api_server::{Cluster, apply, documents};

/// The documents of a kustomization, of those below it too, as far as ours go: no patches, no generators.
fn resources(path: &str) -> Vec<Value> {
    let kustomization = documents(&read(&format!("{path}/kustomization.yaml"))).remove(0);
    let known = ["apiVersion", "kind", "namespace", "resources", "images"];
    let fields = kustomization.as_object().unwrap().keys();
    assert_eq!(
        fields.filter(|field| !known.contains(&field.as_str())).collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
    let mut found = Vec::new();
    for resource in kustomization["resources"].as_array().unwrap() {
        let below = format!("{path}/{}", resource.as_str().unwrap());
        if folder().join(&below).is_dir() {
            found.extend(resources(&below));
        } else {
            found.extend(documents(&read(&below)));
        }
    }
    found
}

fn kinds(documents: &[Value]) -> Vec<&str> {
    documents.iter().map(|document| document["kind"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_default_one_is_taken_by_the_server() {
    let cluster = Cluster::new().await;
    let documents = resources(".");
    assert_eq!(
        kinds(&documents),
        [
            "Namespace",
            "ServiceAccount",
            "ClusterRole",
            "ClusterRoleBinding",
            "Role",
            "RoleBinding",
            "Deployment"
        ]
    );
    for document in &documents {
        let applied = apply(&cluster.client(), document, false).await;
        assert!(applied.is_ok(), "{document}: {applied:?}");
    }
}

#[tokio::test]
async fn the_definitions_are_apart_and_complete() {
    let cluster = Cluster::new().await;
    let documents = resources("crds");
    let mut names: Vec<&str> =
        documents.iter().map(|document| document["metadata"]["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "gitrepositories.source.toolkit.fluxcd.io",
            "imagepolicies.image.toolkit.fluxcd.io",
            "imagerepositories.image.toolkit.fluxcd.io",
            "imageupdateautomations.image.toolkit.fluxcd.io",
        ]
    );
    for document in &documents {
        assert_eq!(document["kind"], "CustomResourceDefinition");
        apply(&cluster.client(), document, true).await.unwrap();
    }
}

#[test]
fn versions_are_those_of_the_program() {
    let version = env!("CARGO_PKG_VERSION");
    let kustomization = documents(&read("kustomization.yaml")).remove(0);
    assert_eq!(kustomization["images"][0]["newTag"], version);
    let chart = documents(&read("chart/tagboat/Chart.yaml")).remove(0);
    assert_eq!((&chart["version"], &chart["appVersion"]), (&version.into(), &version.into()));
}

#[test]
fn the_deployment_is_shaped_as_fluxs_is() {
    let documents = resources(".");
    let deployment = documents.iter().find(|document| document["kind"] == "Deployment").unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(deployment["spec"]["replicas"], 1);
    assert_eq!(container["ports"][0]["containerPort"], 8080);
    assert_eq!(container["ports"][1]["containerPort"], 9440);
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/readyz");
    assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/healthz");
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(container["securityContext"]["runAsNonRoot"], true);
    assert_eq!(container["securityContext"]["capabilities"]["drop"][0], "ALL");
    assert_eq!(container["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/tmp");
    assert!(pod["volumes"][0]["emptyDir"].is_object());
    assert!(container.get("command").is_none(), "the image's entry point starts the controller");
}
