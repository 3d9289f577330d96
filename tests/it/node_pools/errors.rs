//! Errors of the cluster and of the arguments.

use serde_json::{Value, json};

use super::scene::{Scene, command};
use crate::status::scene::kubeconfig;
use crate::support::api_server::apply;
use crate::support::eventually::eventually;
use crate::support::http_front::{Front, Reply};
use crate::support::program::run;

#[test]
fn a_cluster_that_cannot_be_read_is_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let without_kind = Front::alone(|_| Reply::body(404, "404 page not found\n"));
    for (server, words) in [
        (
            without_kind.url(""),
            "has no kind NodePool of tagboat.dev/v1alpha1: its CustomResourceDefinition is not installed",
        ),
        (
            "http://127.0.0.1:1".to_owned(),
            "error: cannot read NodePools at http://127.0.0.1:1: the request to the API server failed: ",
        ),
    ] {
        let file = kubeconfig(directory.path(), &server);
        for more in [&[][..], &["workers"], &["--watch"], &["workers", "--wait", "1s"]] {
            let ended = run(&mut command(&file, more)).with_status(1);
            assert!(ended.only_error().contains(words) && ended.output.is_empty(), "{ended:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_and_watch_of_two_kinds_are_the_only_permissions_needed() {
    let scene = Scene::new().await;
    scene.add_pool("p", "p").await;
    scene.add_node("a", "p", Some("idle")).await;
    scene.report("p", ("AllUpdated", "1/1 updated"), ("Healthy", "no node has a problem")).await;
    let kubeconfig = scene.cluster.kubeconfig(&scene.cluster.token("reader").await);
    let pool = scene.full("p");
    let grant = async |group: &str, resource: &str| {
        let (name, namespace) = (scene.full(resource), scene.cluster.namespace());
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
            "rules": [{"apiGroups": [group], "resources": [resource], "verbs": ["list", "watch"]}],
        });
        let binding: Value = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
        });
        for object in [role, binding] {
            apply(&scene.cluster.client(), &object, false).await.unwrap();
        }
    };
    let ended = run(&mut command(&kubeconfig, &[&pool])).with_status(1);
    assert!(ended.only_error().contains(": nodepools.tagboat.dev is forbidden: "), "{ended:?}");
    grant("tagboat.dev", "nodepools").await;
    // A role is in force a moment after it is created.
    eventually("nodes are refused", async || {
        let ended = run(&mut command(&kubeconfig, &[&pool])).with_status(1);
        ended.only_error().starts_with("error: cannot read Nodes at http")
            && ended.errors.contains("nodes is forbidden: ")
    })
    .await;
    grant("", "nodes").await;
    eventually("all is read", async || run(&mut command(&kubeconfig, &[&pool])).status == Some(0)).await;
    run(&mut command(&kubeconfig, &[&pool, "--wait", "1s"])).with_status(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_that_does_not_exist_is_an_error() {
    let scene = Scene::new().await;
    let ended = scene.nodes("p", &[]).with_status(1);
    assert_eq!(
        (scene.short(ended.only_error()).as_str(), ended.output.as_str()),
        ("error: there is no NodePool p", "")
    );
    let ended = scene.nodes("p", &["-o", "json"]).with_status(1);
    assert_eq!(ended.json(), json!({"items": []}));
}

#[test]
fn wrong_usage_is_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let file = kubeconfig(directory.path(), "http://127.0.0.1:1");
    for (arguments, words) in [
        (&["Web!"][..], "error: \"Web!\" cannot be the name of an object"),
        (&["--wait", "workers"], "write names before --wait"),
        (&["-o", "wide"], "invalid value 'wide' for '--output <FORMAT>'"),
        (&["a", "b"], "unexpected argument 'b'"),
    ] {
        let ended = run(&mut command(&file, arguments)).with_status(2);
        assert!(ended.errors.contains(words) && ended.output.is_empty(), "{arguments:?} {ended:?}");
    }
}

#[test]
fn an_object_that_cannot_be_read_is_named_and_the_others_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    let pool = |name: &str, paused: Value| {
        json!({
            "apiVersion": "tagboat.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": name},
            "spec": {"nodeSelector": {"matchLabels": {"role": "worker"}}, "paused": paused},
        })
    };
    let pools = json!({
        "apiVersion": "tagboat.dev/v1alpha1", "kind": "NodePoolList", "metadata": {"resourceVersion": "1"},
        "items": [pool("odd", json!("yes")), pool("workers", json!(false))],
    });
    let nodes =
        json!({"apiVersion": "v1", "kind": "NodeList", "metadata": {"resourceVersion": "1"}, "items": []});
    let front = Front::alone(move |request| {
        let list = if request.path.contains("nodepools") { &pools } else { &nodes };
        Reply::body(200, list.to_string()).with("content-type", "application/json")
    });
    let file = kubeconfig(directory.path(), &front.url(""));
    let ended = run(&mut command(&file, &[])).with_status(1);
    assert!(ended.only_error().starts_with("error: the NodePool odd cannot be read: "), "{ended:?}");
    assert_eq!(ended.output.lines().count(), 2, "{ended:?}");
    run(&mut command(&file, &["workers"])).with_status(0);
    let ended = run(&mut command(&file, &["odd", "--wait", "0s"])).with_status(1);
    assert!(ended.only_error().contains("within 0s: the NodePool odd cannot be read: "), "{ended:?}");
}
