//! Drains: budgets, time limits, cancellations.

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, Patch, PatchParams};
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
    scene.create_pool("p", spec).await;
    for node in ["a", "b"] {
        scene.stage(node, "2").await;
    }
    scene
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
    let relaxed = Patch::Merge(json!({"spec": {"minAvailable": 0}}));
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(scene.cluster().client());
    budgets.patch("quorum", &PatchParams::default(), &relaxed).await.unwrap();
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
    let relaxed = Patch::Merge(json!({"spec": {"minAvailable": 0}}));
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(scene.cluster().client());
    budgets.patch("quorum", &PatchParams::default(), &relaxed).await.unwrap();
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

#[tokio::test]
async fn a_spec_that_becomes_invalid_stops_the_drain_until_it_is_valid() {
    let zone = |name: &str| json!({"spec": {"rollout": {"windows": [{"start": "00:00", "length": "168h", "timeZone": name}]}}});
    let scene = blocked(&json!({"image": {"ref": image("2")}})).await;
    scene.reaches("a", "draining").await;
    eventually("the other pod is evicted", async || !exists(&scene, "free").await).await;
    scene.patch_pool("p", &zone("Mars/Olympus")).await;
    scene.condition("p", "Degraded", "True InvalidSpec").await;
    let relaxed = Patch::Merge(json!({"spec": {"minAvailable": 0}}));
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(scene.cluster().client());
    budgets.patch("quorum", &PatchParams::default(), &relaxed).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(6)).await;
    assert!(exists(&scene, "db").await);
    assert_eq!(scene.keys("a").await.0["tagboat.dev/state"], "draining");
    scene.patch_pool("p", &zone("UTC")).await;
    scene.reaches("a", "rebooting").await;
    assert!(!exists(&scene, "db").await);
}
