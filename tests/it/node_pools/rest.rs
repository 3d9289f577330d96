//! The routes of node pools.

use kube::ResourceExt;
use kube::runtime::watcher::Event;
use reqwest::Method;
use serde_json::{Value, json};
use tagboat::nodes::NodeObject;
use tagboat::web::store::{Missing, NodeStore, Observed};
use tagboat_api::NodePool;

use super::scene::Scene;
use crate::controller::pod::{Pod, PodSpec};
use crate::rest::answer::Answer;
use crate::rest::server::Server;
use crate::support::eventually::eventually;

const POOLS: &str = "/api/v1/nodepools";

/// The roles of a program that shows pools.
const ROLES: [&str; 4] =
    ["rbac/cluster-role.yaml", "rbac/role.yaml", "nodes/cluster-role.yaml", "nodes/role.yaml"];

/// Applies an event of the watch of a kind.
pub(crate) fn observe<K>(server: &Server, event: Event<K>)
where
    K: ResourceExt + PartialEq,
    NodeStore: Observed<K>,
{
    let store = &server.stores.nodes;
    store.cache().observe(event).iter().for_each(|change| store.record(change));
}

/// Writes a pool, as its watch would.
pub(crate) fn put_pool(server: &Server, name: &str, status: &Value, version: u64) {
    let pool = json!({
        "apiVersion": "tagboat.dev/v1alpha1", "kind": "NodePool",
        "metadata": {"name": name, "uid": name, "resourceVersion": version.to_string(), "generation": 1},
        "spec": {"nodeSelector": {"matchLabels": {"role": name}}, "image": {"ref": "r.example/os:1"}},
        "status": status,
    });
    observe::<NodePool>(server, Event::Apply(serde_json::from_value(pool).unwrap()));
}

/// Writes a node of a pool, as its watch would.
pub(crate) fn put_node(server: &Server, name: &str, keys: (&str, &str, &Value), version: u64) {
    let (pool, stage, annotations) = keys;
    let node = json!({
        "metadata": {
            "name": name, "uid": name, "resourceVersion": version.to_string(), "annotations": annotations,
            "labels": {"role": pool, "tagboat.dev/state": stage, "tagboat.dev/agent": "update-staged"},
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    observe::<NodeObject>(server, Event::Apply(serde_json::from_value(node).unwrap()));
}

pub(crate) fn set_known(server: &Server) {
    Observed::<NodePool>::set_known(&server.stores.nodes);
    Observed::<NodeObject>::set_known(&server.stores.nodes);
}

/// The status of a pool of two nodes, of which one is draining.
pub(crate) fn status(message: &str) -> Value {
    let condition = |type_: &str, status: &str, reason: &str, message: &str| {
        json!({"type": type_, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-11-23T10:00:00Z", "observedGeneration": 1})
    };
    json!({
        "observedGeneration": 1, "targetDigest": "sha256:2", "nextTagResolutionTime": "2026-11-23T10:05:00Z",
        "nodeCount": 2, "updatedCount": 1, "updatingCount": 1, "degradedCount": 1,
        "deployHistory": [{"digest": "sha256:2", "version": "v2", "nodeCount": 1, "lastDeployed": "2026-11-23T10:00:00Z"}],
        "conditions": [
            condition("UpToDate", "False", "RolloutInProgress", "1/2 updated; 1 draining"),
            condition("Degraded", "True", "NodeDegraded", message),
        ],
    })
}

#[tokio::test]
async fn pools_have_their_nodes_and_an_entity_tag() {
    let server = Server::start("").await;
    put_pool(&server, "workers", &status("a: \u{1b}[2J"), 1);
    put_pool(&server, "new", &Value::Null, 2);
    let annotations =
        json!({"tagboat.dev/state-since": "2026-11-23T10:00:00Z", "tagboat.dev/message": "\u{202e}x"});
    put_node(&server, "a", ("workers", "draining", &annotations), 3);
    set_known(&server);
    let answer = server.get(POOLS).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(!answer.body.contains(tagboat::printable::is_unprintable), "{}", answer.body);
    let list = answer.json();
    let names: Vec<&Value> = list["items"].as_array().unwrap().iter().map(|pool| &pool["name"]).collect();
    assert_eq!(names, ["new", "workers"]);
    assert_eq!(
        (&list["items"][0]["observedGeneration"], &list["items"][0]["nodes"]),
        (&json!(0), &json!([]))
    );
    let one = server.get(&format!("{POOLS}/workers")).await;
    let pool = one.json();
    assert_eq!(pool, list["items"][1]);
    assert_eq!(pool["conditions"][1]["reason"], "NodeDegraded");
    let node = json!({
        "name": "a", "stage": "draining", "since": "2026-11-23T10:00:00Z", "agent": "update-staged",
        "message": r"\u{202e}x",
    });
    assert_eq!(pool["nodes"], json!([node]));
    for path in [POOLS.to_owned(), format!("{POOLS}/workers")] {
        let tag = server.get(&path).await.header("etag").to_owned();
        let again = async || server.ask(Method::GET, &path, &[("if-none-match", &tag)]).await.status;
        assert_eq!(again().await, 304);
        let version = if path == POOLS { 4 } else { 5 };
        put_node(
            &server,
            "a",
            ("workers", "before-reboot", &json!({"tagboat.dev/attempted": path})),
            version,
        );
        assert_eq!(again().await, 200);
    }
}

#[tokio::test]
async fn a_pool_that_does_not_exist_and_wrong_requests_are_problems() {
    let server = Server::start("").await;
    set_known(&server);
    assert_eq!(server.get(POOLS).await.json(), json!({"items": []}));
    for (path, status, detail) in [
        ("/api/v1/nodepools/a%1b", 404, "there is no node pool \"a\\u{1b}\""),
        ("/api/v1/nodepools/%ff", 400, "the path is not UTF-8"),
        ("/api/v1/nodepools?state=idle", 400, "there is no parameter \"state\""),
        ("/api/v1/nodepools/a?x=1", 400, "there is no parameter \"x\""),
        ("/api/v1/nodepools/a/b", 404, "there is nothing at /api/v1/nodepools/a/b"),
    ] {
        let answer = server.get(path).await;
        assert_eq!(answer.status, status, "{path}");
        let found = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(found.starts_with(detail), "{found}");
    }
    assert_eq!(server.ask(Method::POST, POOLS, &[]).await.status, 405);
}

#[tokio::test]
async fn pools_that_are_not_known_are_unavailable_and_a_kind_that_is_not_served_does_not_exist() {
    let server = Server::start("").await;
    let paths = [POOLS.to_owned(), format!("{POOLS}/workers")];
    let refused = async |status: u16, detail: &str| {
        for path in &paths {
            let answer = server.get(path).await;
            assert_eq!((answer.status, answer.json()["detail"].as_str().unwrap()), (status, detail));
        }
    };
    refused(503, "the node pools have not been listed yet").await;
    server.stores.nodes.set_missing(Missing::NotServed("NodePool".to_owned()));
    let detail = "the node pools cannot be listed: the CustomResourceDefinition of NodePool is not installed";
    refused(404, detail).await;
    server.stores.nodes.set_missing(Missing::NotPermitted("the role does not permit it".to_owned()));
    refused(503, "the node pools cannot be listed: the role does not permit it").await;
    set_known(&server);
    assert_eq!(server.get(POOLS).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_serves_the_pools_of_its_cluster_as_the_command_shows_them() {
    let scene = Scene::new().await;
    scene.add_pool("p", "p").await;
    scene.add_node("a", "p", Some("draining")).await;
    scene
        .report("p", ("RolloutInProgress", "0/1 updated; 1 draining"), ("Healthy", "no node has a problem"))
        .await;
    let token = scene.cluster.token_with_roles(&ROLES).await;
    let directory = tempfile::tempdir().unwrap();
    let pod = Pod::spawn(PodSpec {
        kubeconfig: &scene.cluster.kubeconfig(&token),
        namespace: scene.cluster.namespace(),
        directory: directory.path(),
        environment: &[],
        // The test writes the keys of nodes.
        arguments: &["controller", "--watch-all-namespaces=false", "--nodes=false", "--rollout=false"],
        serves_status: true,
        cpu: None,
    });
    let path = format!("{POOLS}/{}", scene.full("p"));
    let stage = async || {
        if tokio::net::TcpStream::connect(&pod.status).await.is_err() {
            return Value::Null;
        }
        let answer = Answer::of(Method::GET, &pod.status, &path, &[]).await;
        if answer.status == 200 { answer.json()["nodes"][0]["stage"].clone() } else { Value::Null }
    };
    eventually("the pool is served", async || stage().await == "draining").await;
    let shown = scene.nodes("p", &["-o", "json"]).with_status(0).json();
    assert_eq!(Answer::of(Method::GET, &pod.status, &path, &[]).await.json(), shown["items"][0]);
    scene.mark("a", &json!({"state": "before-reboot"}), &json!({})).await;
    eventually("the next stage is served", async || stage().await == "before-reboot").await;
}
