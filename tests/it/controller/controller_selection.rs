//! Tests of one program for both controllers.
//! Clusters that have the kinds of one of them only are covered as well.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::json;

use super::pod::Pod;
use super::reflector::{CREATED, chosen};
use super::scene::{Kind, Scene};
use crate::support::api_server::ApiServer;
use crate::support::eventually::eventually;
use crate::support::registry::Registry;

const OWN: &str = "--watch-all-namespaces=false";

/// The log messages of a program that contain a text.
fn messages(pod: &Pod, words: &str) -> Vec<String> {
    let messages = pod.lines().into_iter().filter_map(|line| line["msg"].as_str().map(str::to_owned));
    messages.filter(|message| message.contains(words)).collect()
}

/// Waits for two messages with `disabled`: this one, and that of the nodes controller.
///
/// The server has no node pools. Asserts that no message contains `watch failed`.
async fn wait_for_message(pod: &Pod, words: &str) {
    let begin = Instant::now();
    let disabled = || {
        let is_of_nodes = |message: &String| message.starts_with("nodes controller disabled: ");
        messages(pod, "disabled").into_iter().partition::<Vec<String>, _>(is_of_nodes)
    };
    let is_logged = |(of_nodes, others): (Vec<String>, Vec<String>)| of_nodes.len() == 1 && others == [words];
    while !is_logged(disabled()) {
        assert!(begin.elapsed() < Duration::from_secs(30), "{:#?}", pod.lines());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(messages(pod, "watch failed"), [""; 0]);
}

/// A repository for the policy `app`, with this tag.
async fn repository(scene: &Scene, tag: &str) -> (Registry, String) {
    let registry = Registry::start();
    registry.push("web", tag, CREATED);
    let image = format!("{}/web", registry.address());
    scene.create(Kind::Repository, "app", &json!({"image": image, "interval": "1h"})).await;
    (registry, image)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_program_runs_both_controllers_under_both_leases() {
    let scene = Scene::new(&["app"]).await;
    let (_registry, image) = repository(&scene, "2.0.0").await;
    let mut pod = Pod::start(&scene, &["controller", OWN, "--enable-leader-election"]).await;
    chosen(&scene, "app", &json!({"name": image, "tag": "2.0.0"})).await;
    scene.lands("app", "2.0.0").await;
    let leases: Api<k8s_openapi::api::coordination::v1::Lease> =
        Api::namespaced(scene.cluster.client(), scene.cluster.namespace());
    for controller in ["image-automation-controller", "image-reflector-controller"] {
        let lease = leases.get(&format!("{controller}-leader-election")).await.unwrap();
        assert_ne!(lease.spec.unwrap().holder_identity.unwrap_or_default(), "", "{controller}");
    }
    assert_eq!(pod.terminate().0, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_controller_can_be_left_to_another_process() {
    let scene = Scene::new(&["app"]).await;
    let (_registry, image) = repository(&scene, "2.0.0").await;
    // The automation controller alone does not reconcile repositories and policies.
    let mut pod = Pod::start(&scene, &["controller", OWN, "--controllers=automation"]).await;
    scene.ready("app").await;
    scene.choose("app", "1.5.0").await;
    scene.lands("app", "1.5.0").await;
    let found = scene.api(Kind::Repository).get("app").await.unwrap();
    assert_eq!(found.metadata.finalizers, None);
    assert_eq!(found.data["status"]["lastScanResult"], json!(null));
    assert_eq!(pod.terminate().0, Some(0));
    let commits = scene.commits().len();

    let mut pod = Pod::start(&scene, &["controller", OWN, "--controllers=reflector"]).await;
    chosen(&scene, "app", &json!({"name": image, "tag": "2.0.0"})).await;
    assert_eq!(pod.terminate().0, Some(0));
    assert_eq!(scene.commits().len(), commits);
}

/// Deletes the definition of a kind from a cluster.
async fn undefine(scene: &Scene, kind: Kind) {
    let resource = kind.resource();
    let name = format!("{}.{}", resource.plural, resource.group);
    let definitions: Api<CustomResourceDefinition> = Api::all(scene.cluster.client());
    definitions.delete(&name, &DeleteParams::default()).await.unwrap();
    let is_gone = async || {
        let listed = scene.api(kind).list(&ListParams::default()).await;
        matches!(listed, Err(kube::Error::Api(status)) if status.code == 404)
    };
    eventually("the kind is served no more", is_gone).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_kinds_the_reflector_controller_is_disabled_with_one_line() {
    let scene = Scene::on(Arc::new(ApiServer::start()), &["app"]).await;
    undefine(&scene, Kind::Repository).await;
    let mut pod = Pod::start(&scene, &["controller", OWN]).await;
    scene.ready("app").await;
    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    let expected = "reflector controller disabled: the CustomResourceDefinition of ImageRepository is not \
                    installed";
    wait_for_message(&pod, expected).await;
    assert_eq!(pod.terminate().0, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_kinds_the_automation_controller_is_disabled_with_one_line() {
    let scene = Scene::on(Arc::new(ApiServer::start()), &["app"]).await;
    undefine(&scene, Kind::Automation).await;
    let (_registry, image) = repository(&scene, "2.0.0").await;
    let mut pod = Pod::start(&scene, &["controller", OWN]).await;
    chosen(&scene, "app", &json!({"name": image, "tag": "2.0.0"})).await;
    let expected = "automation controller disabled: the CustomResourceDefinition of ImageUpdateAutomation is not installed";
    wait_for_message(&pod, expected).await;
    assert_eq!(pod.terminate().0, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_permission_a_controller_is_disabled_with_one_line() {
    let scene = Scene::new(&["app"]).await;
    let (_registry, image) = repository(&scene, "2.0.0").await;
    let token = scene.cluster.token("scanner").await;
    // A role as Flux's reflector has it, without automations.
    let rule = |groups: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [groups], "resources": resources, "verbs": verbs});
    let kinds = ["imagerepositories", "imagepolicies"];
    let statuses = ["imagerepositories/status", "imagepolicies/status"];
    let role = json!({"metadata": {"name": "scanner"}, "rules": [
        rule("image.toolkit.fluxcd.io", &kinds, &["get", "list", "watch", "update", "patch"]),
        rule("image.toolkit.fluxcd.io", &statuses, &["get", "update", "patch"]),
        rule("", &["secrets"], &["get", "list", "watch"]),
        rule("", &["events"], &["create", "patch"]),
    ]});
    let binding = json!({
        "metadata": {"name": "scanner"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "scanner"},
        "subjects": [{"kind": "ServiceAccount", "name": "scanner", "namespace": scene.cluster.namespace()}],
    });
    let roles: Api<k8s_openapi::api::rbac::v1::Role> = Api::default_namespaced(scene.cluster.client());
    roles.create(&Default::default(), &serde_json::from_value(role).unwrap()).await.unwrap();
    let bindings: Api<k8s_openapi::api::rbac::v1::RoleBinding> =
        Api::default_namespaced(scene.cluster.client());
    bindings.create(&Default::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();
    let own = scene.cluster.client_with(&token).await;
    let allowed =
        Api::<kube::core::DynamicObject>::default_namespaced_with(own, &Kind::Repository.resource());
    eventually("the role counts", async || allowed.get("app").await.is_ok()).await;

    let mut pod = Pod::start_with(&scene, &token, &["controller", OWN]);
    chosen(&scene, "app", &json!({"name": image, "tag": "2.0.0"})).await;
    let expected = "automation controller disabled: the role of the controller does not allow it to list imageupdateautomations";
    wait_for_message(&pod, expected).await;
    assert_eq!(pod.terminate().0, Some(0));
}
