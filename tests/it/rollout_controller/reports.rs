//! Reports of a rollout at each of its steps.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::json;

use super::scene::{Scene, component, deployment, image};
use super::statuses::Statuses;
use crate::support::eventually::eventually;
use crate::support::workloads::PodState;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollout_is_reported_from_the_commit_to_its_last_pod() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 2))]).await;
    let mut program = scene.start().await;
    let name = format!("Deployment/{}/podinfo", scene.cluster().namespace());

    // Nothing is applied.
    let status = scene.state("podinfo", "1.0.0", "pending").await;
    assert_eq!(component(&status)["reason"], "NotFound", "{status:#}");
    scene.apply_tree().await;
    let status = scene.state("podinfo", "1.0.0", "installed").await;
    let found = component(&status);
    assert_eq!(found["name"], name.as_str(), "{status:#}");
    assert_eq!(
        (&found["tie"], &found["place"], &found["automation"]),
        (&json!("object"), &json!("podinfo.yaml:13"), &json!("fleet"))
    );

    // A push that is not applied, then one that is.
    scene.workloads.kubelet().set_image(&format!("{}:2.0.0", image("podinfo")), PodState::Starting);
    scene.choose("podinfo", "2.0.0").await;
    scene.lands("podinfo", "2.0.0").await;
    let is_committed = |status: &serde_json::Value| status["commit"]["id"].is_string();
    let status = scene.until("podinfo", "committed", is_committed).await;
    assert_eq!(status["state"], "pending", "{status:#}");
    assert_eq!(status["commit"]["id"], scene.repository.id("main").unwrap());
    assert_eq!(status["commit"]["branch"], "main");
    scene.apply_tree().await;
    let status = scene.state("podinfo", "2.0.0", "installing").await;
    assert_eq!(component(&status)["image"], format!("{}:2.0.0", image("podinfo")));
    scene.workloads.kubelet().set_image(&format!("{}:2.0.0", image("podinfo")), PodState::Ready);
    let status = scene.state("podinfo", "2.0.0", "installed").await;
    scene.until("podinfo", "2/2", |status| status["progress"] == "2/2").await;
    assert_eq!(status["deployHistory"][0]["version"], "2.0.0", "{status:#}");
    assert_eq!(status["deployHistory"][0]["commit"], scene.repository.id("main").unwrap());
    let events = scene.events("podinfo").await;
    assert_eq!(events.len(), 2, "{events:#?}");
    let commit = &scene.repository.id("main").unwrap()[..7];
    assert_eq!(events[0], format!("Normal RolloutSucceeded {}:1.0.0 is running: 1 object", image("podinfo")));
    let beginning = format!("Normal RolloutSucceeded {}:2.0.0 is running: 1 object, ", image("podinfo"));
    assert!(events[1].starts_with(&beginning), "{events:#?}");
    assert!(events[1].ends_with(&format!("s after commit {commit}")), "{events:#?}");

    // The object is removed from the cluster, and its file is still there.
    let api: kube::Api<Deployment> = kube::Api::default_namespaced(scene.cluster().client());
    api.delete("podinfo", &kube::api::DeleteParams::background()).await.unwrap();
    let status = scene.state("podinfo", "2.0.0", "pending").await;
    assert_eq!(component(&status)["reason"], "NotFound", "{status:#}");
    assert_eq!(program.terminate().0, Some(0));
    let refused: Vec<_> = scene
        .cluster()
        .audit("tagboat")
        .into_iter()
        .filter(|request| matches!(request.code, 401 | 403))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_that_cannot_start_are_reported_before_any_deadline() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
    let _program = scene.start().await;
    scene.apply_tree().await;
    scene.state("podinfo", "1.0.0", "installed").await;
    let wanted = format!("{}:2.0.0", image("podinfo"));
    let waiting = PodState::waiting("ImagePullBackOff", "Back-off pulling image");
    scene.workloads.kubelet().set_image(&wanted, waiting);
    scene.choose("podinfo", "2.0.0").await;
    scene.lands("podinfo", "2.0.0").await;
    scene.apply_tree().await;
    let status = scene.state("podinfo", "2.0.0", "failed").await;
    let error = &component(&status)["error"];
    assert_eq!(error["code"], "ImagePullBackOff", "{status:#}");
    let events = scene.events("podinfo").await;
    let beginning = format!("Warning RolloutFailed {wanted} failed: Deployment/");
    assert!(events.last().unwrap().starts_with(&beginning), "{events:#?}");
    scene.workloads.kubelet().set_image(&wanted, PodState::Ready);
    let status = scene.state("podinfo", "2.0.0", "installed").await;
    assert_eq!(component(&status)["error"], json!(null), "{status:#}");
    let events = scene.events("podinfo").await;
    let of_target = events.iter().filter(|event| event.contains(&wanted));
    let outcomes: Vec<&str> = of_target.map(|event| event.split(' ').nth(1).unwrap()).collect();
    assert_eq!(outcomes, ["RolloutFailed", "RolloutSucceeded"], "{events:#?}");
}

/// A list of pods has 250 per page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_of_the_second_page_of_a_list_is_found() {
    const PODS: usize = 260;
    let replicas = u32::try_from(PODS).unwrap();
    let scene = Scene::new(&[("podinfo", deployment("podinfo", replicas))]).await;
    let kubelet = scene.workloads.kubelet();
    kubelet.set_image(&format!("{}:1.0.0", image("podinfo")), PodState::Starting);
    scene.apply_tree().await;
    let pods: Api<Pod> = Api::default_namespaced(scene.cluster().client());
    let names = async || {
        let pods = pods.list_metadata(&ListParams::default()).await.unwrap();
        pods.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
    };
    eventually("all pods exist", async || names().await.len() == PODS).await;
    let last = names().await.pop().unwrap();
    kubelet.set_pod(&last, PodState::waiting("CreateContainerConfigError", "secret \"x\" not found"));
    let _program = scene.start().await;
    let status = scene.state("podinfo", "1.0.0", "failed").await;
    let error = &component(&status)["error"];
    assert_eq!(error["code"], "CreateContainerConfigError", "{status:#}");
    assert!(error["message"].as_str().unwrap().contains(&last), "{status:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_whose_file_is_removed_is_reported_until_it_is_gone() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1)), ("other", deployment("other", 1))]).await;
    // A second file of the same policy, which stays.
    let second = deployment("podinfo", 1)
        .replace("name: podinfo\nspec", "name: second\nspec")
        .replace("app: podinfo", "app: second");
    scene.commit("second.yaml", Some(&second));
    let _program = scene.start().await;
    scene.apply_tree().await;
    let both =
        |status: &serde_json::Value| status["state"] == "installed" && status["summary"]["installed"] == 2;
    scene.until("podinfo", "installed twice", both).await;
    let statuses = Statuses::record(&scene, "podinfo").await;
    scene.commit("second.yaml", None);
    scene.rescan("1").await;
    let removing = |status: &serde_json::Value| status["components"][0]["state"] == "removing";
    let status = scene.until("podinfo", "removing", removing).await;
    assert_eq!(status["components"].as_array().unwrap().len(), 2, "{status:#}");
    let api: kube::Api<Deployment> = kube::Api::default_namespaced(scene.cluster().client());
    api.delete("second", &kube::api::DeleteParams::background()).await.unwrap();
    let alone =
        |status: &serde_json::Value| status["summary"]["total"] == 1 && status["state"] == "installed";
    scene.until("podinfo", "alone", alone).await;
    let removed = |status: &serde_json::Value| status["summary"]["removed"] == 1;
    assert_eq!(statuses.all().iter().filter(|status| removed(status)).count(), 1, "it is reported once");
}
