//! Reports on markers without effect: a condition beside Flux's, and one event per change.

use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::scene::{Kind, Scene, condition, kstatus};
use crate::support::content::{file, removed};

fn markers(status: &Value) -> Value {
    condition(status, "MarkersResolved").cloned().unwrap_or_default()
}

/// Waits until the condition's message has this beginning, and returns the status.
async fn until_message(scene: &Scene, message: &str) -> Value {
    let is = |object: &DynamicObject| {
        let found = &markers(&object.data["status"])["message"];
        kstatus(object) == "Current" && found.as_str().is_some_and(|found| found.starts_with(message))
    };
    scene.until("app", message, is).await
}

/// The events about markers, as `TYPE REASON: MESSAGE`.
async fn events(scene: &Scene) -> Vec<String> {
    let mut events = scene.events("app").await;
    events.retain(|event| event.contains(" Markers"));
    events
}

/// Requests a reconcile and waits for its end.
async fn run_once(scene: &Scene, token: &str) -> Value {
    scene.request("app", token).await;
    let is = |object: &DynamicObject| object.data["status"]["lastHandledReconcileAt"] == token;
    scene.until("app", "asked", is).await
}

const GOOD: &str = "every marker that concerns the automation is resolved";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn defects_of_markers_are_a_condition_and_an_event_per_change() {
    let scene = Scene::new(&["app"]).await;
    let namespace = scene.cluster.namespace();
    let marked = |setter: &str| format!("a: 1 # {{\"$imagepolicy\": \"{setter}\"}}\n");
    let apps = [
        file("apps/a.yaml", marked(&format!("{namespace}:nowhere"))),
        file("apps/b.yaml", format!("{}{}", marked(&format!("{namespace}:app:size")), marked("elsewhere:x"))),
        file("apps/c.yaml", format!("- a: 1\n b: [\n{}", marked(&format!("{namespace}:app")))),
        file("apps/d.yaml", format!("# {{\"$imagepolicy\": \"{namespace}:app\"}}\na: 1\n")),
    ];
    scene.repository.commit("main", "Apps", &apps);
    let controller = scene.controller().start();
    let status = until_message(&scene, "4 problems: ").await;
    let found = markers(&status);
    assert_eq!((&found["status"], &found["reason"]), (&json!("False"), &json!("MarkersUnresolved")));
    assert_eq!(found["observedGeneration"], 1);
    let message = found["message"].as_str().unwrap().to_owned();
    let places = [
        "4 problems: apps/a.yaml:1: ".to_owned(),
        format!("; apps/b.yaml:1: {namespace}:app:size: "),
        "; apps/c.yaml:".to_owned(),
        "; and 1 more (set ".to_owned(),
    ];
    let found_at: Vec<Option<usize>> = places.iter().map(|place| message.find(place)).collect();
    assert!(found_at.is_sorted() && found_at.iter().all(Option::is_some), "{message}");
    // Ready is as in Flux, and comes first.
    assert_eq!(status["conditions"][0]["message"], "repository up-to-date");
    assert_eq!(events(&scene).await, [format!("Normal MarkersUnresolved: {message}")]);

    // Neither another reconcile, nor a skipped one, nor another process reports it again.
    assert_eq!(markers(&run_once(&scene, "1").await), found);
    controller.end().await;
    let mut builder = scene.controller();
    builder.options.run.warns_of_markers = true;
    let controller = builder.start();
    assert_eq!(markers(&run_once(&scene, "2").await), found);
    // A failure before the files are read leaves the condition as it is.
    scene.patch(Kind::Automation, "app", &json!({"spec": {"sourceRef": {"name": "nowhere"}}})).await;
    assert_eq!(markers(&scene.not_ready("app", "SourceManagerFailed").await), found);
    scene.patch(Kind::Automation, "app", &json!({"spec": {"sourceRef": {"name": "fleet"}}})).await;
    scene.ready("app").await;
    assert_eq!(events(&scene).await.len(), 1);

    // The fourth becomes another one: the same count and the same first three.
    let stray = [
        removed("apps/d.yaml"),
        file("apps/e.yaml", format!("# {{\"$imagepolicy\": \"{namespace}:app\"}}\na: 1\n")),
    ];
    scene.repository.commit("main", "Stray", &stray);
    let changed = markers(&run_once(&scene, "3").await)["message"].as_str().unwrap().to_owned();
    assert!(changed.starts_with("4 problems: ") && changed != message, "{changed}");
    assert_eq!(events(&scene).await[1..], [format!("Warning MarkersUnresolved: {changed}")]);

    // The markers are removed.
    let gone = ["a", "b", "c", "e"].map(|name| removed(format!("apps/{name}.yaml")));
    scene.repository.commit("main", "Better", &gone);
    let status = run_once(&scene, "4").await;
    assert_eq!((&markers(&status)["status"], &markers(&status)["message"]), (&json!("True"), &json!(GOOD)));
    assert_eq!(events(&scene).await[2..], [format!("Normal MarkersResolved: {GOOD}")]);
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_without_a_usable_image_is_a_warning() {
    let scene = Scene::new(&["app"]).await;
    let status = json!({"status": {"latestRef": {"name": "Not An Image", "tag": "1"}}});
    let patch = kube::api::Patch::Merge(status);
    scene.api(Kind::Policy).patch_status("app", &Default::default(), &patch).await.unwrap();
    let controller = scene.controller().start();
    let status = until_message(&scene, "2 problems: ImagePolicy ").await;
    let message = markers(&status)["message"].as_str().unwrap().to_owned();
    assert!(message.contains("Not An Image") && message.contains("; fleet.yaml:1: "), "{message}");
    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    until_message(&scene, GOOD).await;
    assert_eq!(events(&scene).await.len(), 2);
    controller.end().await;
}

/// A lasting defect is reported once, and removed with its cause.
///
/// While nothing changes, only the time of the reconcile is written. A marker without a policy is resolved
/// once the policy exists.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lasting_defect_is_reported_once_and_removed_with_its_cause() {
    let scene = Scene::new(&["app"]).await;
    let line = format!("a: 1.0.0 # {{\"$imagepolicy\": \"{}:late:tag\"}}\n", scene.cluster.namespace());
    scene.repository.commit("main", "Late", &[file("late.yaml", line)]);
    let spec = json!({"spec": {"interval": "1s", "policySelector": null}});
    scene.patch(Kind::Automation, "app", &spec).await;
    let controller = scene.controller().start();
    let before = until_message(&scene, "1 problem: late.yaml:1: ").await;
    let time = &before["lastAutomationRunTime"];
    let mut after = scene
        .until("app", "run again", |object| object.data["status"]["lastAutomationRunTime"] != *time)
        .await;
    after["lastAutomationRunTime"] = time.clone();
    assert_eq!(after, before);
    scene.create_policy("late", "1.0.0").await;
    until_message(&scene, GOOD).await;
    controller.end().await;
    let events = events(&scene).await;
    assert!(events.len() == 2 || events.len() == 3, "{events:?}");
    assert!(events.last().unwrap().starts_with("Normal MarkersResolved: "), "{events:?}");
}
