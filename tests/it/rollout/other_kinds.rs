//! A ReplicaSet and a pod without an owner, by the rules of kstatus.

use kube::api::Api;
use kube::core::ApiResource;
use serde_json::json;
use tagboat::rollout::assess::kstatus::assess;
use tagboat::rollout::objects::GenericObject;

use super::manifests::{create, template, workload};
use super::observed::summary;
use crate::support::eventually::eventually_found;
use crate::support::workloads::{PodState, WorkloadCluster};

/// Waits until the assessment of `podinfo` is `expected`.
async fn until(cluster: &WorkloadCluster, resource: &ApiResource, expected: &str) {
    let api: Api<GenericObject> = Api::default_namespaced_with(cluster.client(), resource);
    eventually_found(expected, async || {
        let object = api.get("podinfo").await.unwrap();
        (summary(&assess(&object, resource)) == expected).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_replica_set_is_current_when_its_pods_are_available() {
    let cluster = WorkloadCluster::new().await;
    cluster.kubelet().set_image("podinfo:1.0.0", PodState::Starting);
    create(&cluster, &workload("ReplicaSet", "podinfo:1.0.0", json!({"replicas": 2}))).await;
    let resource = ApiResource::erase::<k8s_openapi::api::apps::v1::ReplicaSet>(&());
    until(&cluster, &resource, "in progress 2/2/0 available pods: 0 of 2").await;
    cluster.kubelet().set_image("podinfo:1.0.0", PodState::Ready);
    until(&cluster, &resource, "complete 2/2/2").await;
}

#[tokio::test]
async fn a_pod_is_current_when_it_is_ready() {
    let cluster = WorkloadCluster::new().await;
    cluster.kubelet().set_image("podinfo:1.0.0", PodState::Unschedulable("no node has room".to_owned()));
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "podinfo"}});
    pod["spec"] = template("podinfo:1.0.0")["spec"].clone();
    create(&cluster, &pod).await;
    let resource = ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&());
    until(&cluster, &resource, "in progress 1/1/0 no node has room").await;
    let (reason, message) = ("ImagePullBackOff".to_owned(), "back-off".to_owned());
    cluster.kubelet().set_image("podinfo:1.0.0", PodState::Waiting { reason, message });
    until(&cluster, &resource, "failed 1/1/0 ImagePullBackOff: container podinfo: back-off").await;
    cluster.kubelet().set_image("podinfo:1.0.0", PodState::Unready);
    until(&cluster, &resource, "in progress 1/1/0 the pod is not ready").await;
    cluster.kubelet().set_image("podinfo:1.0.0", PodState::Ready);
    until(&cluster, &resource, "complete 1/1/1").await;
}
