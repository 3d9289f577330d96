//! Reports of rollouts: many markers that lead to many workloads.

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use tagboat_api::DeploymentStatus;

use super::measures::TIMEOUT;
use super::scene::Scene;
use super::victim;
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
        let workload = workload(&format!("w{number}"), &format!("{image}:1.0.0"));
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
    let is_reported = |status: &Value| status["components"].to_string().contains("are not matched");
    let evil = ReportOf { scene: &scene, namespace: attacker.namespace(), policy: "evil" };
    let changes = async {
        for number in 0_u64.. {
            let patch = json!({"metadata": {"labels": {"app.kubernetes.io/instance": number.to_string()}}});
            workloads.patch("w0", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        }
    };
    let running = create_running(&scene).await;
    let load = async {
        tokio::join!(evil.until(is_reported), victim_is_reported(&scene, &running));
        // Every change concerns all markers of the attacker.
        tokio::select! {
            () = victim_is_reported(&scene, &running) => {}
            () = changes => unreachable!("the changes have no end"),
        }
    };
    scene.assert_healthy_while(load).await;
    scene.assert_memory_below(512 << 20);
}

/// Creates a workload with the victim's image.
async fn create_running(scene: &Scene) -> Api<Deployment> {
    let workloads: Api<Deployment> = Api::namespaced(scene.cluster.client(), scene.victim.tenant.namespace());
    let workload = workload(victim::NAME, &scene.victim.newest_image());
    workloads.create(&PostParams::default(), &workload).await.unwrap();
    workloads
}

/// Reconciles three new images of the victim's, and waits until each is reported as running.
async fn victim_is_reported(scene: &Scene, workloads: &Api<Deployment>) {
    let report = ReportOf { scene, namespace: scene.victim.tenant.namespace(), policy: victim::NAME };
    for _ in 0..3 {
        scene.victim_is_reconciled().await;
        // As Flux applies the commit.
        let image = scene.victim.newest_image();
        let containers = json!([{"name": "main", "image": image}]);
        let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        workloads.patch(victim::NAME, &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
        let is_running = |status: &Value| {
            let target = format!("{}:{}", text(&status["target"]["name"]), text(&status["target"]["tag"]));
            status["state"] == "installed" && target == image && status["components"][0]["image"] == image
        };
        report.until(is_running).await;
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A Deployment without pods, which has rolled out as soon as it has an image.
fn workload(name: &str, image: &str) -> Deployment {
    let workload = json!({
        "metadata": {"name": name},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "w"}}, "template": {
            "metadata": {"labels": {"app": "w"}},
            "spec": {"containers": [{"name": "main", "image": image}]},
        }},
    });
    serde_json::from_value(workload).unwrap()
}

/// The DeploymentStatus of a policy.
struct ReportOf<'s> {
    scene: &'s Scene,
    namespace: &'s str,
    policy: &'s str,
}

impl ReportOf<'_> {
    /// Waits until the status fulfils a condition.
    async fn until(&self, is: impl Fn(&Value) -> bool) {
        let resource = ApiResource::erase::<DeploymentStatus>(&());
        let client = self.scene.cluster.client();
        let statuses: Api<DynamicObject> = Api::namespaced_with(client, self.namespace, &resource);
        let begin = std::time::Instant::now();
        loop {
            let object = statuses.get_opt(self.policy).await.unwrap();
            let status = object.map(|object| object.data["status"].clone()).unwrap_or_default();
            if is(&status) {
                return;
            }
            assert!(
                begin.elapsed() < TIMEOUT,
                "{} is not reported: {:.2000}",
                self.policy,
                status.to_string()
            );
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    }
}
