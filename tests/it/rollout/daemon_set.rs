//! DaemonSets that roll out, and get nodes.

use k8s_openapi::api::core::v1::Pod as CorePod;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};
use tagboat::rollout::objects::DaemonSet;

use super::manifests::{create, names, replace_one, template, workload};
use super::observed::Observed;
use crate::support::workloads::{PodState, WorkloadCluster};

/// The spec of a DaemonSet's change: an image on the nodes of the test.
fn on_nodes(cluster: &WorkloadCluster, image: &str) -> Value {
    let mut template = template(image);
    template["spec"]["nodeSelector"] = json!(cluster.node_selector());
    template
}

/// Returns a DaemonSet on two nodes that has rolled out, with a strategy of updates.
async fn rolled_out(cluster: &WorkloadCluster, strategy: &str) -> Observed {
    for node in ["one", "two"] {
        cluster.add_node(node).await;
    }
    let mut podinfo = Observed::start::<DaemonSet>(cluster, "podinfo");
    let template = on_nodes(cluster, "podinfo:1.0.0");
    let spec = json!({"template": template, "updateStrategy": {"type": strategy}});
    create(cluster, &workload("DaemonSet", "podinfo:1.0.0", spec)).await;
    podinfo.only("1.0.0 in progress", "1.0.0 complete 2/2/2").await;
    podinfo
}

async fn set_image(cluster: &WorkloadCluster, image: &str) {
    super::manifests::set_image::<DaemonSet>(cluster, image).await;
}

#[tokio::test]
async fn a_rolling_update_is_complete_when_the_pods_of_all_nodes_are_available() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = rolled_out(&cluster, "RollingUpdate").await;
    cluster.kubelet().set_image("podinfo:2.0.0", PodState::Starting);
    set_image(&cluster, "podinfo:2.0.0").await;
    podinfo.only("2.0.0 in progress", "2.0.0 in progress 2/1/1 pods of the current template: 1 of 2").await;
    cluster.kubelet().set_image("podinfo:2.0.0", PodState::Ready);
    podinfo.only("2.0.0 in progress", "2.0.0 complete 2/2/2").await;
}

#[tokio::test]
async fn a_new_node_changes_only_the_counts() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = rolled_out(&cluster, "RollingUpdate").await;
    cluster.kubelet().set_image("podinfo:1.0.0", PodState::Starting);
    cluster.add_node("three").await;
    podinfo.only("1.0.0 complete", "1.0.0 complete 3/3/").await;
    cluster.kubelet().set_image("podinfo:1.0.0", PodState::Ready);
    podinfo.only("1.0.0 complete", "1.0.0 complete 3/3/3").await;
    let pods: Api<CorePod> = Api::default_namespaced(cluster.client());
    replace_one(&pods, 3).await;
    cluster.add_node("four").await;
    podinfo.only("1.0.0 complete", "1.0.0 complete 4/4/4").await;
}

#[tokio::test]
async fn a_daemon_set_with_on_delete_is_complete_when_no_pod_has_the_old_template() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = rolled_out(&cluster, "OnDelete").await;
    set_image(&cluster, "podinfo:2.0.0").await;
    podinfo.only("2.0.0 in progress", "2.0.0 in progress 2/0/2 pods of the current template: 0 of 2").await;
    let pods: Api<CorePod> = Api::default_namespaced(cluster.client());
    for pod in names(&pods).await {
        pods.delete(&pod, &DeleteParams::default()).await.unwrap();
    }
    podinfo.only("2.0.0 in progress", "2.0.0 complete 2/2/2").await;
}

#[tokio::test]
async fn a_daemon_set_without_nodes_is_complete() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = Observed::start::<DaemonSet>(&cluster, "podinfo");
    let spec = json!({"template": on_nodes(&cluster, "podinfo:1.0.0")});
    create(&cluster, &workload("DaemonSet", "podinfo:1.0.0", spec)).await;
    podinfo.only("1.0.0 in progress", "1.0.0 complete 0/0/0").await;
}
