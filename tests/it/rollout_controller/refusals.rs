//! Requests of watches that the API server refuses.

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};

use super::scene::{Scene, component, deployment, image, version};
use super::statuses::Statuses;
use super::writes::without_counts;
use crate::support::api_server::{Call, Ending, Fault, Faults};
use crate::support::eventually::eventually;
use crate::support::workloads::PodState;

/// An API server that starts does not know roles yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_refusal_of_a_watch_changes_no_status() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
    let faults = Faults::default();
    let kubeconfig = scene.cluster().faulty_kubeconfig(&faults).await;
    let mut program = scene.start_by(&kubeconfig, &[]);
    scene.apply_tree().await;
    scene.state("podinfo", "1.0.0", "installed").await;
    scene.until("podinfo", "1/1", |status| status["progress"] == "1/1").await;
    let before = scene.object("podinfo").await.unwrap();

    faults.forget_calls();
    faults.next(1, Fault::Forbidden, |call| call.is("watch", "deployments"));
    assert_eq!(faults.end_watches(Ending::Clean, |call| call.is("watch", "deployments")), 1);
    let is_watched = async || {
        let calls = faults.calls();
        calls.iter().filter(|call| call.is("watch", "deployments")).count() == 2
    };
    eventually("the kind is watched again", is_watched).await;
    assert_eq!(version(&scene.object("podinfo").await.unwrap()), version(&before));
    // The watch works.
    scene.patch_workload::<Deployment>("podinfo", &json!({"spec": {"replicas": 2}})).await;
    let status = scene.until("podinfo", "2/2", |status| status["progress"] == "2/2").await;
    assert_eq!(component(&status)["since"], before.data["status"]["components"][0]["since"], "{status:#}");
    assert_eq!(program.terminate().0, Some(0));
}

/// An API server that has just started refuses the first list of a program.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_after_a_restart_changes_no_status() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
    let mut program = scene.start().await;
    scene.apply_tree().await;
    scene.until("podinfo", "1/1", |status| status["progress"] == "1/1").await;
    assert_eq!(program.terminate().0, Some(0));
    let statuses = Statuses::record(&scene, "podinfo").await;
    let before = scene.object("podinfo").await.unwrap().data["status"].clone();
    assert_eq!(before["state"], "installed");

    let faults = Faults::default();
    let kubeconfig = scene.cluster().faulty_kubeconfig(&faults).await;
    faults.next(1, Fault::Forbidden, |call| call.is("list", "deployments"));
    let mut program = scene.start_by(&kubeconfig, &[]);
    let lists = async || {
        let calls = faults.calls();
        calls.iter().filter(|call| call.is("watch", "deployments")).count() == 1
    };
    eventually("the kind is watched", lists).await;
    // The first status that it writes is that of the next change.
    scene.patch_workload::<Deployment>("podinfo", &json!({"spec": {"replicas": 2}})).await;
    statuses.until("2/2", |status| status["progress"] == "2/2").await;
    for status in statuses.all() {
        assert_eq!(without_counts(&status), without_counts(&before));
    }
    assert_eq!(program.terminate().0, Some(0));
}

/// The watch cannot resume, and the next list does not have the object.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_is_deleted_before_its_watch_expires_is_noticed() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
    let faults = Faults::default();
    let kubeconfig = scene.cluster().faulty_kubeconfig(&faults).await;
    let mut program = scene.start_by(&kubeconfig, &[]);
    scene.apply_tree().await;
    scene.state("podinfo", "1.0.0", "installed").await;

    faults.next(usize::MAX, Fault::Unreachable, |call| call.resource == "deployments");
    assert_eq!(faults.end_watches(Ending::Reset, |call| call.is("watch", "deployments")), 1);
    let deployments: Api<Deployment> = Api::default_namespaced(scene.cluster().client());
    deployments.delete("podinfo", &DeleteParams::background()).await.unwrap();
    let is_deleted = async || deployments.get_opt("podinfo").await.unwrap().is_none();
    eventually("the object is deleted", is_deleted).await;
    faults.heal();
    faults.forget_calls();
    faults.next(1, Fault::Gone, |call| call.is("watch", "deployments"));
    let status = scene.state("podinfo", "1.0.0", "pending").await;
    assert_eq!(component(&status)["reason"], "NotFound", "{status:#}");
    assert!(faults.calls().iter().any(|call| call.is("list", "deployments")));
    assert_eq!(program.terminate().0, Some(0));
}

/// Nothing was logged, and old pods stayed the evidence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_pods_that_are_refused_are_reported_and_logged_once() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
    let faults = Faults::default();
    let kubeconfig = scene.cluster().faulty_kubeconfig(&faults).await;
    let mut program = scene.start_by(&kubeconfig, &[]);
    scene.apply_tree().await;
    scene.state("podinfo", "1.0.0", "installed").await;
    let is_list = |call: &Call| call.is("list", "pods");
    faults.next(1_000, Fault::Forbidden, is_list);
    faults.forget_calls();
    let wanted = format!("{}:2.0.0", image("podinfo"));
    let waiting = PodState::waiting("ImagePullBackOff", "no such image");
    scene.workloads.kubelet().set_image(&wanted, waiting);
    scene.choose("podinfo", "2.0.0").await;
    scene.lands("podinfo", "2.0.0").await;
    scene.apply_tree().await;
    let says_refused = |status: &Value| {
        let message = component(status)["message"].as_str().unwrap_or_default();
        message.starts_with("its pods cannot be listed: ")
    };
    let status = scene.until("podinfo", "refused", says_refused).await;
    assert_eq!(component(&status)["state"], "installing", "{status:#}");
    let is_listed_thrice = async || faults.calls().into_iter().filter(is_list).count() >= 3;
    eventually("three lists", is_listed_thrice).await;
    faults.heal();
    let status = scene.state("podinfo", "2.0.0", "failed").await;
    assert!(!says_refused(&status), "{status:#}");
    assert_eq!(component(&status)["error"]["code"], "ImagePullBackOff", "{status:#}");
    assert_eq!(program.terminate().0, Some(0));
    let logged: Vec<Value> =
        program.lines().into_iter().filter(|line| line["namespace"].is_string()).collect();
    let count = |text: &str| logged.iter().filter(|line| line["msg"] == text).count();
    let counts = (count("cannot list pods, retrying"), count("pods can be listed again"));
    assert_eq!(counts, (1, 1), "{logged:#?}");
}
