//! The states of objects whose pods are listed.
//!
//! The errors of their pods come before those of the object.

use jiff::ToSpan;
use serde_json::json;
use tagboat_api::deployment_status::State;

use super::super::testing::Scene;
use super::{APP, NEW, OLD, daemon_set, deployment, insert, of_app, scene, scene_of, stateful_set};
use crate::rollout::watched::{GroupKind, WatchedId};

fn pods(scene: &mut Scene, pods: serde_json::Value) {
    let id = WatchedId::new(GroupKind::DEPLOYMENT, "apps", "app");
    scene.list_pods(&id, pods);
}

fn pod(image: &str, reason: &str) -> serde_json::Value {
    json!([{
        "metadata": {"name": "app-1", "creationTimestamp": "2026-11-02T10:29:30Z"},
        "spec": {"containers": [{"name": "app", "image": image}]},
        "status": {"containerStatuses": [{"name": "app", "state": {"waiting": {"reason": reason, "message": "m"}}}]},
    }])
}

#[test]
fn pods_with_the_wanted_image_make_a_component_failed() {
    let unready = |image: &str| {
        deployment(image)
            .replace("updatedReplicas: 2, readyReplicas: 2", "updatedReplicas: 1, readyReplicas: 1")
            .replace("NewReplicaSetAvailable", "ReplicaSetUpdated")
    };
    let expired = unready(NEW).replace("ReplicaSetUpdated", "ProgressDeadlineExceeded");
    let code = |code: &str| of_app(&format!("failed {code} of Deployment/apps/app"));
    let table = [
        ("installing", unready(NEW), pod(NEW, "ImagePullBackOff"), code("ImagePullBackOff")),
        (
            "a mirror",
            unready(NEW),
            pod("mirror.example/ghcr.io/org/app:2", "ErrImagePull"),
            code("ErrImagePull"),
        ),
        ("old pods", unready(NEW), pod(OLD, "CrashLoopBackOff"), of_app("installing")),
        ("not applied", unready(OLD), pod(OLD, "CrashLoopBackOff"), of_app("pending NotApplied")),
        (
            "a finished rollout",
            deployment(NEW).replace("readyReplicas: 2", "readyReplicas: 1"),
            pod(NEW, "CrashLoopBackOff"),
            code("CrashLoopBackOff"),
        ),
        ("all are ready", deployment(NEW), pod(NEW, "CrashLoopBackOff"), of_app("installed")),
        ("after the deadline", expired.clone(), pod(NEW, "ImagePullBackOff"), code("ImagePullBackOff")),
        (
            "a deadline without a cause",
            expired,
            pod(NEW, "ContainerCreating"),
            code("ProgressDeadlineExceeded"),
        ),
    ];
    for (name, object, listed, expected) in table {
        let mut scene = scene(&[object]);
        pods(&mut scene, listed);
        assert_eq!(scene.lines("app"), [expected], "{name}");
    }
}

/// A restart made a failed component `installing` for a moment, and then failed again.
#[test]
fn a_failure_of_pods_holds_until_they_are_listed_again() {
    let unready = deployment(NEW)
        .replace("updatedReplicas: 2, readyReplicas: 2", "updatedReplicas: 1, readyReplicas: 1")
        .replace("NewReplicaSetAvailable", "ReplicaSetUpdated");
    let failed = of_app("failed ImagePullBackOff of Deployment/apps/app");
    let mut scene = scene(&[unready]);
    pods(&mut scene, pod(NEW, "ImagePullBackOff"));
    assert_eq!(scene.lines("app"), std::slice::from_ref(&failed));
    let since = scene.previous["app"].report.components[0].since.clone();
    // The lists do not survive the process.
    scene.clusters[0].pods.clear();
    scene.now += 10.seconds();
    assert_eq!(scene.lines("app"), [failed]);
    assert_eq!(scene.previous["app"].report.components[0].since, since);
    assert_eq!(scene.components("app").pods_wanted.len(), 1);
    pods(&mut scene, pod(NEW, "ContainerCreating"));
    assert_eq!(scene.lines("app"), [of_app("installing")]);
    // A complete rollout needs no list.
    pods(&mut scene, pod(NEW, "ImagePullBackOff"));
    scene.lines("app");
    scene.clusters[0].pods.clear();
    insert(&mut scene, &[deployment(NEW)]);
    assert_eq!(scene.lines("app"), [of_app("installed")]);
}

#[test]
fn without_an_available_pod_for_a_minute_a_component_is_unavailable() {
    let mut scene = scene(&[deployment(NEW).replace("readyReplicas: 2", "readyReplicas: 0")]);
    pods(&mut scene, pod(NEW, "ContainerCreating"));
    assert_eq!(scene.lines("app"), [of_app("installed")]);
    scene.now += 30.seconds();
    assert_eq!(scene.lines("app"), [of_app("installed")], "the pods may have become ready since the list");
    pods(&mut scene, pod(NEW, "ContainerCreating"));
    assert_eq!(scene.lines("app"), [of_app("failed Unavailable of Deployment/apps/app")]);
}

/// The last list was from before the pods of a slow rollout were ready.
#[test]
fn a_component_with_a_ready_pod_is_not_unavailable_by_an_older_list() {
    let counted = |replicas: u32, ready: u32| {
        deployment(NEW)
            .replace(
                "updatedReplicas: 2, readyReplicas: 2",
                &format!("updatedReplicas: {replicas}, readyReplicas: {ready}"),
            )
            .replace(" replicas: 2", &format!(" replicas: {replicas}"))
    };
    assert_ne!(counted(3, 0), deployment(NEW));
    let in_progress = |object: String| object.replace("NewReplicaSetAvailable", "ReplicaSetUpdated");
    let mut scene = scene(&[in_progress(counted(3, 0))]);
    pods(&mut scene, pod(NEW, "ContainerCreating"));
    assert_eq!(scene.lines("app"), [of_app("installing")]);
    scene.now += 40.seconds();
    insert(&mut scene, &[in_progress(counted(3, 1))]);
    assert_eq!(scene.lines("app"), [of_app("installing")]);
    // Also if the list is of now, but the object is newer.
    pods(&mut scene, pod(NEW, "ContainerCreating"));
    assert_eq!(scene.lines("app"), [of_app("installing")]);
    insert(&mut scene, &[counted(3, 3)]);
    assert_eq!(scene.lines("app"), [of_app("installed")]);
    // More pods than before, and fewer again.
    insert(&mut scene, &[counted(30, 3)]);
    pods(&mut scene, pod(NEW, "ContainerCreating"));
    scene.now += 2.minutes();
    assert_eq!(scene.lines("app"), [of_app("installed")]);
    insert(&mut scene, &[counted(3, 3)]);
    assert_eq!(scene.lines("app"), [of_app("installed")]);
}

/// The refusal was in no status, and the pods of long ago stayed the evidence.
#[test]
fn a_list_of_pods_that_fails_is_a_message_and_the_last_failure_stays() {
    let unready = deployment(NEW)
        .replace("updatedReplicas: 2, readyReplicas: 2", "updatedReplicas: 1, readyReplicas: 1")
        .replace("NewReplicaSetAvailable", "ReplicaSetUpdated");
    let id = WatchedId::new(GroupKind::DEPLOYMENT, "apps", "app");
    let refused = |scene: &mut Scene| scene.clusters[0].pods.insert(id.clone(), Err("forbidden".to_owned()));
    let text = Some("its pods cannot be listed: forbidden".to_owned());
    let mut scene = scene(&[unready]);
    refused(&mut scene);
    assert_eq!(scene.lines("app"), [of_app("installing")]);
    assert_eq!(scene.previous["app"].report.components[0].message, text);
    pods(&mut scene, pod(NEW, "ImagePullBackOff"));
    let failed = of_app("failed ImagePullBackOff of Deployment/apps/app");
    assert_eq!(scene.lines("app"), std::slice::from_ref(&failed));
    refused(&mut scene);
    assert_eq!(scene.lines("app"), [failed]);
    assert_eq!(scene.previous["app"].report.components[0].message, text);
    insert(&mut scene, &[deployment(NEW)]);
    assert_eq!(scene.lines("app"), [of_app("installed")]);
    assert_eq!(scene.previous["app"].report.components[0].message, None);
}

/// A quota refuses the pods, which a StatefulSet does not report.
#[test]
fn without_any_pod_for_a_minute_a_component_is_unavailable() {
    let mut scene = scene_of("apps/v1", "StatefulSet");
    let line = |state: &str| format!("StatefulSet/apps/app {state}");
    let empty =
        stateful_set(NEW, 0).replace(" replicas: 2, currentReplicas: 2, updatedReplicas: 2", " replicas: 0");
    assert_ne!(empty, stateful_set(NEW, 0));
    let id = WatchedId::new(GroupKind::STATEFUL_SET, "apps", "app");
    insert(&mut scene, &[empty]);
    scene.list_pods(&id, json!([]));
    assert_eq!(scene.lines("app"), [line("installing")]);
    scene.now += 59.seconds();
    scene.list_pods(&id, json!([]));
    assert_eq!(scene.lines("app"), [line("installing")]);
    scene.now += 1.seconds();
    assert_eq!(scene.lines("app"), [line("installing")], "pods may have been created since the list");
    scene.list_pods(&id, json!([]));
    let failed = line("failed Unavailable of StatefulSet/apps/app");
    assert_eq!(scene.lines("app"), std::slice::from_ref(&failed));
    scene.now += 1.seconds();
    assert_eq!(scene.lines("app"), [failed]);
    let mut starting = pod(NEW, "ContainerCreating");
    starting[0]["metadata"]["creationTimestamp"] = json!("2026-11-02T10:31:00Z");
    scene.list_pods(&id, starting);
    assert_eq!(scene.lines("app"), [line("installing")]);
}

/// One of three nodes is down all the time.
#[test]
fn a_daemon_set_that_fails_by_a_pod_was_complete_and_is_so_again() {
    let mut scene = scene_of("apps/v1", "DaemonSet");
    let line = |state: &str| format!("DaemonSet/apps/app {state}");
    insert(&mut scene, &[daemon_set(OLD, 3)]);
    assert_eq!(scene.lines("app"), [line("pending NotApplied")]);
    insert(&mut scene, &[daemon_set(NEW, 2)]);
    assert_eq!(scene.lines("app"), [line("installing")]);
    insert(&mut scene, &[daemon_set(NEW, 3)]);
    assert_eq!(scene.lines("app"), [line("installed")]);
    let deployed = scene.previous["app"].report.deploy_history.clone();
    assert_eq!(deployed.len(), 1);
    insert(&mut scene, &[daemon_set(NEW, 2)]);
    assert_eq!(scene.lines("app"), [line("installed")]);
    let id = WatchedId::new(GroupKind::DAEMON_SET, "apps", "app");
    scene.list_pods(&id, pod(NEW, "CrashLoopBackOff"));
    assert_eq!(scene.lines("app"), [line("failed CrashLoopBackOff of DaemonSet/apps/app")]);
    assert!(scene.previous["app"].report.components[0].complete_since.is_some());
    scene.list_pods(&id, json!([]));
    assert_eq!(scene.lines("app"), [line("installed")]);
    assert_eq!(scene.previous["app"].report.deploy_history, deployed);
}

#[test]
fn a_stateful_set_that_ran_before_is_not_deployed_by_its_recovery() {
    let mut scene = scene_of("apps/v1", "StatefulSet");
    insert(&mut scene, &[stateful_set(NEW, 1)]);
    let before = scene.report("app");
    assert_eq!(before[0].state, State::Installed);
    let id = WatchedId::new(GroupKind::STATEFUL_SET, "apps", "app");
    scene.list_pods(&id, pod(NEW, "CrashLoopBackOff"));
    scene.now += 10.minutes();
    assert_eq!(scene.report("app")[0].state, State::Failed);
    scene.list_pods(&id, json!([]));
    assert_eq!(scene.report("app"), before);
    // Without an image for a moment.
    scene.set(
        &APP.replace("\"ghcr.io/org/app:2\"}", "null}").replace("apps/v1 Deployment", "apps/v1 StatefulSet"),
    );
    assert_eq!(scene.lines("app"), ["StatefulSet/apps/app pending NotChosen"]);
    scene.set(&APP.replace("apps/v1 Deployment", "apps/v1 StatefulSet"));
    assert_eq!(scene.report("app"), before);
    assert_eq!(scene.previous["app"].report.deploy_history, []);
}

#[test]
fn an_unschedulable_pod_is_a_message() {
    let mut scene = scene(&[deployment(NEW).replace("NewReplicaSetAvailable", "ReplicaSetUpdated")]);
    pods(
        &mut scene,
        json!([{
            "metadata": {"name": "app-1"}, "spec": {"containers": [{"name": "app", "image": NEW}]},
            "status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": "no node"}]},
        }]),
    );
    let component = scene.report("app").remove(0);
    assert_eq!(
        (component.state, component.message.as_deref()),
        (State::Installing, Some("pod app-1: no node"))
    );
}
