//! The feature is on if its kind is served, and the role permits it.

use std::time::Instant;

use serde_json::Value;

use super::scene::{ROLES, Scene, deployment, eventually};
use crate::controller::pod::Pod;
use crate::support::api_server::{ApiServer, Cluster};
use crate::support::workloads::WorkloadCluster;

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
        let mut program = scene.start_with(&token, &[flag]);
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
