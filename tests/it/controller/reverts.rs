//! Values that others took back stay, over kills and restarts and after a migration.

use std::time::Duration;

use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::scene::{IMAGE, Kind, Scene, condition, line};
use crate::support::content::file;

async fn set_mode(scene: &Scene, mode: &str) {
    let patch = json!({"metadata": {"annotations": {"tagboat.dev/on-revert": mode}}});
    scene.patch(Kind::Automation, "app", &patch).await;
}

/// Sets the value of the file, as another author.
fn set(scene: &Scene, tag: &str) -> String {
    let text = line(scene.cluster.namespace(), "app", tag);
    scene.repository.commit("main", "A change by hand", &[file("fleet.yaml", text)])
}

/// Waits until the condition `RevertHeld` has a reason, and returns its message.
async fn is_held(scene: &Scene, reason: &str) -> String {
    let has_reason =
        |status: &Value| condition(status, "RevertHeld").is_some_and(|found| found["reason"] == reason);
    let status = scene.until("app", reason, |object| has_reason(&object.data["status"])).await;
    condition(&status, "RevertHeld").unwrap()["message"].as_str().unwrap().to_owned()
}

/// Asserts that reconciles by request push nothing.
async fn pushes_nothing(scene: &Scene) {
    let tip = scene.repository.id("main");
    for _ in 0..2 {
        let token = Timestamp::now().to_string();
        scene.request("app", &token).await;
        scene
            .until("app", "the request is handled", |object| {
                object.data["status"]["lastHandledReconcileAt"] == token
            })
            .await;
        scene.ready("app").await;
        assert_eq!(scene.repository.id("main"), tip);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revert_holds_over_kills_and_each_change_of_the_held_images_is_one_event() {
    for mode in ["hold", "pause"] {
        let scene = Scene::new(&["app"]).await;
        set_mode(&scene, mode).await;
        let mut controller = scene.controller().start();
        scene.choose("app", "2.0.0").await;
        scene.lands("app", "2.0.0").await;
        scene.ready("app").await;
        set(&scene, "1.0.0");
        scene.request("app", "first").await;
        let message = is_held(&scene, "TakenBack").await;
        assert!(message.contains(&format!("keeps out {IMAGE}:2.0.0 of app, changed between ")), "{message}");
        for _ in 0..2 {
            controller.kill().await;
            controller = scene.controller().start();
            pushes_nothing(&scene).await;
            assert_eq!(is_held(&scene, "TakenBack").await, message);
        }
        let events = scene.events("app").await;
        let of_hold = |event: &&String| event.contains("tagboat.dev/on-revert is");
        assert_eq!(events.iter().filter(of_hold).count(), 1, "{events:#?}");
        if mode == "pause" {
            set(&scene, "2.0.0");
            scene.request("app", "accepted").await;
        } else {
            scene.choose("app", "3.0.0").await;
            scene.lands("app", "3.0.0").await;
        }
        is_held(&scene, "NothingHeld").await;
        set_mode(&scene, "overwrite").await;
        scene
            .until("app", "no hold", |object| condition(&object.data["status"], "RevertHeld").is_none())
            .await;
        controller.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_of_flux_is_the_baseline() {
    let scene = Scene::new(&["app"]).await;
    let pushed = set(&scene, "2.0.0");
    set(&scene, "1.0.0");
    scene.choose("app", "2.0.0").await;
    set_mode(&scene, "hold").await;
    let status = json!({"status": {
        "observedGeneration": 1,
        "observedPolicies": {"app": {"name": IMAGE, "tag": "2.0.0"}},
        "observedSourceRevision": format!("main@sha1:{pushed}"),
        "lastPushCommit": pushed,
    }});
    let api = scene.api(Kind::Automation);
    api.patch_status("app", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    let controller = scene.controller().start();
    is_held(&scene, "TakenBack").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    pushes_nothing(&scene).await;
    assert_eq!(scene.commits().len(), 0);
    controller.end().await;
}
