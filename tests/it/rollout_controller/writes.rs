//! The rates of status writes.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tagboat_api::DeploymentStatus;

use super::scene::{Scene, component, deployment, version};
use crate::support::api_server::Audited;

/// The number of status patches so far.
fn patches(scene: &Scene) -> usize {
    let requests = scene.cluster().audit("tagboat");
    requests.iter().filter(|request| request.resource == "deploymentstatuses/status").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scaling_changes_only_counts_and_at_rest_nothing_is_written() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 3))]).await;
    let _program = scene.start().await;
    scene.apply_tree().await;
    let before = scene.until("podinfo", "3/3", |status| status["progress"] == "3/3").await;
    assert_eq!(before["state"], "installed");
    let (start, begin) = (patches(&scene), std::time::Instant::now());
    for replicas in [30, 3] {
        scene.patch_workload::<Deployment>("podinfo", &json!({"spec": {"replicas": replicas}})).await;
        let progress = format!("{replicas}/{replicas}");
        let status =
            scene.until("podinfo", &progress, |status| status["progress"] == progress.as_str()).await;
        assert_eq!(without_counts(&status), without_counts(&before));
        assert_eq!(component(&status)["ready"], replicas);
    }
    let (written, seconds) = (patches(&scene) - start, begin.elapsed().as_secs());
    assert!(written as u64 <= seconds / 10 + 1, "{written} writes in {seconds} s");

    // At rest, for longer than any of the intervals.
    let object = scene.object("podinfo").await.unwrap();
    let requests = scene.cluster().audit("tagboat").len();
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(version(&scene.object("podinfo").await.unwrap()), version(&object));
    let more: Vec<_> = scene.cluster().audit("tagboat").into_iter().skip(requests).collect();
    // A watch is logged at its end, and once per minute the kind is listed.
    let is_expected =
        |request: &&Audited| request.verb == "watch" || request.resource == "deploymentstatuses";
    assert!(more.iter().all(|request| is_expected(&request)), "{more:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_that_another_client_has_changed_is_corrected_without_another_change() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
    let _program = scene.start().await;
    scene.apply_tree().await;
    let right = scene.until("podinfo", "1/1", |status| status["progress"] == "1/1").await;
    let api: Api<DeploymentStatus> = Api::default_namespaced(scene.cluster().client());
    let edit = async |status: &Value| {
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status("podinfo", &PatchParams::default(), &patch).await.unwrap();
    };
    let wrong = json!({"state": "failed", "message": "edited", "progress": "7/9"});
    edit(&wrong).await;
    let status = scene.until("podinfo", "corrected", |status| status["state"] == "installed").await;
    assert_eq!(status["components"], right["components"]);
    assert_eq!((&status["progress"], &status["message"]), (&right["progress"], &right["message"]));

    // Against a client that writes all the time, a correction follows every ten seconds, and then nothing.
    let corrections = || {
        let requests = scene.cluster().audit("tagboat").into_iter();
        requests.filter(|it| it.resource == "deploymentstatuses/status" && it.code == 200).count()
    };
    let (start, begin) = (corrections(), std::time::Instant::now());
    while begin.elapsed() < Duration::from_secs(15) {
        edit(&wrong).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    scene.until("podinfo", "corrected", |status| status["state"] == "installed").await;
    let (written, seconds) = (corrections() - start, begin.elapsed().as_secs());
    assert!(written > 0 && written as u64 <= seconds / 10 + 1, "{written} writes in {seconds} s");
    let version = version(&scene.object("podinfo").await.unwrap());
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(self::version(&scene.object("podinfo").await.unwrap()), version);
}

/// Returns a status without the numbers of pods and the time of the last change.
pub(super) fn without_counts(status: &Value) -> Value {
    let mut status = status.clone();
    for field in ["progress", "timeStamp", "message"] {
        status.as_object_mut().unwrap().remove(field);
    }
    for component in status["components"].as_array_mut().unwrap() {
        for field in ["desired", "updated", "ready", "updatedReady", "message"] {
            component.as_object_mut().unwrap().remove(field);
        }
    }
    for condition in status["conditions"].as_array_mut().unwrap() {
        condition.as_object_mut().unwrap().remove("message");
    }
    status
}
