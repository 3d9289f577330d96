//! The kustomizations, rendered by kustomize: a real API server accepts the objects.

use std::path::Path;

use serde_json::{Value, json};

use super::rendering::kustomize;
use super::{folder, read};
use crate::support::api_server::{Cluster, apply, documents};

fn resources(path: &str) -> Vec<Value> {
    kustomize(&folder().join(path))
}

fn kinds(documents: &[Value]) -> Vec<&str> {
    documents.iter().map(|document| document["kind"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_default_one_is_taken_by_the_server() {
    let cluster = Cluster::new().await;
    let documents = resources(".");
    let mut found = kinds(&documents);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "ClusterRole",
            "ClusterRoleBinding",
            "Deployment",
            "Namespace",
            "Role",
            "RoleBinding",
            "ServiceAccount"
        ]
    );
    assert_eq!(documents[0]["kind"], "Namespace", "what is in it comes later");
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

/// Returns the path from a directory to a folder.
/// Kustomize accepts no absolute ones.
fn path_from(directory: &Path, folder: &Path) -> String {
    let directory = directory.canonicalize().unwrap();
    "../".repeat(directory.components().count() - 1) + folder.to_str().unwrap().trim_start_matches('/')
}

#[tokio::test]
async fn the_component_for_rollouts_is_added_to_the_default_one() {
    let cluster = Cluster::new().await;
    let directory = tempfile::tempdir().unwrap();
    let overlay = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "namespace": "elsewhere",
        "resources": [path_from(directory.path(), &folder())],
        "components": [path_from(directory.path(), &folder().join("rollout"))],
    });
    std::fs::write(directory.path().join("kustomization.yaml"), overlay.to_string()).unwrap();
    let (documents, before) = (kustomize(directory.path()), resources("."));
    let mut added = kinds(&documents);
    for kind in kinds(&before) {
        let position = added.iter().position(|added| *added == kind).unwrap();
        added.remove(position);
    }
    added.sort_unstable();
    assert_eq!(added, ["ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "NetworkPolicy"]);
    let deployment = documents.iter().find(|document| document["kind"] == "Deployment").unwrap();
    let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
    assert_eq!(arguments.last().unwrap(), "--status-addr=127.0.0.1:9797");
    for document in &documents {
        apply(&cluster.client(), document, true).await.map(drop).or_else(of_missing_namespace).unwrap();
        let namespace = &document["metadata"]["namespace"];
        assert!(namespace.is_null() || namespace == "elsewhere", "{document}");
        for subject in document["subjects"].as_array().into_iter().flatten() {
            assert_eq!(subject["namespace"], "elsewhere");
        }
    }
}

#[tokio::test]
async fn the_component_for_nodes_is_added_to_the_default_one() {
    let cluster = Cluster::new().await;
    let directory = tempfile::tempdir().unwrap();
    let components = ["rollout", "nodes"].map(|name| path_from(directory.path(), &folder().join(name)));
    let overlay = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "namespace": "elsewhere",
        "resources": [path_from(directory.path(), &folder())],
        "components": components,
        "images": [{"name": "tagboat", "newName": "registry.example.com/tagboat", "newTag": "2"}],
    });
    std::fs::write(directory.path().join("kustomization.yaml"), overlay.to_string()).unwrap();
    let documents = kustomize(directory.path());
    let named = |kind: &str, name: &str| {
        let mut found = documents.iter().filter(|it| it["kind"] == kind && it["metadata"]["name"] == name);
        found.next().unwrap_or_else(|| panic!("no {kind} {name}"))
    };
    let agent = &named("DaemonSet", "tagboat-agent")["spec"]["template"]["spec"];
    let controller = &named("Deployment", "tagboat")["spec"]["template"]["spec"];
    for (pod, container) in [(agent, "agent"), (controller, "manager")] {
        assert_eq!(pod["containers"][0]["name"], container);
        assert_eq!(pod["containers"][0]["image"], "registry.example.com/tagboat:2");
    }
    let unschedulable =
        json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}]);
    assert_eq!(controller["tolerations"], unschedulable);
    for (kind, name) in [
        ("ServiceAccount", "tagboat-agent"),
        ("ClusterRole", "tagboat-agent"),
        ("ClusterRole", "tagboat-nodes"),
        ("Role", "tagboat-nodes"),
        ("ValidatingAdmissionPolicy", "tagboat-agent"),
        ("ValidatingAdmissionPolicyBinding", "tagboat-agent"),
        ("CustomResourceDefinition", "nodepools.tagboat.dev"),
    ] {
        named(kind, name);
    }
    let security = "pod-security.kubernetes.io/enforce";
    let namespace = documents.iter().find(|it| it["kind"] == "Namespace").expect("there is a namespace");
    assert_eq!(namespace["metadata"]["labels"][security], "privileged");
    admits_the_agent(&cluster, &namespace["metadata"]["labels"], agent).await;
    for document in &documents {
        apply(&cluster.client(), document, true).await.map(drop).or_else(of_missing_namespace).unwrap();
        let namespace = &document["metadata"]["namespace"];
        assert!(namespace.is_null() || namespace == "elsewhere", "{document}");
        for subject in document["subjects"].as_array().into_iter().flatten() {
            assert_eq!(subject["namespace"], "elsewhere");
        }
    }
}

/// Creates a pod as the DaemonSet does, in a namespace with these labels.
///
/// The namespace enforced the restricted standard, so that no agent could start.
async fn admits_the_agent(cluster: &Cluster, labels: &Value, spec: &Value) {
    let name = cluster.another_namespace().await;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    apply(&cluster.client(), &namespace, false).await.unwrap();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "agent", "namespace": name}, "spec": spec});
    apply(&cluster.client(), &pod, true).await.unwrap();
}

/// The admission policy knows the account of the agent by a part of its name.
#[test]
fn a_prefix_and_a_suffix_of_names_keep_the_policy_and_the_account_of_the_agent_together() {
    let directory = tempfile::tempdir().unwrap();
    let overlay = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "namePrefix": "acme-", "nameSuffix": "-two",
        "resources": [path_from(directory.path(), &folder())],
        "components": [path_from(directory.path(), &folder().join("nodes"))],
    });
    std::fs::write(directory.path().join("kustomization.yaml"), overlay.to_string()).unwrap();
    let documents = kustomize(directory.path());
    let at = |kind: &str, path: &str| -> Vec<&str> {
        let of_kind = documents.iter().filter(|document| document["kind"] == kind);
        of_kind.filter_map(|document| document.pointer(path)?.as_str()).collect()
    };
    let name = ["acme-tagboat-agent-two"];
    assert_eq!(at("DaemonSet", "/spec/template/spec/serviceAccountName"), name);
    assert!(at("ServiceAccount", "/metadata/name").contains(&name[0]));
    assert_eq!(at("ValidatingAdmissionPolicy", "/metadata/name"), name);
    assert_eq!(at("ValidatingAdmissionPolicyBinding", "/spec/policyName"), name);
    let expression = at("ValidatingAdmissionPolicy", "/spec/matchConditions/0/expression").concat();
    assert!(expression.contains(":[^:]*tagboat-agent[^:]*$"), "{expression}");
}

/// Patches of docs/rest.md and docs/rollout.md.
#[test]
fn the_documented_patches_change_the_arguments_of_the_component() {
    let directory = tempfile::tempdir().unwrap();
    let patches = ["../docs/rest.md", "../docs/rollout.md"].map(|page| {
        let page = read(page);
        let block = page.split("```yaml\n").find(|block| block.starts_with("patches:")).unwrap();
        documents(block.split("```").next().unwrap()).remove(0)["patches"].take()
    });
    let patches: Vec<Value> =
        patches.iter().flat_map(|patches| patches.as_array().unwrap().clone()).collect();
    let overlay = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": [path_from(directory.path(), &folder())],
        "components": [path_from(directory.path(), &folder().join("rollout"))],
        "patches": patches,
    });
    std::fs::write(directory.path().join("kustomization.yaml"), overlay.to_string()).unwrap();
    let documents = kustomize(directory.path());
    let deployment = documents.iter().find(|document| document["kind"] == "Deployment").unwrap();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let before = resources(".");
    let before = before.iter().find(|document| document["kind"] == "Deployment").unwrap();
    let mut expected =
        before["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap().clone();
    let added =
        ["--status-addr=:9797", "--status-host=tagboat.tagboat-system", "--clusters=/etc/tagboat/clusters"];
    expected.extend(added.map(Value::from));
    assert_eq!(container["args"].as_array().unwrap(), &expected);
    assert_eq!(container["volumeMounts"][1]["mountPath"], "/etc/tagboat/clusters");
}

/// A dry run creates no namespace for the objects in it.
fn of_missing_namespace(error: kube::Error) -> Result<(), kube::Error> {
    match &error {
        kube::Error::Api(status) if status.code == 404 && status.message.contains("namespaces") => Ok(()),
        _ => Err(error),
    }
}

#[test]
fn versions_match_the_program() {
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
    assert_eq!(deployment["metadata"]["namespace"], "tagboat-system");
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["image"], format!("tagboat:{}", env!("CARGO_PKG_VERSION")));
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
    assert_eq!(pod["volumes"][0]["emptyDir"]["sizeLimit"], "14Gi");
    assert!(container.get("command").is_none(), "the image's entry point starts the controller");
}
