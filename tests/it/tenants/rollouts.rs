//! Reports of rollouts: many markers that lead to many workloads.

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use tagboat_api::DeploymentStatus;

use super::measures::TIMEOUT;
use super::scene::Scene;
use crate::support::content::{Change, file};
use crate::support::http_front::{Front, Reply};

/// The numbers of markers, each in a file of its own, and of workloads.
const MARKERS: usize = 2_000;
const WORKLOADS: usize = 200;

/// Every marker leads to every workload: 400,000 pairs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn markers_times_workloads_of_one_tenant_delay_nobody() {
    let scene = Scene::start_reporting().await;
    let attacker = &scene.attacker;
    let registry = Front::alone(|request| match request.path.as_str() {
        "/v2/" => Reply::status(200),
        _ => Reply::body(200, r#"{"name":"app","tags":["1.0.0"]}"#),
    });
    let image = format!("{}/app", registry.address());
    let workloads: Api<Deployment> = Api::namespaced(scene.cluster.client(), attacker.namespace());
    let created = futures::stream::iter(0..WORKLOADS).for_each_concurrent(8, async |number| {
        let workload = json!({
            "metadata": {"name": format!("w{number}")},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "w"}}, "template": {
                "metadata": {"labels": {"app": "w"}},
                "spec": {"containers": [{"name": "main", "image": format!("{image}:1.0.0")}]},
            }},
        });
        let workload = serde_json::from_value(workload).unwrap();
        workloads.create(&PostParams::default(), &workload).await.unwrap();
    });
    created.await;
    let marker = format!("tag: 1.0.0 # {{\"$imagepolicy\": \"{}:evil:tag\"}}\n", attacker.namespace());
    let files: Vec<Change> =
        (0..MARKERS).map(|number| file(format!("{number}.yaml"), marker.clone())).collect();
    attacker.repository("evil", &files);
    attacker.create_images("evil", &image).await;
    attacker.create_source("evil", &json!({})).await;
    attacker.create_automation("evil", &json!({})).await;
    let flood = async {
        let is_reported = |status: &Value| status["components"].to_string().contains("are not matched");
        until_reported(&scene, is_reported).await;
        for number in 0..100 {
            let patch = json!({"metadata": {"labels": {"app.kubernetes.io/instance": number.to_string()}}});
            workloads.patch("w0", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        }
    };
    let victim = async {
        for _ in 0..3 {
            scene.victim_is_reconciled().await;
        }
    };
    scene.assert_healthy_while(async { tokio::join!(flood, victim) }).await;
    scene.assert_memory_below(512 << 20);
}

/// Waits until the status of the attacker's policy fulfils a condition.
async fn until_reported(scene: &Scene, is: impl Fn(&Value) -> bool) {
    let resource = ApiResource::erase::<DeploymentStatus>(&());
    let namespace = scene.attacker.namespace();
    let statuses: Api<DynamicObject> = Api::namespaced_with(scene.cluster.client(), namespace, &resource);
    let begin = std::time::Instant::now();
    loop {
        let status = statuses.get_opt("evil").await.unwrap().map(|object| object.data["status"].clone());
        let status = status.unwrap_or_default();
        if is(&status) {
            return;
        }
        assert!(begin.elapsed() < TIMEOUT, "not reported: {:.2000}", status.to_string());
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}
