//! The feature is on if its kind is served, and the role permits it.

use std::sync::Arc;
use std::time::Instant;

use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use serde_json::Value;

use super::scene::{ROLES, Scene, deployment};
use crate::controller::pod::Pod;
use crate::support::api_server::{ApiServer, Cluster};
use crate::support::eventually::eventually;
use crate::support::workloads::{WorkloadCluster, install_kinds};

/// Waits until the program has logged a message that begins so.
async fn logs(program: &Pod, begin: &str) {
    let has_logged = async || {
        program.lines().iter().any(|line: &Value| {
            line["message"].as_str().or(line["msg"].as_str()).is_some_and(|text| text.starts_with(begin))
        })
    };
    eventually(begin, has_logged).await;
}

/// The requests of the program that concern rollouts, except reviews of its own access.
fn requests(cluster: &Cluster) -> Vec<String> {
    const OF_ROLLOUTS: [&str; 6] =
        ["deploymentstatuses", "deployments", "pods", "jobs", "kustomizations", "canaries"];
    let requests = cluster.audit("tagboat").into_iter();
    let requests =
        requests.filter(|request| OF_ROLLOUTS.iter().any(|name| request.resource.starts_with(name)));
    requests.map(|request| format!("{} {} {}", request.verb, request.resource, request.code)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_role_the_controller_works_as_before() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
    let token = scene.cluster().token_with_roles(&ROLES[..2]).await;
    let mut program = scene.start_with(&token, &[]);
    logs(&program, "rollouts are not reported: the role of the controller does not allow it to list").await;
    scene.choose("podinfo", "2.0.0").await;
    scene.lands("podinfo", "2.0.0").await;
    assert_eq!(program.terminate().0, Some(0));
    assert_eq!(requests(scene.cluster()), Vec::<String>::new());
    let refused = scene.cluster().audit("tagboat").into_iter().find(|request| request.code == 403);
    assert_eq!(refused, None);
    assert!(scene.object("podinfo").await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flag_turns_the_feature_off() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
    let token = scene.cluster().token_with_roles(&ROLES).await;
    for flag in ["--rollout=false", "--dry-run"] {
        let mut program = scene.start_with(&token, &[flag, "--nodes=false"]);
        logs(&program, if flag == "--dry-run" { "dry run" } else { "reconciling automations" }).await;
        assert_eq!(program.terminate().0, Some(0));
    }
    assert_eq!(requests(scene.cluster()), Vec::<String>::new());
    let reviews = scene.cluster().audit("tagboat").into_iter();
    // Each preflight has eleven reviews at most; rollouts would add six.
    let reviews = reviews.filter(|request| request.resource == "selfsubjectaccessreviews").count();
    assert!(reviews <= 2 * 11, "{reviews}");
}

/// The server of most tests has no DeploymentStatus.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_definition_the_controller_works_as_before() {
    let workloads = WorkloadCluster::on(ApiServer::shared()).await;
    let scene = Scene::of(workloads, &[("podinfo", deployment("podinfo", 1))]).await;
    let began = Instant::now();
    let mut program = scene.start().await;
    logs(&program, "rollouts are not reported: the CustomResourceDefinition").await;
    scene.choose("podinfo", "2.0.0").await;
    scene.lands("podinfo", "2.0.0").await;
    assert_eq!(program.terminate().0, Some(0));
    // The feature costs one request per minute: a slow machine sees the second one.
    let requests = requests(scene.cluster());
    let minutes = usize::try_from(began.elapsed().as_secs() / 60).unwrap();
    assert!((1..=minutes + 1).contains(&requests.len()), "{requests:?}");
    assert!(requests.iter().all(|request| request == "list deploymentstatuses 404"), "{requests:?}");
}

/// The program notices both within a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_that_is_removed_and_installed_again_turns_the_feature_off_and_on() {
    let server = Arc::new(ApiServer::shared().start_beside("definition"));
    install_kinds(&server);
    let members = [("podinfo", deployment("podinfo", 1))];
    let scene = Scene::of(WorkloadCluster::on(server.clone()).await, &members).await;
    let mut program = scene.start().await;
    scene.state("podinfo", "1.0.0", "pending").await;

    let definition = tagboat_api::crds::rollout();
    let definitions: Api<CustomResourceDefinition> = Api::all(scene.cluster().client());
    definitions.delete(&definition.name_any(), &DeleteParams::default()).await.unwrap();
    logs(&program, "rollouts are not reported any more: the CustomResourceDefinition").await;
    let is_gone = async || definitions.get_opt(&definition.name_any()).await.unwrap().is_none();
    eventually("the definition is gone", is_gone).await;
    scene.choose("podinfo", "2.0.0").await;
    scene.lands("podinfo", "2.0.0").await;

    server.install(&[definition]);
    let status = scene.state("podinfo", "2.0.0", "pending").await;
    assert_eq!(status["components"][0]["place"], "podinfo.yaml:13", "{status:#}");
    scene.choose("podinfo", "3.0.0").await;
    scene.lands("podinfo", "3.0.0").await;
    scene.state("podinfo", "3.0.0", "pending").await;
    assert_eq!(program.terminate().0, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_that_is_removed_and_given_back_turns_the_feature_off_and_on() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
    let mut program = scene.start().await;
    let before = scene.state("podinfo", "1.0.0", "pending").await;

    let roles: Api<ClusterRole> = Api::all(scene.cluster().client());
    let name = format!("tagboat-rollout-{}", scene.cluster().namespace());
    roles.delete(&name, &DeleteParams::default()).await.unwrap();
    logs(&program, "rollouts are not reported any more").await;
    scene.choose("podinfo", "2.0.0").await;
    scene.lands("podinfo", "2.0.0").await;
    let object = scene.object("podinfo").await.unwrap();
    assert_eq!(object.data["status"]["target"], before["target"], "{:#}", object.data);

    scene.cluster().token_with_roles(&ROLES).await;
    scene.state("podinfo", "2.0.0", "pending").await;
    assert_eq!(program.terminate().0, Some(0));
}
