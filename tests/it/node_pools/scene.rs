//! Pools and nodes of a test's own, and runs of the command on them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::core::v1::Node;
use kube::Resource;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tagboat_api::{NodePool, crds};

use crate::support::api_server::{ApiServer, Cluster};
use crate::support::program::{Run, run, tagboat_without_cluster};

/// Pools and nodes, whose names begin with that of a namespace of the test's own.
pub(super) struct Scene {
    pub(super) cluster: Cluster,
    kubeconfig: PathBuf,
}

/// A server with the kind NodePool, and without controllers.
fn server() -> Arc<ApiServer> {
    static SHARED: OnceLock<Arc<ApiServer>> = OnceLock::new();
    let start = || {
        let server = Arc::new(ApiServer::shared().start_beside("node-pools"));
        server.install(&[crds::nodes()]);
        server
    };
    SHARED.get_or_init(start).clone()
}

impl Scene {
    pub(super) async fn new() -> Self {
        let cluster = Cluster::on(server()).await;
        Self { kubeconfig: cluster.administrators_kubeconfig(), cluster }
    }

    /// The name of a pool or a node in the cluster.
    pub(super) fn full(&self, name: &str) -> String {
        format!("{}-{name}", self.cluster.namespace())
    }

    fn api<K: Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>>(&self) -> Api<K> {
        Api::all(self.cluster.client())
    }

    async fn create<K>(&self, object: Value)
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>
            + Clone
            + DeserializeOwned
            + Serialize
            + std::fmt::Debug,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api::<K>().create(&PostParams::default(), &object).await.unwrap();
    }

    /// Creates a pool without a status, of the nodes with the label `pool`.
    pub(super) async fn add_pool(&self, name: &str, pool: &str) {
        self.create::<NodePool>(json!({
            "apiVersion": "tagboat.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": self.full(name)},
            "spec": {"nodeSelector": {"matchLabels": {"pool": self.full(pool)}}, "image": {"ref": "r.example/os:1"}},
        }))
        .await;
    }

    /// Changes the spec of a pool.
    pub(super) async fn patch_pool(&self, name: &str, spec: &Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.api::<NodePool>().patch(&self.full(name), &PatchParams::default(), &patch).await.unwrap();
    }

    pub(super) async fn delete_pool(&self, name: &str) {
        self.api::<NodePool>().delete(&self.full(name), &DeleteParams::default()).await.unwrap();
    }

    /// Writes a status about the present generation: the reasons and messages of `UpToDate` and `Degraded`.
    pub(super) async fn report(&self, name: &str, up_to_date: (&str, &str), degraded: (&str, &str)) {
        let pool = self.api::<NodePool>().get(&self.full(name)).await.unwrap();
        let generation = pool.metadata.generation.unwrap();
        let condition = |type_: &str, is_true: bool, (reason, message): (&str, &str)| {
            json!({
                "type": type_, "status": if is_true { "True" } else { "False" }, "reason": reason,
                "message": message, "lastTransitionTime": "2026-11-23T10:00:00Z", "observedGeneration": generation,
            })
        };
        let status = json!({
            "observedGeneration": generation, "targetDigest": format!("sha256:{}", "2".repeat(64)),
            "nodeCount": 2, "updatedCount": 1, "updatingCount": 1, "degradedCount": 0,
            "deployHistory": [{
                "digest": format!("sha256:{}", "2".repeat(64)), "version": "v2", "nodeCount": 1,
                "lastDeployed": "2026-11-23T10:00:00Z",
            }],
            "conditions": [
                condition("UpToDate", up_to_date.0 == "AllUpdated", up_to_date),
                condition("Degraded", degraded.0 != "Healthy", degraded),
            ],
        });
        let patch = Patch::Merge(json!({"status": status}));
        self.api::<NodePool>().patch_status(&self.full(name), &PatchParams::default(), &patch).await.unwrap();
    }

    /// Creates a ready node with the label `pool`, in a stage.
    pub(super) async fn add_node(&self, name: &str, pool: &str, stage: Option<&str>) {
        let labels = json!({"pool": self.full(pool)});
        self.create::<Node>(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": self.full(name), "labels": labels},
        }))
        .await;
        let ready = Patch::Merge(json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}));
        self.api::<Node>().patch_status(&self.full(name), &PatchParams::default(), &ready).await.unwrap();
        if let Some(stage) = stage {
            self.mark(name, &json!({"state": stage}), &json!({})).await;
        }
    }

    /// Sets labels and annotations of Tagboat.
    pub(super) async fn mark(&self, name: &str, labels: &Value, annotations: &Value) {
        let full = |keys: &Value| -> Value {
            let keys = keys.as_object().unwrap().iter();
            keys.map(|(key, value)| (format!("tagboat.dev/{key}"), value.clone())).collect()
        };
        let patch = json!({"metadata": {"labels": full(labels), "annotations": full(annotations)}});
        let name = self.full(name);
        self.api::<Node>().patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// The command on a pool of this scene.
    pub(super) fn command(&self, pool: &str, more: &[&str]) -> Command {
        command(&self.kubeconfig, &[&[self.full(pool).as_str()], more].concat())
    }

    /// Runs the command on a pool to its end.
    pub(super) fn nodes(&self, pool: &str, more: &[&str]) -> Run {
        run(&mut self.command(pool, more))
    }

    /// Runs the command on all pools, which are those of other tests, too.
    pub(super) fn all(&self, arguments: &[&str]) -> Run {
        run(&mut command(&self.kubeconfig, arguments))
    }

    /// The lines of an output that name this scene, with single spaces and short names.
    pub(super) fn own_lines(&self, output: &str) -> Vec<String> {
        let own = output.lines().filter(|line| line.contains(&self.full("")));
        own.map(|line| self.short(line)).collect()
    }

    /// A line with single spaces and short names.
    pub(super) fn short(&self, line: &str) -> String {
        line.replace(&self.full(""), "").split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// The command with a kubeconfig and arguments.
pub(super) fn command(kubeconfig: &Path, arguments: &[&str]) -> Command {
    let mut command = tagboat_without_cluster();
    command.args(["nodes", "--kubeconfig"]).arg(kubeconfig).args(arguments);
    command
}
