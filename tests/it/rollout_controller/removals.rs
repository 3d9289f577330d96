//! Components whose file is removed from git.

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, WatchEvent, WatchParams};
use serde_json::json;

use super::scene::{Scene, component, deployment, version};
use crate::controller::scene::Kind;
use crate::support::eventually::eventually;

/// Creates a scene whose only file is the one below the path of the automation.
async fn scene() -> Scene {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
    scene.commit("apps/podinfo.yaml", Some(&deployment("podinfo", 1)));
    scene.commit("podinfo.yaml", None);
    scene.patch(Kind::Automation, "fleet", &json!({"spec": {"update": {"path": "./apps"}}})).await;
    scene
}

async fn delete_workload(scene: &Scene) {
    let workloads: Api<Deployment> = Api::default_namespaced(scene.cluster().client());
    workloads.delete("podinfo", &DeleteParams::default()).await.unwrap();
}

/// Runs the program until it has reported the policy, whose object it keeps.
async fn restart(scene: &Scene, number: &str) {
    let before = scene.object("podinfo").await.unwrap();
    scene.patch(Kind::Policy, "podinfo", &json!({"metadata": {"labels": {"restart": number}}})).await;
    let mut program = scene.start().await;
    let has_label = async || {
        let object = scene.object("podinfo").await.unwrap();
        assert_eq!(object.uid(), before.uid());
        object.labels().get("restart").map(String::as_str) == Some(number)
    };
    eventually("the object has the label of its policy", has_label).await;
    assert_eq!(program.terminate().0, Some(0));
}

/// Returns the states of an object from a version to its deletion, without repetitions.
async fn states_since(scene: &Scene, version: &str) -> Vec<String> {
    let parameters = WatchParams::default().fields("metadata.name=podinfo").disable_bookmarks();
    let mut events = scene.statuses().watch(&parameters, version).await.unwrap().boxed();
    let mut states: Vec<String> = Vec::new();
    while let Some(event) = events.next().await {
        match event.unwrap() {
            WatchEvent::Deleted(_) => return states,
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                let state = object.data["status"]["state"].as_str().unwrap().to_owned();
                if states.last() != Some(&state) {
                    states.push(state);
                }
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("the object was not deleted: {states:?}")
}

/// Formerly, the error of the automation hid it, and the object stayed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_removal_of_the_last_file_below_the_path_of_an_automation_is_reported() {
    let scene = scene().await;
    let mut program = scene.start().await;
    scene.apply_tree().await;
    scene.state("podinfo", "1.0.0", "installed").await;
    let before = scene.object("podinfo").await.unwrap();
    scene.commit("apps/podinfo.yaml", None);
    scene.rescan("1").await;
    scene.state("podinfo", "1.0.0", "removing").await;
    let automation = scene.api(Kind::Automation).get("fleet").await.unwrap();
    let conditions = automation.data["status"]["conditions"].as_array().unwrap();
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready").unwrap();
    let error = "failed to apply policies: walking path for files: lstat ./apps: no such file or directory";
    assert_eq!((&ready["status"], &ready["message"]), (&json!("False"), &json!(error)), "{ready:#}");

    delete_workload(&scene).await;
    scene.gone("podinfo").await;
    assert_eq!(states_since(&scene, &version(&before)).await, ["removing", "removed"]);

    // The file is there again.
    scene.commit("apps/podinfo.yaml", Some(&deployment("podinfo", 1)));
    scene.rescan("2").await;
    scene.state("podinfo", "1.0.0", "pending").await;
    assert_eq!(program.terminate().0, Some(0));
}

/// The removal was found by a scan, so it is reported to its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_that_was_found_is_reported_once_over_restarts_without_a_scan() {
    let scene = scene().await;
    let mut program = scene.start().await;
    scene.apply_tree().await;
    scene.state("podinfo", "1.0.0", "installed").await;
    scene.commit("apps/podinfo.yaml", None);
    scene.rescan("1").await;
    scene.state("podinfo", "1.0.0", "removing").await;
    scene.patch(Kind::Automation, "fleet", &json!({"spec": {"suspend": true}})).await;
    assert_eq!(program.terminate().0, Some(0));
    let before = scene.object("podinfo").await.unwrap();
    restart(&scene, "1").await;
    delete_workload(&scene).await;
    let mut program = scene.start().await;
    scene.gone("podinfo").await;
    assert_eq!(states_since(&scene, &version(&before)).await, ["removing", "removed"]);
    assert_eq!(program.terminate().0, Some(0));
}

/// No scan has found the removal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_whose_file_is_removed_while_its_automation_is_suspended_stays_until_it_is_resumed() {
    let scene = scene().await;
    let mut program = scene.start().await;
    scene.apply_tree().await;
    scene.state("podinfo", "1.0.0", "installed").await;
    scene.patch(Kind::Automation, "fleet", &json!({"spec": {"suspend": true}})).await;
    scene.commit("apps/podinfo.yaml", None);
    delete_workload(&scene).await;
    let missing = scene.state("podinfo", "1.0.0", "pending").await;
    assert_eq!(component(&missing)["reason"], "NotFound");
    let before = scene.object("podinfo").await.unwrap();
    assert_eq!(program.terminate().0, Some(0));
    restart(&scene, "1").await;
    restart(&scene, "2").await;
    let mut program = scene.start().await;
    scene.patch(Kind::Automation, "fleet", &json!({"spec": {"suspend": false}})).await;
    scene.gone("podinfo").await;
    assert_eq!(states_since(&scene, &version(&before)).await, ["pending", "removed"]);
    assert_eq!(program.terminate().0, Some(0));
}
