//! The part of a cluster with controllers that one test uses.

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::support::api_server::{ApiServer, Cluster};

use super::controllers::Controllers;
use super::install_kinds;
use super::kubelet::Kubelet;

/// A namespace whose workloads run.
pub(crate) struct WorkloadCluster {
    cluster: Cluster,
    kubelet: Kubelet,
}

impl WorkloadCluster {
    /// Creates a namespace on the server with controllers that all tests share.
    pub(crate) async fn new() -> Self {
        Self::on(shared()).await
    }

    /// Creates a namespace on a server of the test's own, which has controllers.
    pub(crate) async fn on(server: Arc<ApiServer>) -> Self {
        Self::of(Cluster::on(server).await)
    }

    /// Starts a scheduler and kubelet for a namespace of a server that has controllers.
    pub(crate) fn of(cluster: Cluster) -> Self {
        let kubelet = Kubelet::start(cluster.client(), cluster.namespace());
        Self { cluster, kubelet }
    }

    /// The namespace, clients and kubeconfigs.
    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// A client of the administrator.
    pub(crate) fn client(&self) -> Client {
        self.cluster.client()
    }

    /// The scheduler and kubelet of the namespace.
    pub(crate) fn kubelet(&self) -> &Kubelet {
        &self.kubelet
    }

    /// The node selector of the test's own nodes.
    /// DaemonSets of other tests must not run on them.
    pub(crate) fn node_selector(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("tests/namespace".to_owned(), self.cluster.namespace().to_owned())])
    }

    /// Adds a node without taints.
    pub(crate) async fn add_node(&self, name: &str) {
        let name = format!("{}-{name}", self.cluster.namespace());
        let nodes: Api<Node> = Api::all(self.client());
        let labels = Some(self.node_selector());
        let metadata = ObjectMeta { name: Some(name.clone()), labels, ..ObjectMeta::default() };
        let node = Node { metadata, ..Node::default() };
        nodes.create(&PostParams::default(), &node).await.unwrap();
        // The API server taints each new node, until a controller finds it ready.
        let ready = Patch::Merge(json!({"spec": {"taints": null}}));
        nodes.patch(&name, &PatchParams::default(), &ready).await.unwrap();
    }
}

/// The server with controllers, beside that of `Cluster::new()`.
fn shared() -> Arc<ApiServer> {
    static SHARED: OnceLock<Option<(Arc<ApiServer>, Controllers)>> = OnceLock::new();
    // The first test reports the failed start; the others do not try it again.
    let shared = SHARED.get_or_init(|| {
        catch_unwind(|| {
            let server = Arc::new(ApiServer::shared().start_beside("workloads"));
            install_kinds(&server);
            let controllers = Controllers::start(&server);
            (server, controllers)
        })
        .ok()
    });
    let (server, _) = shared.as_ref().expect("the API server starts: see the test that failed first");
    Arc::clone(server)
}
