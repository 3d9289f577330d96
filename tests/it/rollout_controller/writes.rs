//! The rates of status writes.

use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde::Deserialize;
use serde_json::{Value, json};
use tagboat_api::DeploymentStatus;
use tagboat_api::deployment_status::DeploymentStatusStatus;

use super::scene::{Scene, component, deployment, version};
use crate::support::api_server::Audited;

const FUTURE: &str = "2099-01-01T00:00:00Z";

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
    let (start, begin) = (patches(&scene), Instant::now());
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
    // A watch is logged at its end. Once per minute the kind is listed, and the permissions for nodes are reviewed.
    let is_expected = |request: &&Audited| {
        request.verb == "watch"
            || ["deploymentstatuses", "selfsubjectaccessreviews"].contains(&request.resource.as_str())
    };
    assert!(more.iter().all(|request| is_expected(&request)), "{more:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_that_another_client_has_changed_is_corrected_without_another_change() {
    let members = ["podinfo", "other"];
    let scene = Scene::new(&members.map(|member| (member, deployment(member, 1)))).await;
    let _program = scene.start().await;
    scene.apply_tree().await;
    scene.until("other", "1/1", |status| status["progress"] == "1/1").await;
    let right = scene.until("podinfo", "1/1", |status| status["progress"] == "1/1").await;
    let api: Api<DeploymentStatus> = Api::default_namespaced(scene.cluster().client());
    // Writes another status, unless another client has changed the object since a version.
    let edit = async |member: &str, message: &str, last: Option<String>| {
        let status = json!({"state": "failed", "message": message, "progress": "7/9"});
        let metadata = last.map_or(json!({}), |version| json!({"resourceVersion": version}));
        let patch = Patch::Merge(json!({"metadata": metadata, "status": status}));
        let edited = api.patch_status(member, &PatchParams::default(), &patch).await;
        edited.map(|object| object.metadata.resource_version)
    };
    edit("podinfo", "edited", None).await.unwrap();
    let status = scene.until("podinfo", "corrected", |status| status["state"] == "installed").await;
    assert_eq!(status["components"], right["components"]);
    assert_eq!((&status["progress"], &status["message"]), (&right["progress"], &right["message"]));

    // Against a client that writes all the time, a correction follows after ten seconds.
    let (begin, mut edits) = (Instant::now(), 0);
    let mut last = scene.object("podinfo").await.unwrap().resource_version();
    let refusal = loop {
        edits += 1;
        match edit("podinfo", &format!("edit {edits}"), last).await {
            Ok(version) => last = version,
            Err(refusal) => break refusal,
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    assert!(matches!(&refusal, kube::Error::Api(status) if status.is_conflict()), "{refusal}");
    let (pause, corrected) = (begin.elapsed(), scene.object("podinfo").await.unwrap());
    assert!(pause >= Duration::from_secs(10) && edits > 2, "corrected after {edits} edits in {pause:?}");
    assert_eq!(corrected.data["status"]["components"], right["components"]);
    assert_eq!(corrected.data["status"]["state"], "installed");

    // Then nothing follows: a correction of another object, which is due later, comes first.
    edit("other", "edited", None).await.unwrap();
    scene.until("other", "corrected", |status| status["state"] == "installed").await;
    assert_eq!(version(&scene.object("podinfo").await.unwrap()), version(&corrected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn times_and_history_that_another_client_has_changed_are_corrected() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
    let mut program = scene.start().await;
    scene.apply_tree().await;
    let is_complete = |status: &Value| status["state"] == "installed" && status["progress"] == "1/1";
    let right = scene.until("podinfo", "installed with 1/1", is_complete).await;
    let api: Api<DeploymentStatus> = Api::default_namespaced(scene.cluster().client());
    let edit = async |status: &Value| {
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status("podinfo", &PatchParams::default(), &patch).await.unwrap();
    };
    let parsed = |status: &Value| DeploymentStatusStatus::deserialize(status).unwrap();
    let mut future = right["components"].clone();
    future[0]["since"] = json!(FUTURE);
    for wrong in [
        json!({"state": "failed", "message": "edited", "components": [], "deployHistory": [], "timeStamp": FUTURE}),
        json!({"progress": "7/9", "since": FUTURE, "components": future}),
    ] {
        edit(&wrong).await;
        // An empty list that another client has written stays one.
        scene.until("podinfo", "corrected", |status| parsed(status) == parsed(&right)).await;
    }

    // The next process does not know the status before.
    assert_eq!(program.terminate().0, Some(0));
    edit(&json!({"since": FUTURE, "components": future})).await;
    let mut program = scene.start().await;
    let is_past = |status: &Value| !status.to_string().contains(FUTURE);
    let status = scene.until("podinfo", "without times in the future", is_past).await;
    assert!(is_complete(&status), "{status:#}");
    assert_eq!(program.terminate().0, Some(0));
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
