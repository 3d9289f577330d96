//! Faults of the API server: refusals, lost answers, silence, watches that end.

use std::time::Duration;

use futures::future::join_all;

use super::scene::{Kind, Scene};
use crate::support::api_server::{Ending, Fault, Faults};
use crate::support::eventually::eventually;

/// Asserts that the one push is in the status, and was announced once.
async fn assert_reported_once(scene: &Scene) {
    let commits = scene.commits();
    assert_eq!(commits.len(), 1, "{commits:?}");
    let commit = commits[0].id.clone();
    scene
        .until("app", "with the push in its status", |object| {
            object.data["status"]["lastPushCommit"] == commit
        })
        .await;
    scene.ready("app").await;
    let events = scene.events("app").await;
    let pushes = events.iter().filter(|event| event.starts_with("Normal Succeeded: pushed commit")).count();
    assert_eq!(pushes, 1, "{events:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_that_cannot_be_written_is_written_later_and_nothing_is_pushed_twice() {
    for (times, fault) in [
        (2, Fault::Conflict),
        (3, Fault::Broken),
        // More failures than one request is retried.
        (7, Fault::Broken),
        (8, Fault::Conflict),
        (2, Fault::Unreachable),
        (1, Fault::LostAnswer),
    ] {
        let scene = Scene::new(&["app"]).await;
        let faults = Faults::default();
        let controller = scene.controller().through(scene.cluster.faulty_client(&faults)).start();
        scene.ready("app").await;
        faults.next(times, fault, |call| call.is("patch", "imageupdateautomations/status"));
        scene.choose("app", "2.0.0").await;
        scene.lands("app", "2.0.0").await;
        assert_reported_once(&scene).await;
        controller.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_cannot_be_recorded_is_recorded_later_once() {
    for (times, fault) in [(2, Fault::Broken), (1, Fault::Unreachable), (1, Fault::LostAnswer)] {
        let scene = Scene::new(&["app"]).await;
        let faults = Faults::default();
        let controller = scene.controller().through(scene.cluster.faulty_client(&faults)).start();
        scene.ready("app").await;
        faults.next(times, fault, |call| call.is("create", "events"));
        scene.choose("app", "2.0.0").await;
        scene.lands("app", "2.0.0").await;
        scene.ready("app").await;
        eventually("the event", async || {
            let events = scene.events("app").await;
            events.iter().any(|event| event.starts_with("Normal Succeeded: pushed commit"))
        })
        .await;
        assert_reported_once(&scene).await;
        controller.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_that_ends_loses_nothing() {
    let scene = Scene::new(&["app"]).await;
    let faults = Faults::default();
    let controller = scene.controller().through(scene.cluster.faulty_client(&faults)).start();
    scene.ready("app").await;
    // While no watch is open, an image is chosen, and an automation is created and deleted.
    faults.next(1, Fault::Late(Duration::from_secs(1)), |call| call.is("watch", "imagepolicies"));
    assert_eq!(faults.end_watches(Ending::Reset, |call| call.verb == "watch"), 3);
    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    assert_reported_once(&scene).await;
    faults.next(1, Fault::Gone, |call| call.is("watch", "imagepolicies"));
    assert!(faults.end_watches(Ending::Clean, |call| call.is("watch", "imagepolicies")) > 0);
    scene.choose("app", "3.0.0").await;
    scene.lands("app", "3.0.0").await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_steady_state_writes_only_the_time_of_the_run() {
    let scene = Scene::new(&["app"]).await;
    scene.patch(Kind::Automation, "app", &serde_json::json!({"spec": {"interval": "1s"}})).await;
    let faults = Faults::default();
    let controller = scene.controller().through(scene.cluster.faulty_client(&faults)).start();
    let before = scene.ready("app").await;
    faults.forget_calls();
    eventually("some intervals", async || faults.calls().iter().filter(|call| call.writes()).count() > 6)
        .await;
    let writes: std::collections::BTreeSet<String> = faults
        .calls()
        .iter()
        .filter(|call| call.writes())
        .map(|call| format!("{} {}", call.verb, call.resource))
        .collect();
    assert_eq!(
        writes.into_iter().collect::<Vec<_>>(),
        ["create events", "patch events", "patch imageupdateautomations/status"]
    );
    let mut after = scene.status("app").await;
    after["lastAutomationRunTime"] = before["lastAutomationRunTime"].clone();
    assert_eq!(after, before);
    controller.end().await;
}

/// Kills the controller between the push and each step of reporting it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_push_of_a_killed_controller_is_reported_once_by_the_next() {
    let cases = [
        ("create", "events", Fault::Silence),
        ("create", "events", Fault::LostAnswer),
        ("patch", "imageupdateautomations/status", Fault::Silence),
    ];
    join_all(cases.map(|(verb, resource, fault)| async move {
        let scene = Scene::new(&["app"]).await;
        let faults = Faults::default();
        let controller = scene.controller().through(scene.cluster.faulty_client(&faults)).start();
        scene.ready("app").await;
        faults.forget_calls();
        faults.next(usize::MAX, fault, move |call| call.is(verb, resource));
        // Steps after a lost answer are never reached.
        faults.next(usize::MAX, Fault::Silence, |call| call.is("patch", "imageupdateautomations/status"));
        scene.choose("app", "2.0.0").await;
        scene.lands("app", "2.0.0").await;
        let is_there = || faults.calls().iter().any(|call| call.is(verb, resource));
        eventually("the moment", async || is_there()).await;
        if matches!(fault, Fault::LostAnswer) {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        controller.kill().await;
        assert_eq!(scene.status("app").await["lastPushCommit"], serde_json::Value::Null);
        let controller = scene.controller().start();
        assert_reported_once(&scene).await;
        controller.end().await;
    }))
    .await;
}
