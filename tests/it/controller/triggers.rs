//! Changes that make an automation due, and changes that do not.

use std::time::Duration;

use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::scene::{Kind, Scene, condition};
use crate::support::clock::until_next_second;
use crate::support::content::file;
use crate::support::eventually::eventually;
use crate::support::git_host::Operation;

/// Returns the time of the last reconcile of an automation, in seconds.
/// A reconcile in a later second has another time.
async fn last_run(scene: &Scene, name: &str) -> Value {
    scene.status(name).await["lastAutomationRunTime"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_reads_the_files_again_and_is_handled() {
    let scene = Scene::new(&["app"]).await;
    let controller = scene.controller().start();
    scene.ready("app").await;
    let before = scene.status("app").await;
    scene.request("app", "now").await;
    let after = scene
        .until("app", "answered", |object| object.data["status"]["lastHandledReconcileAt"] == "now")
        .await;
    assert_eq!(after["conditions"], before["conditions"]);
    scene.ready("app").await;
    // It is one event that happened twice: first announced, then only recorded.
    assert_eq!(scene.events("app").await, ["Normal Succeeded: repository up-to-date"]);
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_object_is_reconciled_even_if_nothing_else_is_new() {
    let scene = Scene::new(&["app"]).await;
    let other = super::scene::line(scene.cluster.namespace(), "app", "1.0.0");
    scene.repository.commit("main", "More", &[file("sub/fleet.yaml", other)]);
    scene.patch(Kind::Automation, "app", &json!({"spec": {"update": {"path": "./sub"}}})).await;
    scene.choose("app", "2.0.0").await;
    let controller = scene.controller().start();
    eventually("a commit", async || scene.commits().len() == 1).await;
    scene.ready("app").await;
    // The same policies, the same remote, another path.
    scene.patch(Kind::Automation, "app", &json!({"spec": {"update": {"path": "./"}}})).await;
    scene.lands("app", "2.0.0").await;
    scene.ready("app").await;
    // A setting that is none stalls at once, and is forgiven.
    let setting =
        |value: Value| json!({"metadata": {"annotations": {"tagboat.dev/template-langauge": value}}});
    scene.patch(Kind::Automation, "app", &setting(json!("go"))).await;
    let status = scene.not_ready("app", "InvalidSettings").await;
    let message = condition(&status, "Stalled").unwrap()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("did you mean tagboat.dev/template-language?"), "{message}");
    scene.patch(Kind::Automation, "app", &setting(Value::Null)).await;
    scene.ready("app").await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_enqueues_only_the_automations_that_follow_it() {
    let scene = Scene::new(&["one", "two"]).await;
    let controller = scene.controller().start();
    for name in ["one", "two"] {
        scene.ready(name).await;
    }
    let policies = |object: &DynamicObject| object.data["status"]["observedPolicies"].clone();
    // Times in a status have whole seconds.
    tokio::time::sleep(until_next_second()).await;
    let before = last_run(&scene, "two").await;
    // Its label is taken away, and given back; it goes, and comes back.
    let label = |value: Value| json!({"metadata": {"labels": {"app": value}}});
    scene.patch(Kind::Policy, "one", &label(json!("other"))).await;
    scene.until("one", "without its policy", |object| policies(object).is_null()).await;
    scene.patch(Kind::Policy, "one", &label(json!("one"))).await;
    scene.until("one", "with its policy", |object| policies(object)["one"]["tag"] == "1.0.0").await;
    scene.delete(Kind::Policy, "one").await;
    scene.until("one", "without its policy", |object| policies(object).is_null()).await;
    scene.create_policy("one", "1.5.0").await;
    scene.lands("one", "1.5.0").await;
    assert_eq!(last_run(&scene, "two").await, before, "nothing concerned it");
    // A selection that changes is a changed spec.
    let selector = json!({"spec": {"policySelector": {"matchLabels": {"app": "two"}}}});
    scene.patch(Kind::Automation, "one", &selector).await;
    scene.until("one", "with the other policy", |object| policies(object)["two"]["tag"] == "1.0.0").await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_repository_enqueues_its_automations() {
    let scene = Scene::new(&["app"]).await;
    let controller = scene.controller().start();
    scene.ready("app").await;
    let nowhere = json!({"spec": {"ref": {"branch": "nowhere"}}});
    scene.patch(Kind::Source, "fleet", &nowhere).await;
    scene.patch(Kind::Automation, "app", &json!({"spec": {"git": {"push": {"branch": null}}}})).await;
    let status = scene.not_ready("app", "GitOperationFailed").await;
    let message = condition(&status, "Ready").unwrap()["message"].as_str().unwrap();
    assert!(message.starts_with("failed to checkout source: unable to clone '"), "{message}");
    scene.patch(Kind::Source, "fleet", &json!({"spec": {"ref": {"branch": "main"}}})).await;
    scene.ready("app").await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_automations_share_one_listing_per_interval() {
    let members = ["a", "b", "c", "d"];
    let scene = Scene::new(&members).await;
    for member in members {
        scene.patch(Kind::Automation, member, &json!({"spec": {"interval": "2s"}})).await;
    }
    let controller = scene.controller().start();
    for member in members {
        scene.ready(member).await;
    }
    let count = || scene.host.requests_for(Operation::ListForFetch).len();
    // After the first interval all are reconciled together.
    let first = count();
    eventually("the first interval", async || count() > first).await;
    let before = count();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let listings = count() - before;
    assert!((1..=4).contains(&listings), "{listings} listings in two and a half intervals");
    controller.end().await;
}
