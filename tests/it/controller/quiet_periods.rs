//! Quiet periods: images that appear one after another land in one commit.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::scene::{Kind, Scene, condition, line};
use crate::support::content::file;
use crate::support::eventually::eventually;
use crate::support::git_host::Operation;

/// Sets annotations of the automation `app`.
async fn annotate(scene: &Scene, annotations: &Value) {
    scene.patch(Kind::Automation, "app", &json!({"metadata": {"annotations": annotations}})).await;
}

/// Waits until the automation waits for its quiet period with such a message.
async fn waits(scene: &Scene, is: impl Fn(&str) -> bool) -> String {
    let message = |status: &Value| {
        let found = condition(status, "UpdatesWaiting")?;
        let is_quiet = found["status"] == "True" && found["reason"] == "QuietPeriod";
        found["message"].as_str().filter(|_| is_quiet).map(str::to_owned)
    };
    let status = scene
        .until("app", "it waits for its quiet period", |object| {
            message(&object.data["status"]).is_some_and(|message| is(&message))
        })
        .await;
    let message = message(&status).unwrap();
    assert_eq!(condition(&status, "Ready").unwrap()["message"], message);
    message
}

/// Creates an automation that has written its first images.
async fn written(members: &[&str]) -> Scene {
    let scene = Scene::new(members).await;
    for other in &members[1..] {
        scene.delete(Kind::Automation, other).await;
    }
    scene.patch(Kind::Automation, "app", &json!({"spec": {"policySelector": null}})).await;
    let controller = scene.controller().start();
    let is_whole = |status: &Value| {
        status["observedPolicies"].as_object().is_some_and(|observed| observed.len() == members.len())
    };
    scene.until("app", "it has seen all policies", |object| is_whole(&object.data["status"])).await;
    controller.end().await;
    scene
}

async fn nothing_waits(scene: &Scene) {
    scene
        .until("app", "nothing waits", |object| {
            condition(&object.data["status"], "UpdatesWaiting")
                .is_some_and(|found| found["status"] == "False")
        })
        .await;
}

fn pushes(scene: &Scene) -> usize {
    scene.host.requests_for(Operation::Push).len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn images_that_appear_within_the_period_are_one_commit() {
    let names: Vec<String> =
        (0..25).map(|number| if number == 0 { "app".to_owned() } else { format!("app{number}") }).collect();
    let members: Vec<&str> = names.iter().map(String::as_str).collect();
    let scene = written(&members).await;
    annotate(&scene, &json!({"tagboat.dev/quiet-period": "12s", "tagboat.dev/longest-wait": "10m"})).await;
    let controller = scene.controller().start();
    nothing_waits(&scene).await;
    for (number, member) in members.iter().enumerate() {
        scene.choose(member, "2.0.0").await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        if number == 12 {
            waits(&scene, |message| message.contains(" values of app, app1, ")).await;
        }
    }
    for member in &members {
        scene.lands(member, "2.0.0").await;
    }
    nothing_waits(&scene).await;
    assert_eq!((scene.commits().len(), pushes(&scene)), (1, 1));
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_goes_on_over_restarts_and_ends_by_force() {
    let scene = written(&["app"]).await;
    annotate(&scene, &json!({"tagboat.dev/quiet-period": "1h"})).await;
    let mut controller = scene.controller().start();
    nothing_waits(&scene).await;
    scene.choose("app", "2.0.0").await;
    let first = waits(&scene, |_| true).await;
    let begin = "1 value of app waits: quiet period of 1h of automation ";
    assert!(first.starts_with(begin) && first.contains("/app (tagboat.dev/quiet-period); until "), "{first}");
    for _ in 0..2 {
        controller.kill().await;
        controller = scene.controller().start();
        let token = Timestamp::now().to_string();
        scene.request("app", &token).await;
        let is_handled = |status: &Value| status["lastHandledReconcileAt"] == json!(token);
        scene.until("app", "the request is handled", |object| is_handled(&object.data["status"])).await;
        assert_eq!(waits(&scene, |_| true).await, first);
    }
    // While the controller is down, another image appears: the first change stays, and the last one is now.
    controller.kill().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    scene.choose("app", "3.0.0").await;
    controller = scene.controller().start();
    let second = waits(&scene, |message| *message != first).await;
    let change =
        |message: &str| message.split(" from ").nth(1).unwrap().split(" to ").next().unwrap().to_owned();
    assert_eq!(change(&second), change(&first));
    // A marker that a person adds meanwhile is part of the same commit.
    let namespace = scene.cluster.namespace();
    scene.repository.commit("main", "More", &[file("more.yaml", line(namespace, "app", "1.0.0"))]);
    scene.request("app", "more").await;
    waits(&scene, |message| message.starts_with("2 values of app wait: ")).await;
    assert_eq!(pushes(&scene), 0);
    let events = scene.events("app").await;
    assert_eq!(
        events.iter().filter(|event| event.starts_with("Normal QuietPeriod: ")).count(),
        1,
        "{events:#?}"
    );
    annotate(
        &scene,
        &json!({"reconcile.fluxcd.io/requestedAt": "forced", "reconcile.fluxcd.io/forceAt": "forced"}),
    )
    .await;
    scene.lands("app", "3.0.0").await;
    let more = || String::from_utf8(scene.repository.file("main", "more.yaml")).unwrap();
    assert!(more().contains("app: 3.0.0 "), "{}", more());
    assert_eq!(scene.commits().len(), 1);
    nothing_waits(&scene).await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_steady_stream_makes_a_commit_per_longest_wait() {
    let scene = written(&["app"]).await;
    annotate(&scene, &json!({"tagboat.dev/quiet-period": "5m", "tagboat.dev/longest-wait": "8s"})).await;
    let controller = scene.controller().start();
    nothing_waits(&scene).await;
    let (mut begin, mut commits) = (Instant::now(), 0);
    for number in 1.. {
        scene.choose("app", &format!("2.0.{number}")).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let found = scene.commits().len();
        if found > commits {
            // A commit is seen a moment after it was made.
            assert!(
                found == commits + 1 && begin.elapsed() > Duration::from_secs(7),
                "{:?}",
                begin.elapsed()
            );
            (begin, commits) = (Instant::now(), found);
        }
        if commits == 2 {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(120), "{:#}", scene.status("app").await);
    }
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_image_does_not_wait_and_a_period_goes_on_behind_a_closed_window() {
    let scene = Scene::new(&["app"]).await;
    annotate(&scene, &json!({"tagboat.dev/quiet-period": "1h"})).await;
    scene.choose("app", "2.0.0").await;
    let controller = scene.controller().start();
    scene.lands("app", "2.0.0").await;
    nothing_waits(&scene).await;
    let closed = "[{name: long, kind: deny, from: 2020-01-01T00:00, until: 2200-01-01T00:00}]";
    annotate(&scene, &json!({"tagboat.dev/windows": closed})).await;
    scene.choose("app", "3.0.0").await;
    let message = |status: &Value, reason: &str| {
        let found = condition(status, "UpdatesWaiting").filter(|found| found["reason"] == reason)?;
        found["message"].as_str().map(str::to_owned)
    };
    let status = scene
        .until("app", "the window is closed", |object| {
            message(&object.data["status"], "WindowClosed").is_some()
        })
        .await;
    let in_window = message(&status, "WindowClosed").unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    annotate(&scene, &json!({"tagboat.dev/windows": null})).await;
    let quiet = waits(&scene, |_| true).await;
    let changes = |message: &str| message.split("; changes from ").nth(1).unwrap().to_owned();
    assert_eq!(changes(&in_window), changes(&quiet));
    // A shorter period counts from the same change.
    annotate(&scene, &json!({"tagboat.dev/quiet-period": "1s"})).await;
    scene.lands("app", "3.0.0").await;
    annotate(&scene, &json!({"tagboat.dev/quiet-period": null})).await;
    eventually("there is no condition", async || {
        condition(&scene.status("app").await, "UpdatesWaiting").is_none()
    })
    .await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_period_stalls_until_it_is_corrected() {
    let scene = Scene::new(&["app"]).await;
    scene.choose("app", "2.0.0").await;
    for setting in ["quiet-period", "longest-wait"] {
        annotate(&scene, &json!({format!("tagboat.dev/{setting}"): "soon"})).await;
    }
    let controller = scene.controller().start();
    let status = scene.not_ready("app", "InvalidSettings").await;
    let message = condition(&status, "Stalled").unwrap()["message"].as_str().unwrap();
    for setting in ["quiet-period", "longest-wait"] {
        assert!(
            message.contains(&format!("annotation tagboat.dev/{setting} has the value `soon`: ")),
            "{message}"
        );
    }
    annotate(&scene, &json!({"tagboat.dev/quiet-period": "0s", "tagboat.dev/longest-wait": null})).await;
    scene.lands("app", "2.0.0").await;
    controller.end().await;
}
