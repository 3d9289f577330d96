//! The program, killed after each write: the status is as without the kill.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::scene::{Scene, component, deployment, image};
use crate::support::api_server::{Call, Fault, Faults};
use crate::support::eventually::eventually;
use crate::support::workloads::PodState;

/// The first program sends a write in vain or loses its answer, and is killed.
/// Another one goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_at_any_write_the_status_is_as_without_it() {
    let cases = [
        ("create", "deploymentstatuses", Fault::Silence),
        ("create", "deploymentstatuses", Fault::LostAnswer),
        ("patch", "deploymentstatuses/status", Fault::Silence),
        ("patch", "deploymentstatuses/status", Fault::LostAnswer),
    ];
    join_all(cases.map(|(verb, resource, fault)| async move {
        let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
        let faults = Faults::default();
        let kubeconfig = scene.cluster().faulty_kubeconfig(&faults).await;
        faults.next(usize::MAX, fault, move |call| call.is(verb, resource));
        let program = scene.start_by(&kubeconfig, &[]);
        let calls = faults.clone();
        let is_written = async || calls.calls().iter().any(|call| call.is(verb, resource));
        eventually("the write is sent", is_written).await;
        program.kill();
        let mut program = scene.start().await;
        let status = scene.state("podinfo", "1.0.0", "pending").await;
        assert_eq!(component(&status)["reason"], "NotFound", "{verb} {resource} {fault:?}: {status:#}");
        scene.apply_tree().await;
        let status = scene.state("podinfo", "1.0.0", "installed").await;
        assert_eq!(component(&status)["state"], "installed");
        let deployed = &status["deployHistory"][0]["version"];
        assert_eq!(deployed, "1.0.0", "{verb} {resource} {fault:?}: {status:#}");
        scene.choose("podinfo", "2.0.0").await;
        scene.lands("podinfo", "2.0.0").await;
        scene.apply_tree().await;
        let status = scene.state("podinfo", "2.0.0", "installed").await;
        let versions: Vec<&Value> =
            status["deployHistory"].as_array().unwrap().iter().map(|entry| &entry["version"]).collect();
        assert_eq!(versions, [&json!("2.0.0"), &json!("1.0.0")], "{verb} {resource} {fault:?}: {status:#}");
        assert_eq!(status["deployHistory"][0]["objectCount"], 1);
        // An event follows the status that it is of.
        eventually("two events", async || scene.events("podinfo").await.len() >= 2).await;
        let outcomes: Vec<String> = scene
            .events("podinfo")
            .await
            .iter()
            .map(|event| event.split(' ').take(3).collect::<Vec<_>>().join(" "))
            .collect();
        let expected =
            ["1.0.0", "2.0.0"].map(|tag| format!("Normal RolloutSucceeded {}:{tag}", image("podinfo")));
        assert_eq!(outcomes, expected, "{verb} {resource} {fault:?}");
        assert_eq!(program.terminate().0, Some(0));
    }))
    .await;
}

/// Time from a request until it reaches the server.
/// The program is killed in between if it has written something else just before.
const DELAY: Duration = Duration::from_millis(300);

/// Returns the versions of the branch, the object and its events.
async fn written(scene: &Scene) -> (Option<String>, Option<String>, Vec<String>) {
    let object = scene.object("podinfo").await.and_then(|object| object.resource_version());
    (scene.repository.id("main"), object, scene.events("podinfo").await)
}

/// Runs one program after the other, and kills each of them after its first write.
async fn run_with_kills(scene: &Scene, kills: &AtomicUsize) {
    loop {
        let faults = Faults::default();
        let kubeconfig = scene.cluster().faulty_kubeconfig(&faults).await;
        let is_report = |call: &Call| call.writes() && call.resource.starts_with("deploymentstatuses");
        faults.next(1, Fault::Late(DELAY), is_report);
        faults.next(usize::MAX, Fault::Silence, is_report);
        let before = written(scene).await;
        let program = scene.start_by(&kubeconfig, &[]);
        while written(scene).await == before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        program.kill();
        kills.fetch_add(1, Ordering::Relaxed);
    }
}

/// Two rollouts, of which the second one fails and recovers.
/// Returns the status and the events, without times.
async fn two_rollouts(scene: &Scene) -> (Value, Vec<String>) {
    let wanted = format!("{}:2.0.0", image("podinfo"));
    scene.state("podinfo", "1.0.0", "pending").await;
    scene.apply_tree().await;
    scene.state("podinfo", "1.0.0", "installed").await;
    scene.workloads.kubelet().set_image(&wanted, PodState::waiting("ImagePullBackOff", "no such image"));
    scene.choose("podinfo", "2.0.0").await;
    scene.lands("podinfo", "2.0.0").await;
    scene.until("podinfo", "committed", |status| status["commit"]["id"].is_string()).await;
    scene.apply_tree().await;
    scene.state("podinfo", "2.0.0", "failed").await;
    scene.workloads.kubelet().set_image(&wanted, PodState::Ready);
    let is_complete = |status: &Value| status["state"] == "installed" && status["progress"] == "1/1";
    let status = scene.until("podinfo", "complete", is_complete).await;
    eventually("three events", async || scene.events("podinfo").await.len() >= 3).await;
    let text = |event: &String| {
        // The time since the commit, and the name of a pod, follow.
        let text = event.split(',').next().unwrap().split(": pod ").next().unwrap();
        text.replace(scene.cluster().namespace(), "NAMESPACE")
    };
    let events = scene.events("podinfo").await.iter().map(text).collect();
    assert_eq!(status["commit"]["id"], scene.repository.id("main").unwrap(), "{status:#}");
    assert_eq!(status["deployHistory"][0]["commit"], status["commit"]["id"], "{status:#}");
    assert_eq!(scene.repository.log("main").len(), 2);
    (without_times(&status, scene), events)
}

/// Returns a value without its times and identities.
fn without_times(value: &Value, scene: &Scene) -> Value {
    let text = value.to_string().replace(scene.cluster().namespace(), "NAMESPACE");
    let text = text.replace(&scene.repository.id("main").unwrap(), "COMMIT");
    let text = text.replace(&scene.repository.log("main")[1].id, "FIRST");
    let mut value: Value = serde_json::from_str(&text).unwrap();
    remove_times(&mut value);
    value
}

fn remove_times(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("deploymentId");
            members.retain(|_, member| {
                member.as_str().is_none_or(|text| text.parse::<jiff::Timestamp>().is_err())
            });
            members.values_mut().for_each(remove_times);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_times),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_following_each_write_two_rollouts_are_reported_as_without_kills() {
    let alone = async {
        let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
        let _program = scene.start().await;
        two_rollouts(&scene).await
    };
    let killed = async {
        let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
        let kills = AtomicUsize::new(0);
        let found = tokio::select! {
            found = two_rollouts(&scene) => found,
            () = run_with_kills(&scene, &kills) => unreachable!("it runs until it is dropped"),
        };
        (found, kills.into_inner())
    };
    let (expected, (found, kills)) = tokio::join!(alone, killed);
    assert_eq!(found, expected);
    // The creation, five states, a push, and three events, of which two may be seen as one.
    assert!(kills >= 6, "{kills} kills");
}
