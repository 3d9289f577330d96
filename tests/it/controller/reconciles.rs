//! Reconciles of an automation: commits, statuses, events.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use kube::api::WatchEvent;
use kube::api::WatchParams;
use serde_json::{Value, json};

use super::scene::{IMAGE, Kind, Scene, condition, kstatus};
use crate::support::eventually::eventually;
use crate::support::git_host::{Fault, Operation};

/// A status with some members replaced.
fn merged(mut status: Value, members: &Value) -> Value {
    for (name, value) in members.as_object().unwrap() {
        status[name] = value.clone();
    }
    status
}

/// The conditions of a status, a line each.
fn short(status: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    conditions
        .iter()
        .map(|one| {
            format!(
                "{}={} {} {}",
                text(&one["type"]),
                text(&one["status"]),
                text(&one["reason"]),
                text(&one["message"])
            )
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_image_lands_as_a_commit_and_in_the_status() {
    let scene = Scene::new(&["app"]).await;
    let annotations =
        json!({"metadata": {"annotations": {"event.toolkit.fluxcd.io/team": "x", "other": "y"}}});
    scene.patch(Kind::Automation, "app", &annotations).await;
    let controller = scene.controller().start();
    let status = scene.ready("app").await;
    let main = scene.repository.id("main").unwrap();
    let resolved =
        "MarkersResolved=True MarkersResolved every marker that concerns the automation is resolved";
    assert_eq!(short(&status), ["Ready=True Succeeded repository up-to-date", resolved]);
    assert_eq!(status["observedGeneration"], 1);
    assert_eq!(status["observedSourceRevision"], format!("main@sha1:{main}"));
    assert_eq!(status["observedPolicies"], json!({"app": {"name": IMAGE, "tag": "1.0.0"}}));
    assert_eq!(status["lastPushCommit"], Value::Null);
    assert_eq!(scene.get("app").await.unwrap().metadata.finalizers.unwrap(), ["finalizers.fluxcd.io"]);

    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    let commits = scene.commits();
    assert_eq!(commits.len(), 1);
    let commit = commits[0].id.clone();
    let status = scene
        .until("app", "with the push in its status", |object| {
            object.data["status"]["lastPushCommit"] == commit
        })
        .await;
    assert_eq!(status["observedSourceRevision"], format!("main@sha1:{commit}"));
    assert_eq!(status["observedPolicies"]["app"]["tag"], "2.0.0");
    assert!(status["lastPushTime"].is_string(), "{status:#}");
    assert_eq!(
        scene.events("app").await,
        [
            "Normal Succeeded: repository up-to-date".to_owned(),
            format!(
                "Normal Succeeded: pushed commit '{}' to branch 'main'\nUpdate from image update automation",
                &commit[..7]
            ),
        ]
    );
    controller.end().await;
    scene.repository.assert_sound();
}

/// The state that tools compute of the object must be true at every moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_that_wait_for_the_object_are_never_misled() {
    let scene = Scene::new(&["app"]).await;
    let seen: Arc<Mutex<Vec<(i64, &'static str)>>> = Arc::default();
    let api = scene.api(Kind::Automation);
    let watch = tokio::spawn({
        let seen = seen.clone();
        async move {
            let mut events = api.watch(&WatchParams::default(), "0").await.unwrap().boxed();
            while let Some(event) = events.next().await {
                if let Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) = event {
                    seen.lock().unwrap().push((object.metadata.generation.unwrap(), kstatus(&object)));
                }
            }
        }
    });
    let controller = scene.controller().start();
    scene.ready("app").await;
    // It fails, is corrected, stalls, and is corrected again.
    let patches = [
        (json!({"sourceRef": {"name": "nowhere"}}), "SourceManagerFailed"),
        (json!({"sourceRef": {"name": "fleet"}}), ""),
        (json!({"git": null}), "InvalidSourceConfiguration"),
        (Scene::spec("app"), ""),
    ];
    for (spec, reason) in patches {
        scene.patch(Kind::Automation, "app", &json!({"spec": spec})).await;
        if reason.is_empty() {
            scene.ready("app").await;
        } else {
            scene.not_ready("app", reason).await;
        }
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    watch.abort();
    controller.end().await;
    let mut steps = seen.lock().unwrap().clone();
    steps.dedup();
    let expected = [
        (1, "InProgress"),
        (1, "Current"),
        (2, "InProgress"),
        (3, "InProgress"),
        (3, "Current"),
        (4, "InProgress"),
        (4, "Failed"),
        (5, "InProgress"),
        (5, "Current"),
    ];
    assert_eq!(steps, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_or_stalled_automation_has_the_message_of_flux() {
    let scene = Scene::new(&["app"]).await;
    scene.delete(Kind::Source, "fleet").await;
    let controller = scene.controller().start();
    let status = scene.not_ready("app", "SourceManagerFailed").await;
    let words = "failed configuring source manager: referenced git repository does not exist: \
                 GitRepository.source.toolkit.fluxcd.io \"fleet\" not found";
    assert_eq!(
        short(&status),
        [
            "Reconciling=True ProgressingWithRetry processing object: new generation -1 -> 1".to_owned(),
            format!("Ready=False SourceManagerFailed {words}"),
        ]
    );
    assert_eq!(status["observedGeneration"], -1);
    // It recovers when the repository is created.
    let source = json!({"url": scene.host.url("fleet.git"), "interval": "1m", "ref": {"branch": "main"}});
    scene.create(Kind::Source, "fleet", &source).await;
    scene.ready("app").await;
    scene.patch(Kind::Automation, "app", &json!({"spec": {"git": null}})).await;
    let status = scene.not_ready("app", "InvalidSourceConfiguration").await;
    let words = "source kind 'GitRepository' necessitates field .spec.git: invalid source configuration";
    assert_eq!(
        short(&status),
        [
            format!("Stalled=True InvalidSourceConfiguration {words}"),
            format!("Ready=False InvalidSourceConfiguration {words}"),
            // The finding of the last reconcile of the files still holds.
            "MarkersResolved=True MarkersResolved every marker that concerns the automation is resolved"
                .to_owned(),
        ]
    );
    assert_eq!(status["observedGeneration"], 2);
    let events = scene.events("app").await;
    assert!(events[0].starts_with("Warning SourceManagerFailed: failed configuring"), "{events:?}");
    assert_eq!(events.last().unwrap(), &format!("Warning InvalidSourceConfiguration: {words}"));
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_of_another_namespace_is_refused_by_option() {
    let scene = Scene::new(&["app"]).await;
    let elsewhere = scene.cluster.another_namespace().await;
    let source = json!({"spec": {"sourceRef": {"namespace": elsewhere, "name": "theirs"}}});
    scene.patch(Kind::Automation, "app", &source).await;
    let mut builder = scene.controller();
    builder.options.run.cross_namespace = tagboat::reconcile::cross_namespace::CrossNamespace::Forbidden;
    let controller = builder.start();
    let status = scene.not_ready("app", "AccessDenied").await;
    let words = format!(
        "can't access 'GitRepository/{elsewhere}/theirs', cross-namespace references have been blocked"
    );
    assert_eq!(condition(&status, "Stalled").unwrap()["message"], words);
    controller.end().await;
    assert!(scene.host.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_automation_is_not_reconciled_and_its_status_stays() {
    let scene = Scene::new(&["app"]).await;
    scene.patch(Kind::Automation, "app", &json!({"spec": {"suspend": true}})).await;
    let controller = scene.controller().start();
    scene.until("app", "given a finalizer", |object| object.metadata.finalizers.is_some()).await;
    scene.choose("app", "2.0.0").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(scene.status("app").await, json!({"observedGeneration": -1}));
    assert!(scene.commits().is_empty() && scene.events("app").await.is_empty());
    scene.patch(Kind::Automation, "app", &json!({"spec": {"suspend": false}})).await;
    scene.lands("app", "2.0.0").await;
    let before = scene.ready("app").await;
    scene.patch(Kind::Automation, "app", &json!({"spec": {"suspend": true}})).await;
    let after =
        scene.until("app", "observed", |object| object.data["status"]["observedGeneration"] == 4).await;
    let observed = json!({"observedGeneration": 4});
    assert_eq!(merged(before, &observed), after);
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn automations_of_one_branch_share_a_push() {
    let members = ["a", "b", "c", "d", "e", "f"];
    let scene = Scene::new(&members).await;
    let controller = scene.controller().start();
    for member in members {
        scene.ready(member).await;
    }
    for member in members {
        scene.choose(member, "2.0.0").await;
    }
    for member in members {
        scene.lands(member, "2.0.0").await;
    }
    for member in members {
        let status =
            scene.until(member, "pushed", |object| object.data["status"]["lastPushCommit"].is_string()).await;
        let commit = scene
            .commits()
            .into_iter()
            .find(|commit| commit.id == status["lastPushCommit"].as_str().unwrap());
        assert_eq!(commit.expect("the commit is there").author, format!("{member} <bot@example.com>"));
    }
    assert_eq!(scene.commits().len(), members.len());
    let pushes = scene.host.requests_for(Operation::Push).len();
    assert!(pushes < members.len(), "{pushes} pushes");
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spec_that_changes_during_a_run_is_neither_overwritten_nor_taken_for_observed() {
    let scene = Scene::new(&["app"]).await;
    let controller = scene.controller().start();
    scene.ready("app").await;
    scene.host.always(Operation::Push, Fault::Delay(Duration::from_secs(1)));
    scene.choose("app", "2.0.0").await;
    eventually("a push is in flight", async || !scene.host.requests_for(Operation::Push).is_empty()).await;
    let theirs = json!({"spec": {"interval": "7m", "git": {"commit": {"messageTemplate": "Theirs"}}}});
    scene.patch(Kind::Automation, "app", &theirs).await;
    scene.lands("app", "2.0.0").await;
    let commit = scene.commits()[0].id.clone();
    scene
        .until("app", "with the push in its status", |object| {
            object.data["status"]["lastPushCommit"] == commit
        })
        .await;
    let status = scene.ready("app").await;
    assert_eq!((&status["observedGeneration"], &status["lastPushCommit"]), (&json!(2), &json!(commit)));
    let spec = scene.get("app").await.unwrap().data["spec"].clone();
    assert_eq!(
        (&spec["interval"], &spec["git"]["commit"]["messageTemplate"]),
        (&json!("7m"), &json!("Theirs"))
    );
    controller.end().await;
}
