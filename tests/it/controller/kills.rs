//! Tests of the program killed at each step around a push.
//! The next process recovers from the kill.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, ListParams};
use serde_json::json;

use super::pod::Pod;
use super::scene::{Kind, Scene};
use crate::support::api_server::{Fault, Faults};
use crate::support::eventually::eventually;
use crate::support::git_host::{self, Operation};

/// No Lease, so the second process does not wait until that of the first expires.
const ARGUMENTS: [&str; 2] = ["--watch-all-namespaces=false", "--log-level=info"];

const STATUS: &str = "imageupdateautomations/status";

/// The beginning of the message of a push event.
const PUSHED: &str = "pushed commit";

/// Kills a process during a step that lasts, and lets the next one recover.
/// Asserts that the result is the same as without the kill: one commit, reported once.
async fn assert_recovered(step: &str, scene: &Scene, pod: Pod, is_time: impl AsyncFn() -> bool) {
    scene.choose("app", "2.0.0").await;
    eventually(step, is_time).await;
    pod.kill();
    let before = scene.status("app").await;
    scene.host.heal();
    let mut pod = Pod::start(scene, &ARGUMENTS).await;
    scene.lands("app", "2.0.0").await;
    let has_push = |object: &kube::core::DynamicObject| object.data["status"]["lastPushCommit"].is_string();
    scene.until("app", "with the push in its status", has_push).await;
    let status = scene.ready("app").await;
    let commits = scene.commits();
    assert_eq!(commits.len(), 1, "{step}: {commits:?}");
    assert_eq!(status["lastPushCommit"], commits[0].id.as_str(), "{step}");
    assert!(status["lastPushTime"].is_string(), "{step}: {status:#}");
    if before["lastPushTime"].is_string() {
        assert_eq!(status["lastPushTime"], before["lastPushTime"], "{step}: it was reported already");
    }
    assert_eq!(status["observedPolicies"]["app"]["tag"], "2.0.0", "{step}");
    let events: Api<Event> = Api::namespaced(scene.cluster.client(), scene.cluster.namespace());
    let reports = async || {
        let mut reports = events.list(&ListParams::default()).await.unwrap().items;
        reports.retain(|event| event.message.as_ref().is_some_and(|message| message.starts_with(PUSHED)));
        reports
    };
    // An event that the API server was too busy for is sent later.
    eventually(step, async || !reports().await.is_empty()).await;
    assert_eq!(pod.terminate().0, Some(0), "{step}");
    let reports = reports().await;
    let counts: Vec<Option<i32>> = reports.iter().map(|event| event.count).collect();
    assert_eq!(counts, [Some(1)], "{step}: {reports:#?}");
    scene.repository.assert_sound();
}

/// The next process recovers from a kill during a git operation.
///
/// Each row has the operation of git, its fault, and whether the branch has the commit when the process is
/// killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_process_recovers_from_a_kill_during_a_git_operation() {
    let second = Duration::from_secs(1);
    let cases = [
        ("while it lists", Operation::ListForFetch, git_host::Fault::Delay(second), false),
        ("before the push", Operation::ListForPush, git_host::Fault::Delay(second), false),
        ("while it pushes, in vain", Operation::Push, git_host::Fault::Hang, false),
        ("while it pushes", Operation::Push, git_host::Fault::Delay(second), false),
        ("after the push", Operation::Push, git_host::Fault::HangAfterwards, true),
    ];
    join_all(cases.map(|(step, operation, fault, has_landed)| async move {
        let scene = Scene::new(&["app"]).await;
        // A child of a killed process goes on until its timeout, and holds the mirror.
        scene.patch(Kind::Source, "fleet", &json!({"spec": {"timeout": "5s"}})).await;
        let pod = Pod::start(&scene, &ARGUMENTS).await;
        scene.ready("app").await;
        let asked = scene.host.requests_for(operation).len();
        scene.host.once(operation, fault);
        let tip = scene.repository.id("main");
        let is_time = async || {
            let has_come = scene.host.requests_for(operation).len() > asked;
            has_come && (!has_landed || scene.repository.id("main") != tip)
        };
        assert_recovered(step, &scene, pod, is_time).await;
    }))
    .await;
}

/// Each row: the last request to the API server, and whether the server executes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_process_recovers_from_a_kill_between_push_and_report() {
    let cases = [
        ("between the push and the event", "create", "events", Fault::Silence),
        ("with the event made", "create", "events", Fault::LostAnswer),
        ("between the event and the status", "patch", STATUS, Fault::Silence),
        ("with the status written", "patch", STATUS, Fault::LostAnswer),
    ];
    join_all(cases.map(|(step, verb, resource, fault)| async move {
        let scene = Scene::new(&["app"]).await;
        let faults = Faults::default();
        let kubeconfig = scene.cluster.faulty_kubeconfig(&faults).await;
        let pod = Pod::start_by(&scene, &kubeconfig, &ARGUMENTS);
        scene.ready("app").await;
        let (repository, tip) = (scene.repository.clone(), scene.repository.id("main"));
        let is_pushed = move || repository.id("main") != tip;
        let is_reached = Arc::new(AtomicBool::new(false));
        let (has_landed, reached) = (is_pushed.clone(), is_reached.clone());
        faults.next(1, fault, move |call| {
            let is_it = call.is(verb, resource) && has_landed();
            reached.fetch_or(is_it, Ordering::Relaxed);
            is_it
        });
        // Steps after a lost answer are never reached.
        faults.next(usize::MAX, Fault::Silence, move |call| call.is("patch", STATUS) && is_pushed());
        let is_time = async || match (fault, resource) {
            (Fault::LostAnswer, STATUS) => scene.status("app").await["lastPushCommit"].is_string(),
            (Fault::LostAnswer, _) => scene.events("app").await.iter().any(|event| event.contains(PUSHED)),
            _ => is_reached.load(Ordering::Relaxed),
        };
        assert_recovered(step, &scene, pod, is_time).await;
    }))
    .await;
}
