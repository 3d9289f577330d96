//! The program with `--status-addr` on a real Kubernetes API.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::{Api, ListParams, Patch, PatchParams};
use reqwest::Method;
use serde_json::{Value, json};
use tagboat_api::DeploymentStatus;
use tempfile::TempDir;

use super::answer::Answer;
use super::status::object;
use crate::controller::pod::{Pod, PodSpec};
use crate::support::api_server::{ApiServer, Cluster, apply, documents};

/// The kind's definition.
const DEFINITION: &str = include_str!("../../../deploy/rollout/crds/tagboat.dev_deploymentstatuses.yaml");

/// A namespace with deployments, and the program that serves their status.
pub(super) struct Scene {
    pub(super) cluster: Cluster,
    pub(super) pod: Pod,
    directory: TempDir,
}

impl Scene {
    /// Starts the program, and waits until it has listed the deployments.
    pub(super) async fn start(arguments: &[&str]) -> Self {
        let scene = Self::on(Cluster::on(ApiServer::shared_with_deployments()).await, arguments);
        scene.until("/api/v1/deployments", Duration::from_secs(60), |answer| answer.status == 200).await;
        scene
    }

    /// Starts the program on a server of the test's own, without the kind.
    pub(super) async fn without_kind(server: Arc<ApiServer>, arguments: &[&str]) -> Self {
        Self::on(Cluster::on(server).await, arguments)
    }

    fn on(cluster: Cluster, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let pod = spawn(&cluster, directory.path(), arguments);
        Self { cluster, pod, directory }
    }

    /// Starts the program once more, beside the one of the scene.
    pub(super) fn another_pod(&self, arguments: &[&str]) -> Pod {
        let directory = tempfile::tempdir_in(&self.directory).unwrap().keep();
        spawn(&self.cluster, &directory, arguments)
    }

    /// Writes a deployment with its status.
    pub(super) async fn write(&self, name: &str, labels: &Value, status: &Value) {
        let api: Api<DeploymentStatus> = Api::default_namespaced(self.cluster.client());
        let mut object = object(self.cluster.namespace(), name, labels, status);
        object.as_object_mut().unwrap().remove("status");
        let parameters = PatchParams::apply("tests").force();
        api.patch(name, &parameters, &Patch::Apply(object)).await.unwrap();
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// The object as the API server has it.
    pub(super) async fn stored(&self, name: &str) -> Value {
        let api: Api<DeploymentStatus> = Api::default_namespaced(self.cluster.client());
        serde_json::to_value(api.get(name).await.unwrap()).unwrap()
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        Answer::of(Method::GET, &self.pod.status, path, &[]).await
    }

    /// Waits until a response fulfils a condition.
    pub(super) async fn until(&self, path: &str, patience: Duration, is: impl Fn(&Answer) -> bool) -> Answer {
        let begin = Instant::now();
        let mut last = String::new();
        loop {
            // The program may not listen yet.
            if tokio::net::TcpStream::connect(&self.pod.status).await.is_ok() {
                let answer = self.get(path).await;
                if is(&answer) {
                    return answer;
                }
                last = format!("{answer:?}");
            }
            assert!(begin.elapsed() < patience, "{path} is {last}; {:#?}", self.pod.lines());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn spawn(cluster: &Cluster, directory: &Path, arguments: &[&str]) -> Pod {
    // The test writes the statuses.
    let arguments = [&["controller", "--watch-all-namespaces=false", "--rollout=false"], arguments].concat();
    Pod::spawn(PodSpec {
        kubeconfig: &cluster.administrators_kubeconfig(),
        namespace: cluster.namespace(),
        directory,
        environment: &[],
        arguments: &arguments,
        serves_status: true,
        cpu: None,
    })
}

/// Installs the kind, and waits until it is served.
pub(super) async fn define(cluster: &Cluster) {
    for document in documents(DEFINITION) {
        apply(&cluster.client(), &document, false).await.unwrap();
    }
    let begin = Instant::now();
    let api: Api<DeploymentStatus> = Api::default_namespaced(cluster.client());
    while let Err(error) = api.list(&ListParams::default()).await {
        assert!(begin.elapsed() < Duration::from_secs(60), "{error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
