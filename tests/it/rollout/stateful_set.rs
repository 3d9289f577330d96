//! StatefulSets that roll out, wait for a user, and lose pods.

use k8s_openapi::api::core::v1::Pod as CorePod;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};
use tagboat::rollout::objects::StatefulSet;

use super::manifests::{change, create, set_image, workload};
use super::observed::Observed;
use crate::support::workloads::{PodState, WorkloadCluster};

/// Returns a StatefulSet of three pods that has rolled out, with a strategy of updates.
async fn rolled_out(cluster: &WorkloadCluster, strategy: Value) -> Observed {
    let mut podinfo = Observed::start::<StatefulSet>(cluster, "podinfo");
    let spec = json!({"replicas": 3, "updateStrategy": strategy});
    create(cluster, &workload("StatefulSet", "podinfo:1.0.0", spec)).await;
    podinfo.only("1.0.0 in progress", "1.0.0 complete 3/3/3").await;
    podinfo
}

async fn delete_pod(cluster: &WorkloadCluster, name: &str) {
    let pods: Api<CorePod> = Api::default_namespaced(cluster.client());
    pods.delete(name, &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn a_rolling_update_is_complete_when_its_last_pod_is_ready() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = rolled_out(&cluster, json!({"type": "RollingUpdate"})).await;
    cluster.kubelet().set_image("podinfo:2.0.0", PodState::Starting);
    set_image::<StatefulSet>(&cluster, "podinfo:2.0.0").await;
    podinfo.only("2.0.0 in progress", "2.0.0 in progress 3/1/2 pods of the current revision: 1 of 3").await;
    cluster.kubelet().set_image("podinfo:2.0.0", PodState::Ready);
    podinfo.only("2.0.0 in progress", "2.0.0 complete 3/3/3").await;
}

#[tokio::test]
async fn pods_that_come_and_go_change_only_the_counts_of_a_complete_set() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = rolled_out(&cluster, json!({"type": "RollingUpdate"})).await;
    cluster.kubelet().set_pod("podinfo-1", PodState::Unready);
    podinfo.only("1.0.0 complete", "1.0.0 complete 3/3/2").await;
    delete_pod(&cluster, "podinfo-1").await;
    cluster.kubelet().set_pod("podinfo-1", PodState::Ready);
    podinfo.only("1.0.0 complete", "1.0.0 complete 3/3/3").await;
    change::<StatefulSet>(&cluster, json!({"replicas": 5})).await;
    podinfo.only("1.0.0 complete", "1.0.0 complete 5/5/5").await;
    change::<StatefulSet>(&cluster, json!({"replicas": 1})).await;
    podinfo.only("1.0.0 complete", "1.0.0 complete 1/1/1").await;
}

/// The revisions are equal again, while a pod still has the other one.
#[tokio::test]
async fn a_set_that_is_rolled_back_waits_for_its_broken_pod() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = rolled_out(&cluster, json!({"type": "RollingUpdate"})).await;
    cluster.kubelet().set_image("podinfo:2.0.0", PodState::waiting("ErrImagePull", "no such image"));
    set_image::<StatefulSet>(&cluster, "podinfo:2.0.0").await;
    podinfo.only("2.0.0 in progress", "2.0.0 in progress 3/1/2 pods of the current revision: 1 of 3").await;
    set_image::<StatefulSet>(&cluster, "podinfo:1.0.0").await;
    podinfo.until("1.0.0 in progress 3/2/2 pods of the current revision: 2 of 3").await;
    // The controller does not replace a pod that is not ready.
    delete_pod(&cluster, "podinfo-2").await;
    podinfo.only("1.0.0 in progress", "1.0.0 complete 3/3/3").await;
}

#[tokio::test]
async fn a_set_with_a_partition_is_complete_when_no_pod_has_the_old_revision() {
    let cluster = WorkloadCluster::new().await;
    let partition = |number: u32| json!({"type": "RollingUpdate", "rollingUpdate": {"partition": number}});
    let mut podinfo = rolled_out(&cluster, partition(2)).await;
    set_image::<StatefulSet>(&cluster, "podinfo:2.0.0").await;
    let waiting = "2.0.0 in progress 3/1/3 pods of the old revision below partition 2: 2";
    podinfo.only("2.0.0 in progress", waiting).await;
    change::<StatefulSet>(&cluster, json!({"updateStrategy": partition(0)})).await;
    podinfo.only("2.0.0 in progress", "2.0.0 complete 3/3/3").await;
}

#[tokio::test]
async fn a_set_with_on_delete_is_complete_when_no_pod_has_the_old_revision() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = rolled_out(&cluster, json!({"type": "OnDelete"})).await;
    set_image::<StatefulSet>(&cluster, "podinfo:2.0.0").await;
    let waiting = "2.0.0 in progress 3/0/3 pods of the old revision, until they are deleted: 3";
    podinfo.only("2.0.0 in progress", waiting).await;
    for pod in ["podinfo-0", "podinfo-1", "podinfo-2"] {
        delete_pod(&cluster, pod).await;
    }
    podinfo.only("2.0.0 in progress", "2.0.0 complete 3/3/3").await;
    cluster.kubelet().set_pod("podinfo-1", PodState::Starting);
    podinfo.only("2.0.0 complete", "2.0.0 complete 3/3/2").await;
    delete_pod(&cluster, "podinfo-1").await;
    cluster.kubelet().set_pod("podinfo-1", PodState::Ready);
    podinfo.only("2.0.0 complete", "2.0.0 complete 3/3/3").await;
}
