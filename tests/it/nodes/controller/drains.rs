//! Drains: budgets, time limits, cancellations.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::scene::{NodeScene, image};
use crate::support::api_server::apply;
use crate::support::eventually::eventually;

/// A scene whose node `a` has a pod that a budget protects.
async fn blocked(spec: &Value) -> NodeScene {
    blocked_on(NodeScene::new().await, spec).await
}

/// Adds such a node to a scene, and another one.
pub(in crate::nodes) async fn blocked_on(scene: NodeScene, spec: &Value) -> NodeScene {
    protect(&scene).await;
    scene.create_pool("p", spec).await;
    for node in ["a", "b"] {
        scene.stage(node, "2").await;
    }
    scene
}

/// Adds two nodes to a scene.
///
/// The first has a pod that a budget protects, and another pod.
async fn protect(scene: &NodeScene) {
    scene.add_nodes(&["a", "b"]).await;
    scene.create_pod("db", "a", json!({"app": "db"})).await;
    scene.create_pod("free", "a", json!({"app": "free"})).await;
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "quorum"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}},
    });
    apply(&scene.cluster().client(), &budget, false).await.unwrap();
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(scene.cluster().client());
    eventually("the budget is computed", async || {
        budgets.get("quorum").await.unwrap().status.is_some_and(|status| status.current_healthy == 1)
    })
    .await;
}

/// Allows all evictions.
async fn relax(scene: &NodeScene) {
    let relaxed = Patch::Merge(json!({"spec": {"minAvailable": 0}}));
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(scene.cluster().client());
    budgets.patch("quorum", &PatchParams::default(), &relaxed).await.unwrap();
}

async fn exists(scene: &NodeScene, pod: &str) -> bool {
    scene.pods().get_opt(pod).await.unwrap().is_some()
}

#[tokio::test]
async fn a_budget_blocks_one_drain_which_is_named_and_goes_on_once_it_is_relaxed() {
    let scene = blocked(&json!({
        "image": {"ref": image("2")}, "rollout": {"drainTimeout": "1s", "maxUnavailable": 2},
    }))
    .await;
    // The other node is not held back.
    scene.reaches("b", "rebooting").await;
    eventually("the other pod is evicted", async || !exists(&scene, "free").await).await;
    let text = format!(
        "{}: draining takes longer than 1s: pod {}/db: The disruption budget quorum needs 1 healthy pods and has 1 currently",
        scene.full("a"),
        scene.cluster().namespace()
    );
    eventually("the condition names node, pod and budget", async || {
        scene.condition("p", "Degraded", "True NodeDegraded").await == text
    })
    .await;
    assert_eq!(scene.keys("a").await.0["tagboat.dev/state"], "draining");
    assert!(exists(&scene, "db").await);
    // The drain has taken long.
    let past = (jiff::Timestamp::now() - jiff::SignedDuration::from_mins(6)).to_string();
    scene.mark("a", json!({}), json!({"tagboat.dev/state-since": past})).await;
    relax(&scene).await;
    scene.reaches("a", "rebooting").await;
    assert!(!exists(&scene, "db").await);
    assert!(scene.metric("tagboat_evictions_total{outcome=\"blocked\"}").await > 0.0);
}

#[tokio::test]
async fn a_canceled_drain_evicts_no_further_pod() {
    let scene = blocked(&json!({"image": {"ref": image("2")}})).await;
    scene.reaches("a", "draining").await;
    eventually("the other pod is evicted", async || !exists(&scene, "free").await).await;
    scene.mark("a", json!({"tagboat.dev/pause": "true"}), json!({})).await;
    scene.reaches("a", "paused").await;
    assert!(!scene.keys("a").await.1, "it is uncordoned");
    relax(&scene).await;
    // The other node is drained meanwhile.
    scene.reaches("b", "rebooting").await;
    tokio::time::sleep(std::time::Duration::from_secs(6)).await;
    assert!(exists(&scene, "db").await);
}

#[tokio::test]
async fn pods_that_are_skipped_stay_and_a_disabled_drain_evicts_none() {
    let scene = blocked(&json!({
        "image": {"ref": image("2")}, "drain": {"skip": {"matchLabels": {"app": "db"}}},
    }))
    .await;
    scene.reaches("a", "rebooting").await;
    assert!(exists(&scene, "db").await && !exists(&scene, "free").await);
    let scene = blocked(&json!({"image": {"ref": image("2")}, "drain": {"disabled": true}})).await;
    scene.reaches("a", "rebooting").await;
    assert!(exists(&scene, "db").await && exists(&scene, "free").await);
}

#[tokio::test]
async fn a_pod_that_does_not_end_is_named_after_the_time_limit() {
    let scene = NodeScene::new().await;
    scene.add_nodes(&["a"]).await;
    scene.create_pod("held", "a", json!({"app": "held"})).await;
    let finalizers = |names: Value| Patch::Merge(json!({"metadata": {"finalizers": names}}));
    let parameters = PatchParams::default();
    scene.pods().patch("held", &parameters, &finalizers(json!(["example.com/held"]))).await.unwrap();
    let spec = json!({
        "image": {"ref": image("2")}, "rollout": {"drainTimeout": "1s"}, "drain": {"gracePeriod": "1s"},
    });
    scene.create_pool("p", &spec).await;
    scene.stage("a", "2").await;
    let text = format!(
        "{}: draining takes longer than 1s: pod {}/held is being deleted, and has not ended in its time",
        scene.full("a"),
        scene.cluster().namespace()
    );
    eventually("the condition names the pod", async || {
        scene.condition("p", "Degraded", "True NodeDegraded").await == text
    })
    .await;
    assert_eq!(scene.keys("a").await.0["tagboat.dev/state"], "draining");
    scene.pods().patch("held", &parameters, &finalizers(Value::Null)).await.unwrap();
    scene.reaches("a", "rebooting").await;
}

/// The pod was named only after the grace period, which may be hours.
#[tokio::test]
async fn a_pod_within_its_grace_period_is_named_after_the_time_limit_and_announced() {
    let scene = NodeScene::new().await;
    scene.add_nodes(&["a"]).await;
    // No kubelet of a test ends the pods of this namespace.
    let pods: Api<Pod> = Api::namespaced(scene.cluster().client(), "default");
    let (name, node) = (scene.full("slow"), scene.full("a"));
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "nodeName": node, "containers": [{"name": "main", "image": "app:1"}],
            "automountServiceAccountToken": false,
        },
    });
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    let spec = json!({
        "image": {"ref": image("2")}, "rollout": {"drainTimeout": "1s"}, "drain": {"gracePeriod": "59m30s"},
    });
    scene.create_pool("p", &spec).await;
    scene.stage("a", "2").await;
    let begin =
        format!("{node}: draining takes longer than 1s: pod default/{name} is being deleted, until 20");
    eventually("the condition names the pod", async || {
        scene.condition("p", "Degraded", "True NodeDegraded").await.starts_with(&begin)
    })
    .await;
    let past = (jiff::Timestamp::now() - jiff::SignedDuration::from_mins(6)).to_string();
    scene.mark("a", json!({}), json!({"tagboat.dev/state-since": past})).await;
    eventually("the pod is announced", async || {
        let events = scene.events("p").await;
        events
            .iter()
            .any(|event| event.starts_with("DrainBlocked a cannot be drained: pod default/slow is being"))
    })
    .await;
    assert_eq!(scene.keys("a").await.0["tagboat.dev/state"], "draining");
    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    pods.delete(&name, &now).await.unwrap();
    scene.reaches("a", "rebooting").await;
}

#[tokio::test]
async fn a_node_that_moves_to_a_pool_without_a_valid_spec_is_drained_no_further() {
    let scene = NodeScene::new().await;
    protect(&scene).await;
    scene.mark("a", json!({"team": scene.full("x")}), json!({})).await;
    let zone = json!({"windows": [{"start": "00:00", "length": "168h", "timeZone": "Mars/Olympus"}]});
    for (pool, team, rollout) in [("p", "x", json!({})), ("q", "y", zone)] {
        let spec = json!({"image": {"ref": image("2")}, "rollout": rollout});
        scene.create_pool_of(pool, &spec, json!({"matchLabels": {"team": scene.full(team)}})).await;
    }
    scene.condition("q", "Degraded", "True InvalidSpec").await;
    scene.stage("a", "2").await;
    scene.reaches("a", "draining").await;
    eventually("the other pod is evicted", async || !exists(&scene, "free").await).await;
    scene.mark("a", json!({"team": scene.full("y")}), json!({})).await;
    scene.reaches("a", "idle").await;
    let (keys, cordoned) = scene.keys("a").await;
    assert!(!cordoned && keys["tagboat.dev/desired-image"].is_empty(), "{keys:?}");
    relax(&scene).await;
    tokio::time::sleep(std::time::Duration::from_secs(6)).await;
    assert!(exists(&scene, "db").await);
}

#[tokio::test]
async fn a_spec_that_becomes_invalid_stops_the_drain_until_it_is_valid() {
    let zone = |name: &str| json!({"spec": {"rollout": {"windows": [{"start": "00:00", "length": "168h", "timeZone": name}]}}});
    let scene = blocked(&json!({"image": {"ref": image("2")}})).await;
    scene.reaches("a", "draining").await;
    eventually("the other pod is evicted", async || !exists(&scene, "free").await).await;
    scene.patch_pool("p", &zone("Mars/Olympus")).await;
    scene.condition("p", "Degraded", "True InvalidSpec").await;
    relax(&scene).await;
    tokio::time::sleep(std::time::Duration::from_secs(6)).await;
    assert!(exists(&scene, "db").await);
    assert_eq!(scene.keys("a").await.0["tagboat.dev/state"], "draining");
    scene.patch_pool("p", &zone("UTC")).await;
    scene.reaches("a", "rebooting").await;
    assert!(!exists(&scene, "db").await);
}
