//! Leader election: several controllers, one of which writes.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tagboat::controller::{ControllerError, lease_name};
use tagboat::objects::cluster::FIELD_MANAGER;

use super::scene::Scene;
use crate::support::api_server::{Fault, Faults};
use crate::support::eventually::eventually;
use crate::support::git_host::{self, Operation};

fn leases(scene: &Scene) -> Api<Lease> {
    Api::namespaced(scene.cluster.client(), scene.cluster.namespace())
}

async fn holder(scene: &Scene) -> String {
    let lease = leases(scene).get_opt(&lease_name(FIELD_MANAGER, None)).await.unwrap();
    lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_leader_writes_and_another_follows_when_it_ends() {
    let scene = Scene::new(&["app"]).await;
    let first = scene.controller().standing_as("first").start();
    scene.ready("app").await;
    assert_eq!(holder(&scene).await, "first");
    let faults = Faults::default();
    let second =
        scene.controller().through(scene.cluster.faulty_client(&faults)).standing_as("second").start();
    let reads = || faults.calls().iter().filter(|call| call.resource == "leases").count();
    eventually("the second reads the Lease again and again", async || reads() >= 5).await;
    assert!(faults.calls().iter().all(|call| !call.writes()), "{:?}", faults.calls());
    first.end().await;
    // The Lease was released, so the next leader does not wait until it expires.
    eventually("the second leads", async || holder(&scene).await == "second").await;
    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    second.end().await;
    assert_eq!(holder(&scene).await, "");
    assert_eq!(scene.commits().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_loses_the_lease_ends_its_pushes_at_once() {
    let scene = Scene::new(&["app"]).await;
    let controller = scene.controller().standing_as("first").start();
    scene.ready("app").await;
    scene.host.always(Operation::Push, git_host::Fault::Hang);
    scene.choose("app", "2.0.0").await;
    eventually("a push is in flight", async || !scene.host.requests_for(Operation::Push).is_empty()).await;
    let spec = json!({"spec": {"holderIdentity": "flux", "leaseDurationSeconds": 3600}});
    leases(&scene)
        .patch(&lease_name(FIELD_MANAGER, None), &PatchParams::default(), &Patch::Merge(spec))
        .await
        .unwrap();
    let begin = std::time::Instant::now();
    let ControllerError::LeadershipLost { message } = controller.ended().await else {
        panic!("it lost the Lease")
    };
    assert_eq!(message, "flux is the leader now");
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert_eq!(holder(&scene).await, "flux");
    assert!(scene.commits().is_empty());
    // The cancelled reconcile has no event.
    assert_eq!(scene.events("app").await, ["Normal Succeeded: repository up-to-date"]);
}

/// The next leader reports the result.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_loses_the_lease_writes_no_status() {
    let scene = Scene::new(&["app"]).await;
    let faults = Faults::default();
    let builder = scene.controller().through(scene.cluster.faulty_client(&faults)).standing_as("first");
    let metrics = builder.metrics.clone();
    let controller = builder.start();
    let before = scene.ready("app").await;
    faults.forget_calls();
    faults.next(usize::MAX, Fault::Held, |call| call.is("patch", "imageupdateautomations/status"));
    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    let is_writing = || faults.calls().iter().any(|call| call.is("patch", "imageupdateautomations/status"));
    eventually("the status is on its way", async || is_writing()).await;
    let spec = json!({"spec": {"holderIdentity": "flux", "leaseDurationSeconds": 3600}});
    leases(&scene)
        .patch(&lease_name(FIELD_MANAGER, None), &PatchParams::default(), &Patch::Merge(spec))
        .await
        .unwrap();
    eventually("it is noticed", async || {
        metrics.to_text().lines().any(|line| line.starts_with("tagboat_leader 0"))
    })
    .await;
    faults.heal();
    let ControllerError::LeadershipLost { message } = controller.ended().await else {
        panic!("it lost the Lease")
    };
    assert_eq!(message, "flux is the leader now");
    assert_eq!(scene.status("app").await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_cannot_renew_the_lease_stops_leading() {
    let scene = Scene::new(&["app"]).await;
    let faults = Faults::default();
    let builder = scene.controller().through(scene.cluster.faulty_client(&faults)).standing_as("first");
    let controller = builder.start();
    scene.ready("app").await;
    faults.next(usize::MAX, Fault::Silence, |call| call.resource == "leases");
    let begin = std::time::Instant::now();
    let ControllerError::LeadershipLost { message } = controller.ended().await else {
        panic!("it lost the Lease")
    };
    assert!(message.starts_with("the API server did not respond"), "{message}");
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

/// A Lease that is not renewed meanwhile is another's before the first object is reconciled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lease_is_kept_while_the_cluster_takes_its_time_to_list_its_objects() {
    let scene = Scene::new(&["app"]).await;
    let faults = Faults::default();
    faults.next(usize::MAX, Fault::Silence, |call| call.is("list", "imagepolicies"));
    let slow = scene.controller().through(scene.cluster.faulty_client(&faults)).standing_as("slow").start();
    eventually("the slow one leads", async || holder(&scene).await == "slow").await;
    let other = scene.controller().standing_as("other").start();
    // Longer than the Lease is valid.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(holder(&scene).await, "slow");
    // A controller that is shut down while it waits releases the Lease all the same.
    slow.end().await;
    eventually("the other leads", async || holder(&scene).await == "other").await;
    scene.ready("app").await;
    other.end().await;
}
