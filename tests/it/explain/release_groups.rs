//! Tests of `tagboat explain policy` for policies of a release group.

use std::fs;

use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tagboat_api::ImagePolicy;
use tempfile::TempDir;

use super::{outcomes, program, reason};
use crate::support::api_server::{Cluster, apply};
use crate::support::program::run;
use crate::support::registry::Registry;

const MADE: &str = "2020-01-02T03:04:05Z";

/// A registry with `api`, whose tags begin with `v`, and `web` and `job`.
fn registry() -> Registry {
    let registry = Registry::start();
    for (image, tags) in [
        ("api", &["v1.0.0", "v2.0.0", "v3.0.0"][..]),
        ("web", &["1.0.0", "2.0.0", "4.0.0"]),
        ("job", &["1.0.0", "2.0.0", "3.0.0"]),
    ] {
        tags.iter().for_each(|tag| drop(registry.push(image, tag, MADE)));
    }
    registry
}

/// The policies and repositories; `changes` replaces the spec of the policy `web`.
fn objects(registry: &Registry, namespace: &str, changes: &Value) -> Vec<Value> {
    let object = |kind: &str, name: &str, spec: Value| {
        let mut object = json!({
            "apiVersion": "image.toolkit.fluxcd.io/v1", "kind": kind,
            "metadata": {"name": name, "namespace": namespace}, "spec": spec,
        });
        if kind == "ImagePolicy" {
            object["metadata"]["annotations"] = json!({"tagboat.dev/release-group": "shop"});
        }
        object
    };
    let mut all = Vec::new();
    for name in ["api", "web", "job"] {
        let image = format!("{}/{name}", registry.address());
        all.push(object("ImageRepository", name, json!({"image": image, "interval": "1m"})));
        let mut spec = json!({
            "imageRepositoryRef": {"name": name},
            "policy": {"semver": {"range": "*"}},
            "filterTags": {"pattern": "^v?(?P<version>.*)$", "extract": "$version"},
        });
        if name == "web" {
            spec.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        }
        all.push(object("ImagePolicy", name, spec));
    }
    all
}

/// Explains the policy `api` with more in its status.
fn explained(changes: &Value, status: &Value, exit: i32) -> Value {
    let (registry, directory) = (registry(), TempDir::new().unwrap());
    for (index, mut object) in objects(&registry, "shop", changes).into_iter().enumerate() {
        if object["kind"] == "ImagePolicy" && object["metadata"]["name"] == "api" && !status.is_null() {
            let name = format!("{}/api", registry.address());
            object["status"] = json!({"latestRef": {"name": name, "tag": status}});
        }
        fs::write(directory.path().join(format!("{index}.yaml")), object.to_string()).unwrap();
    }
    let arguments = ["explain", "policy", "api", "--policies", ".", "--output", "json"];
    run(program().current_dir(directory.path()).args(arguments)).with_status(exit).json()
}

#[test]
fn a_tag_whose_value_members_lack_is_not_in_the_group() {
    let found = explained(&json!({}), &Value::Null, 0);
    assert_eq!(found["latest"], "v2.0.0");
    let expected = [("v3.0.0", "not-in-group"), ("v2.0.0", "latest"), ("v1.0.0", "candidate")];
    assert_eq!(outcomes(&found), expected);
    for (tag, expected) in [
        ("v3.0.0", r#"shop/web lacks the value "3.0.0""#),
        ("v2.0.0", "the best value that all policies of its release group have"),
        ("v1.0.0", "v2.0.0 is better"),
    ] {
        assert_eq!(reason(&found, tag), expected);
    }
}

#[test]
fn a_group_that_does_not_move_keeps_the_tag_of_the_status_or_has_an_error() {
    let suspended = "the release group shop does not move: ImagePolicy shop/web is suspended";
    let differs = "the release group shop does not move: of the values that all policies have, 2.0.0 is the best one for \
                   shop/api and 1.0.0 for shop/web";
    let descending = json!({"policy": {"alphabetical": {"order": "desc"}}});
    for (changes, message) in [(json!({"suspend": true}), suspended), (descending, differs)] {
        let found = explained(&changes, &json!("v1.0.0"), 0);
        assert_eq!((&found["latest"], &found["error"]), (&json!("v1.0.0"), &Value::Null));
        assert_eq!(reason(&found, "v1.0.0"), "it stays, because the release group does not move");
        let none = explained(&changes, &Value::Null, 1);
        assert_eq!((&none["latest"], &none["error"]), (&Value::Null, &json!(message)));
    }
}

#[test]
fn with_a_list_of_tags_the_group_does_not_count() {
    let (registry, directory) = (registry(), TempDir::new().unwrap());
    let policies = objects(&registry, "shop", &json!({}));
    fs::write(directory.path().join("policy.yaml"), policies[1].to_string()).unwrap();
    fs::write(directory.path().join("tags"), "v3.0.0\n").unwrap();
    let arguments = ["explain", "policy", "api", "--policies", "policy.yaml", "--tags", "tags"];
    let shown = run(program().current_dir(directory.path()).args(arguments)).with_status(0);
    assert!(shown.output.contains("with --tags the release group shop does not count"), "{shown:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_members_of_a_cluster_are_found() {
    let (cluster, registry) = (Cluster::new().await, registry());
    for object in objects(&registry, cluster.namespace(), &json!({})) {
        apply(&cluster.client(), &object, false).await.unwrap();
    }
    let api: Api<ImagePolicy> = Api::namespaced(cluster.client(), cluster.namespace());
    let exclude = Patch::Merge(json!({"metadata": {"annotations": {"tagboat.dev/exclude": "2.0.0"}}}));
    api.patch("job", &PatchParams::default(), &exclude).await.unwrap();
    let kubeconfig = cluster.kubeconfig("admin-token");
    let arguments = ["explain", "policy", "api", "-n", cluster.namespace(), "--output", "json"];
    let found = run(program().args(arguments).arg("--kubeconfig").arg(&kubeconfig)).with_status(0).json();
    let expected = [("v3.0.0", "not-in-group"), ("v2.0.0", "not-in-group"), ("v1.0.0", "latest")];
    assert_eq!(outcomes(&found), expected);
}
