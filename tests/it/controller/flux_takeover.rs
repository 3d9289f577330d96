//! Taking over objects from Flux, and handing them back.

use serde_json::{Value, json};

use super::scene::{IMAGE, Kind, Scene, condition};
use crate::support::eventually::eventually;

/// Returns the status that Flux's controller leaves on a stalled object.
/// It has a policy that is long gone.
fn left_by_flux() -> Value {
    let condition = |type_: &str, status: &str| {
        json!({
            "type": type_, "status": status, "reason": "RemovedTemplateField", "message": "old",
            "lastTransitionTime": "2025-01-01T00:00:00Z", "observedGeneration": 1,
        })
    };
    json!({
        "observedGeneration": 1,
        "lastAutomationRunTime": "2025-01-01T00:00:00Z",
        "lastPushCommit": "1111111111111111111111111111111111111111",
        "lastPushTime": "2025-01-01T00:00:00Z",
        "observedSourceRevision": "main@sha1:1111111111111111111111111111111111111111",
        "observedPolicies": {"gone": {"name": "img/gone", "tag": "1"}, "app": {"name": IMAGE, "tag": "0.9.0", "digest": "sha256:x"}},
        "conditions": [condition("Stalled", "True"), condition("Ready", "False")],
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flux_can_be_replaced_and_can_take_over_again() {
    const FLUX: &str = "image-automation-controller";
    let scene = Scene::new(&["app"]).await;
    scene.patch_status("app", FLUX, &left_by_flux()).await;
    // A condition of a third party stays as it is.
    let theirs = json!({
        "type": "Audited", "status": "True", "reason": "Fine", "message": "",
        "lastTransitionTime": "2025-01-01T00:00:00Z",
    });
    let mut conditions = scene.status("app").await["conditions"].as_array().unwrap().clone();
    conditions.push(theirs.clone());
    scene.patch_status("app", "third-party", &json!({"conditions": conditions})).await;
    let controller = scene.controller().start();
    let status = scene.ready("app").await;
    assert_eq!(status["observedPolicies"], json!({"app": {"name": IMAGE, "tag": "1.0.0"}}));
    assert_eq!(condition(&status, "Stalled"), None);
    assert_eq!(condition(&status, "Audited"), Some(&theirs));
    assert_eq!(status["lastPushCommit"], "1111111111111111111111111111111111111111");
    let object = scene.get("app").await.unwrap();
    let managers: Vec<String> = object
        .metadata
        .managed_fields
        .unwrap_or_default()
        .into_iter()
        .filter(|entry| entry.subresource.as_deref() == Some("status"))
        .filter_map(|entry| entry.manager)
        .collect();
    assert!(managers.iter().any(|manager| manager == FLUX), "{managers:?}");
    assert!(
        !managers.iter().any(|manager| manager.contains("tagboat") || manager == "unknown"),
        "{managers:?}"
    );
    controller.end().await;
    // Flux writes as it does, by merge patches of its own, and has the last word.
    scene
        .patch_status(
            "app",
            FLUX,
            &json!({"observedPolicies": {"app": null, "other": {"name": "img", "tag": "3"}}}),
        )
        .await;
    assert_eq!(scene.status("app").await["observedPolicies"], json!({"other": {"name": "img", "tag": "3"}}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_automation_loses_its_finalizer_and_a_recreated_one_starts_fresh() {
    let scene = Scene::new(&["app", "old"]).await;
    // One is deleted before it gets the finalizer.
    scene.delete(Kind::Automation, "old").await;
    let controller = scene.controller().start();
    scene.ready("app").await;
    scene.delete(Kind::Automation, "app").await;
    eventually("the automation is gone", async || scene.get("app").await.is_none()).await;
    // A new object of the same name is another object.
    scene.create(Kind::Automation, "app", &Scene::spec("app")).await;
    let status = scene.ready("app").await;
    assert_eq!(status["observedGeneration"], 1);
    controller.end().await;
}

/// True if the push journal of a mirror has an entry of an automation.
fn is_noted(scene: &Scene, name: &str) -> bool {
    let mirrors = std::fs::read_dir(scene.mirrors()).unwrap();
    let notes = mirrors
        .map(|mirror| std::fs::read_to_string(mirror.unwrap().path().join("push-journal.json")).unwrap());
    notes.into_iter().any(|notes| notes.contains(&format!("{}/{name} ", scene.cluster.namespace())))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn journal_entries_of_an_automation_are_deleted_with_it() {
    let scene = Scene::new(&["app", "other"]).await;
    let controller = scene.controller().start();
    for member in ["app", "other"] {
        scene.ready(member).await;
        scene.choose(member, "2.0.0").await;
        scene.lands(member, "2.0.0").await;
        scene.ready(member).await;
    }
    assert!(is_noted(&scene, "app") && is_noted(&scene, "other"));
    scene.delete(Kind::Automation, "app").await;
    eventually("the automation is gone", async || scene.get("app").await.is_none()).await;
    // The next transaction on the mirror removes the entry.
    scene.request("other", "now").await;
    eventually("the notes are gone", async || !is_noted(&scene, "app")).await;
    assert!(is_noted(&scene, "other"));
    controller.end().await;
}
