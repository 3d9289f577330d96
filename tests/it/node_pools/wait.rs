//! `--wait`: until pools are up to date.

use std::process::Command;

use serde_json::json;

use super::scene::{Scene, command};
use crate::status::scene::Running;
use crate::support::api_server::{Fault, Faults};
use crate::support::eventually::eventually;
use crate::support::program::run;

const DONE: (&str, &str) = ("AllUpdated", "2/2 updated");
const PROGRESS: (&str, &str) = ("RolloutInProgress", "1/2 updated; 1 draining");
const HEALTHY: (&str, &str) = ("Healthy", "no node has a problem");

/// Starts a command on a pool, and waits until it watches both kinds.
async fn waiting(scene: &Scene, pool: &str) -> Running {
    let faults = Faults::default();
    let kubeconfig = scene.cluster.faulty_kubeconfig(&faults).await;
    let command: Command = command(&kubeconfig, &[&scene.full(pool), "--wait", "2m"]);
    let running = Running::start(command);
    let is_watched = || {
        let calls = faults.calls();
        ["nodepools", "nodes"].iter().all(|kind| calls.iter().any(|call| call.is("watch", kind)))
    };
    eventually("both watches begin", async || is_watched()).await;
    running
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_ends_when_the_pool_is_up_to_date() {
    let scene = Scene::new().await;
    scene.add_pool("p", "p").await;
    scene.report("p", DONE, HEALTHY).await;
    let ended = scene.nodes("p", &["--wait"]).with_status(0);
    assert!(ended.output.starts_with("NAME") && ended.errors.is_empty(), "{ended:?}");
    scene.nodes("p", &["--wait", "0s"]).with_status(0);
    // A halted rollout that goes on.
    scene.report("p", PROGRESS, ("RolloutHalted", "no other node begins: a: the node is not ready")).await;
    let mut running = waiting(&scene, "p").await;
    scene.report("p", PROGRESS, HEALTHY).await;
    assert!(!running.has_ended());
    scene.report("p", DONE, HEALTHY).await;
    let ended = running.end().with_status(0);
    assert_eq!(scene.own_lines(&ended.output), ["p 2 1 1 0 v2 2/2 updated"]);
    assert_eq!(ended.errors, "");
}

/// The controller has not seen a new image, so the status is the old one's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_of_an_older_generation_does_not_end_a_wait() {
    let scene = Scene::new().await;
    scene.add_pool("p", "p").await;
    scene.report("p", DONE, HEALTHY).await;
    scene.patch_pool("p", &json!({"image": {"ref": "r.example/os:2"}})).await;
    let ended = scene.nodes("p", &["--wait", "0s"]).with_status(1);
    let sentence =
        "error: not up to date within 0s: p: the controller has not reported on its last change yet";
    assert_eq!(scene.short(ended.only_error()), sentence);
    let mut running = waiting(&scene, "p").await;
    assert!(!running.has_ended());
    scene.report("p", DONE, HEALTHY).await;
    running.end().with_status(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_end_of_the_time_the_reason_is_printed() {
    let scene = Scene::new().await;
    scene.add_pool("p", "p").await;
    let reason = |time: &str| {
        let ended = scene.nodes("p", &["--wait", time, "-o", "json"]).with_status(1);
        assert_eq!(ended.json()["items"].as_array().unwrap().len(), 1);
        scene.short(ended.only_error())
    };
    assert_eq!(reason("1s"), "error: not up to date within 1s: p: it has no status yet");
    scene.report("p", PROGRESS, ("RolloutHalted", "no other node begins: a: x")).await;
    let sentence = "error: not up to date within 0s: p: RolloutInProgress: 1/2 updated; 1 draining; RolloutHalted: no \
                    other node begins: a: x";
    assert_eq!(reason("0s"), sentence);
    scene.report("p", ("Paused", "1/2 updated; 1 paused"), HEALTHY).await;
    assert_eq!(reason("0s"), "error: not up to date within 0s: p: Paused: 1/2 updated; 1 paused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_that_does_not_exist_is_awaited() {
    let scene = Scene::new().await;
    let ended = scene.nodes("p", &["--wait", "1s"]).with_status(1);
    assert_eq!(scene.short(ended.only_error()), "error: not up to date within 1s: there is no NodePool p");
    let mut running = waiting(&scene, "p").await;
    assert!(!running.has_ended());
    scene.add_pool("p", "p").await;
    scene.report("p", DONE, HEALTHY).await;
    running.end().with_status(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_of_the_first_list_does_not_end_a_wait() {
    let scene = Scene::new().await;
    scene.add_pool("p", "p").await;
    scene.report("p", DONE, HEALTHY).await;
    let faults = Faults::default();
    let kubeconfig = scene.cluster.faulty_kubeconfig(&faults).await;
    let pool = scene.full("p");
    for kind in ["nodepools", "nodes"] {
        faults.next(2, Fault::Broken, move |call| call.is("list", kind));
        run(&mut command(&kubeconfig, &[&pool, "--wait", "1m"])).with_status(0);
        faults.next(1, Fault::Broken, move |call| call.is("list", kind));
        run(&mut command(&kubeconfig, &[&pool])).with_status(1);
    }
}
