//! Pods that come and go after a rollout.

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::Value;

use super::scene::{Scene, component, deployment, image};
use super::writes::without_counts;
use crate::support::eventually::eventually;
use crate::support::workloads::{Ended, PodState};

/// The number of pods of each workload.
const PODS: usize = 3;

/// A workload of three pods, whose image follows the policy of its name.
fn workload(kind: &str, member: &str) -> String {
    let text = deployment(member, 3).replace("kind: Deployment", &format!("kind: {kind}"));
    match kind {
        "DaemonSet" => {
            let on_nodes = "      nodeSelector: {tests/namespace: NAMESPACE}\n      containers:";
            text.replace("  replicas: 3\n", "").replace("      containers:", on_nodes)
        }
        "StatefulSet" => text.replace("  replicas: 3\n", "  replicas: 3\n  serviceName: none\n"),
        _ => text,
    }
}

/// A workload that has rolled out, with its status and events of that time.
struct RolledOut<'s> {
    scene: &'s Scene,
    member: &'static str,
    status: Value,
    events: Vec<String>,
}

impl<'s> RolledOut<'s> {
    async fn new(scene: &'s Scene, member: &'static str) -> Self {
        let is = |status: &Value| status["state"] == "installed" && status["progress"] == "3/3";
        let status = scene.until(member, "installed with 3/3", is).await;
        let events = scene.events(member).await;
        assert_eq!(events.len(), 1, "{events:#?}");
        Self { scene, member, status, events }
    }

    /// Returns the pods in the order of their names.
    async fn pods(&self) -> Vec<Pod> {
        let pods: Api<Pod> = Api::default_namespaced(self.scene.cluster().client());
        let label = format!("app={}", self.member);
        pods.list(&ListParams::default().labels(&label)).await.unwrap().items
    }

    /// Waits until so many pods are ready, while nothing else changes.
    async fn has_ready(&self, ready: usize) {
        let progress = format!("{ready}/{PODS}");
        let expected = without_counts(&self.status);
        let is = |status: &Value| {
            assert_eq!(without_counts(status), expected, "{}", self.member);
            status["progress"] == progress.as_str()
        };
        let status = self.scene.until(self.member, &progress, is).await;
        let component = component(&status);
        assert_eq!((&component["desired"], &component["ready"]), (&PODS.into(), &ready.into()), "{status:#}");
        assert_eq!(self.scene.events(self.member).await, self.events);
    }

    /// Restarts a pod, and replaces another one.
    async fn survives(&self) {
        let kubelet = self.scene.workloads.kubelet();
        let pods = self.pods().await;
        let [restarted, replaced, kept] = &pods[..] else { panic!("{} pods", pods.len()) };
        let end = Ended { exit_code: 137, reason: "OOMKilled", restarts: 1 };
        kubelet.set_pod(&restarted.name_any(), PodState::Restarted(end));
        self.has_ready(2).await;
        kubelet.set_pod(&restarted.name_any(), PodState::Ready);
        self.has_ready(3).await;

        // The replacement takes a while to start, so that the lower count is written.
        kubelet.set_pod(&kept.name_any(), PodState::Ready);
        let image = format!("{}:1.0.0", image(self.member));
        kubelet.set_image(&image, PodState::Starting);
        let api: Api<Pod> = Api::default_namespaced(self.scene.cluster().client());
        api.delete(&replaced.name_any(), &DeleteParams::default()).await.unwrap();
        let is_replaced = async || {
            let pods = self.pods().await;
            pods.len() == PODS && pods.iter().all(|pod| pod.uid() != replaced.uid())
        };
        eventually("the pod is replaced", is_replaced).await;
        self.has_ready(2).await;
        kubelet.set_image(&image, PodState::Ready);
        self.has_ready(3).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarted_and_replaced_pods_change_only_counts() {
    let kinds = [("podinfo", "Deployment"), ("database", "StatefulSet"), ("agent", "DaemonSet")];
    let scene = Scene::new(&kinds.map(|(member, kind)| (member, workload(kind, member)))).await;
    for node in ["one", "two", "three"] {
        scene.workloads.add_node(node).await;
    }
    let mut program = scene.start().await;
    for (member, _) in kinds {
        scene.state(member, "1.0.0", "pending").await;
    }
    scene.apply_tree().await;
    join_all(kinds.map(|(member, _)| async {
        RolledOut::new(&scene, member).await.survives().await;
    }))
    .await;
    assert_eq!(program.terminate().0, Some(0));
}
