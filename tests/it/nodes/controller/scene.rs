//! Nodes of a test and their pools, on a server with a running program.
//!
//! ```text
//! let scene = NodeScene::new().await;                  // shares the server and the program with other tests
//! scene.add_nodes(&["a", "b"]).await;                  // nodes that only the pools of this scene select
//! scene.create_pool("workers", &json!({"image": {"ref": image("1")}})).await;
//! scene.stage("a", "1").await;                         // what the agent of the node reports
//! scene.reaches("a", "before-drain").await;
//! ```
//!
//! The test plays the agents, the kubelets and the machines.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Event, Node, Pod as ClusterPod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tagboat_api::{NodePool, crds};
use tokio::sync::OnceCell;

use crate::controller::pod::get;
use crate::support::api_server::{ApiServer, Cluster};
use crate::support::eventually::eventually;
use crate::support::process_reaper::ProcessReaper;
use crate::support::program::tagboat;
use crate::support::workloads::{Controllers, WorkloadCluster};

/// The roles of a program that updates nodes.
pub(in crate::nodes) const ROLES: [&str; 4] =
    ["rbac/cluster-role.yaml", "rbac/role.yaml", "nodes/cluster-role.yaml", "nodes/role.yaml"];

/// The arguments of the program.
pub(in crate::nodes) const ARGUMENTS: [&str; 6] = [
    "controller",
    "--watch-all-namespaces=false",
    "--controllers=automation",
    "--health-addr=0",
    "--allow-local-addresses",
    "--tag-resolution-interval=5s",
];

/// The image of a version.
pub(in crate::nodes) fn image(version: &str) -> String {
    format!("registry.example/os@{}", digest(version))
}

/// The digest of a version of one digit.
pub(in crate::nodes) fn digest(version: &str) -> String {
    format!("sha256:{}", version.repeat(64))
}

/// A server with its controllers and the program, which all scenes share.
struct Shared {
    server: Arc<ApiServer>,
    metrics: String,
    _controllers: Controllers,
    _program: ProcessReaper,
}

/// Nodes of a test's own, and their pools.
pub(in crate::nodes) struct NodeScene {
    workloads: WorkloadCluster,
    /// The address of the metrics of the program.
    pub(in crate::nodes) metrics: String,
}

/// Starts a server with the kind NodePool, and the controllers of its workloads.
pub(in crate::nodes) fn start_server(name: &str) -> (Arc<ApiServer>, Controllers) {
    let server = Arc::new(ApiServer::shared().start_beside(name));
    server.install(&[crds::nodes()]);
    let controllers = Controllers::start(&server);
    (server, controllers)
}

async fn shared() -> &'static Shared {
    static SHARED: OnceCell<Shared> = OnceCell::const_new();
    SHARED
        .get_or_init(async || {
            let (server, controllers) = start_server("nodes");
            let cluster = Cluster::on(server.clone()).await;
            let token = cluster.token_with_roles(&ROLES).await;
            let kubeconfig: PathBuf = server.directory().join("tagboat.kubeconfig");
            std::fs::write(&kubeconfig, server.access().kubeconfig(&token, cluster.namespace())).unwrap();
            let mut program = tagboat();
            let metrics = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
            program.args(ARGUMENTS).arg(format!("--metrics-addr={metrics}"));
            program.env("KUBECONFIG", &kubeconfig).env("RUNTIME_NAMESPACE", cluster.namespace());
            program.env("TMPDIR", server.directory());
            let program = ProcessReaper::start(&program).unwrap();
            Shared { server, metrics, _controllers: controllers, _program: program }
        })
        .await
}

impl NodeScene {
    /// Makes a scene on the server and with the program that all tests share.
    pub(in crate::nodes) async fn new() -> Self {
        let Shared { server, metrics, .. } = shared().await;
        Self::on(server.clone(), metrics).await
    }

    /// Makes a scene on a server of the test's own.
    pub(in crate::nodes) async fn on(server: Arc<ApiServer>, metrics: &str) -> Self {
        Self { workloads: WorkloadCluster::on(server).await, metrics: metrics.to_owned() }
    }

    pub(in crate::nodes) fn cluster(&self) -> &Cluster {
        self.workloads.cluster()
    }

    /// Returns the name of a node or a pool in the cluster.
    pub(in crate::nodes) fn full(&self, name: &str) -> String {
        format!("{}-{name}", self.cluster().namespace())
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.workloads.client())
    }

    pub(in crate::nodes) fn pools(&self) -> Api<NodePool> {
        Api::all(self.workloads.client())
    }

    pub(in crate::nodes) fn pods(&self) -> Api<ClusterPod> {
        Api::default_namespaced(self.workloads.client())
    }

    /// Adds ready nodes without taints.
    pub(in crate::nodes) async fn add_nodes(&self, names: &[&str]) {
        for name in names {
            self.workloads.add_node(name).await;
            self.set_ready(name, true, "boot-1").await;
        }
    }

    /// Reports the condition and the boot of a node, as its kubelet does.
    pub(in crate::nodes) async fn set_ready(&self, name: &str, is_ready: bool, boot_id: &str) {
        let unknown = ["machineID", "systemUUID", "kernelVersion", "osImage", "containerRuntimeVersion"];
        let more = ["kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture"];
        let mut info: serde_json::Map<String, Value> =
            unknown.iter().chain(&more).map(|key| ((*key).to_owned(), json!("x"))).collect();
        info.insert("bootID".to_owned(), json!(boot_id));
        let status = if is_ready { "True" } else { "Unknown" };
        let conditions = json!([{"type": "Ready", "status": status}]);
        let patch = Patch::Merge(json!({"status": {"conditions": conditions, "nodeInfo": info}}));
        self.nodes().patch_status(&self.full(name), &PatchParams::default(), &patch).await.unwrap();
    }

    /// Creates a pool of the nodes of this scene.
    pub(in crate::nodes) async fn create_pool(&self, name: &str, spec: &Value) {
        let all = json!({"matchLabels": self.workloads.node_selector()});
        self.create_pool_of(name, spec, all).await;
    }

    /// Creates a pool of the nodes of a selector.
    pub(in crate::nodes) async fn create_pool_of(&self, name: &str, spec: &Value, selector: Value) {
        let mut spec = spec.clone();
        spec["nodeSelector"] = selector;
        let pool = json!({
            "apiVersion": "tagboat.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": self.full(name)},
            "spec": spec,
        });
        self.pools().create(&PostParams::default(), &serde_json::from_value(pool).unwrap()).await.unwrap();
    }

    pub(in crate::nodes) async fn patch_pool(&self, name: &str, patch: &Value) {
        self.pools().patch(&self.full(name), &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(in crate::nodes) async fn delete_pool(&self, name: &str) {
        self.pools().delete(&self.full(name), &DeleteParams::default()).await.unwrap();
    }

    pub(in crate::nodes) async fn node(&self, name: &str) -> Node {
        self.nodes().get(&self.full(name)).await.unwrap()
    }

    /// Returns the labels and annotations of Tagboat, and whether the node is cordoned.
    pub(in crate::nodes) async fn keys(&self, name: &str) -> (BTreeMap<String, String>, bool) {
        let node = self.node(name).await;
        let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default();
        let all = node.labels().iter().chain(node.annotations());
        let own = all.filter(|(key, _)| key.starts_with("tagboat.dev/") || key.contains("karpenter"));
        (own.map(|(key, value)| (key.clone(), value.clone())).collect(), cordoned)
    }

    /// Sets labels and annotations of a node; null removes one.
    pub(in crate::nodes) async fn mark(&self, name: &str, labels: Value, annotations: Value) {
        let patch = json!({"metadata": {"labels": labels, "annotations": annotations}});
        self.nodes().patch(&self.full(name), &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Cordons a node, as a user does.
    pub(in crate::nodes) async fn cordon(&self, name: &str) {
        let patch = Patch::Merge(json!({"spec": {"unschedulable": true}}));
        self.nodes().patch(&self.full(name), &PatchParams::default(), &patch).await.unwrap();
    }

    /// Taints a node with an effect that no pod of a test feels.
    pub(in crate::nodes) async fn taint(&self, name: &str, key: &str) {
        let taint = json!({"key": format!("example.com/{key}"), "effect": "PreferNoSchedule"});
        let patch = Patch::Merge(json!({"spec": {"taints": [taint]}}));
        self.nodes().patch(&self.full(name), &PatchParams::default(), &patch).await.unwrap();
    }

    /// Returns the value of a metric of the program.
    pub(in crate::nodes) async fn metric(&self, name: &str) -> f64 {
        let text = get(&self.metrics, "metrics").await;
        let found = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        found.unwrap_or_else(|| panic!("{name} is not in\n{text}"))
    }

    /// Waits until a node has a stage.
    pub(in crate::nodes) async fn reaches(&self, name: &str, stage: &str) {
        eventually(&format!("{name} is {stage}"), async || {
            self.keys(name).await.0.get("tagboat.dev/state").is_some_and(|found| found == stage)
        })
        .await;
    }

    /// Reports an image as staged, once the node wants it.
    pub(in crate::nodes) async fn stage(&self, name: &str, version: &str) {
        eventually(&format!("{name} wants {version}"), async || {
            let wanted = self.keys(name).await.0.get("tagboat.dev/desired-image").cloned();
            wanted.is_some_and(|wanted| wanted.ends_with(&digest(version)))
        })
        .await;
        let staged = json!({"tagboat.dev/staged-digest": digest(version)});
        self.mark(name, json!({"tagboat.dev/agent": "update-staged"}), staged).await;
    }

    /// Acknowledges the approval of an image, and boots it.
    pub(in crate::nodes) async fn reboot(&self, name: &str, version: &str) {
        self.acknowledge(name, version).await;
        self.set_ready(name, false, "boot-1").await;
        self.boot(name, version).await;
    }

    pub(in crate::nodes) async fn acknowledge(&self, name: &str, version: &str) {
        let attempted = json!({"tagboat.dev/attempted": format!("{} boot-1", digest(version))});
        self.mark(name, json!({"tagboat.dev/agent": "rebooting"}), attempted).await;
    }

    /// Boots an image under another boot ID.
    pub(in crate::nodes) async fn boot(&self, name: &str, version: &str) {
        let booted = json!({"tagboat.dev/booted-digest": digest(version), "tagboat.dev/staged-digest": null});
        self.mark(name, json!({"tagboat.dev/agent": "up-to-date"}), booted).await;
        self.set_ready(name, true, &format!("boot-{version}-{name}")).await;
    }

    /// Waits for the status and the reason of a condition, and returns its message.
    pub(in crate::nodes) async fn condition(&self, pool: &str, type_: &str, expected: &str) -> String {
        let mut message = String::new();
        let mut seen = String::new();
        let condition = async || {
            let pool = self.pools().get(&self.full(pool)).await.unwrap();
            let conditions = pool.status.map(|status| status.conditions).unwrap_or_default();
            let found = conditions.into_iter().find(|condition| condition.type_ == type_);
            found.map(|found| (format!("{} {}", found.status, found.reason), found.message))
        };
        for _ in 0..900 {
            if let Some((found, text)) = condition().await {
                if found == expected {
                    return text;
                }
                (seen, message) = (found, text);
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        panic!("{pool}: {type_} is {seen}: {message}");
    }

    /// Returns the events of a pool as `REASON MESSAGE`, sorted.
    pub(in crate::nodes) async fn events(&self, pool: &str) -> Vec<String> {
        let api: Api<Event> = Api::namespaced(self.workloads.client(), "default");
        let fields = format!("involvedObject.kind=NodePool,involvedObject.name={}", self.full(pool));
        let events = api.list(&ListParams::default().fields(&fields)).await.unwrap();
        let text = |event: Event| {
            format!("{} {}", event.reason.unwrap_or_default(), event.message.unwrap_or_default())
                .replace(&self.full(""), "")
        };
        let mut found: Vec<String> = events.items.into_iter().map(text).collect();
        found.sort();
        found
    }

    /// Creates a pod on a node.
    pub(in crate::nodes) async fn create_pod(&self, name: &str, node: &str, labels: Value) {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
            "spec": {"nodeName": self.full(node), "containers": [{"name": "main", "image": "app:1"}]},
        });
        self.pods().create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        eventually("the pod is ready", async || {
            let status = self.pods().get(name).await.unwrap().status.unwrap_or_default();
            let mut conditions = status.conditions.into_iter().flatten();
            conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
        })
        .await;
    }
}
