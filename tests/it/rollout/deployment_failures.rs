//! Deployments that exceed their deadline or cannot create pods, and recover.

use k8s_openapi::api::core::v1::ResourceQuota;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use tagboat::rollout::objects::Deployment;

use super::manifests::{change, create, set_image, workload};
use super::observed::Observed;
use crate::support::workloads::{PodState, WorkloadCluster};

const EXCEEDED: &str = "2.0.0 failed 3/1/3 ProgressDeadlineExceeded: ReplicaSet \"podinfo-";

/// Returns a Deployment whose second image has exceeded the deadline.
async fn late(cluster: &WorkloadCluster) -> Observed {
    let mut podinfo = Observed::start::<Deployment>(cluster, "podinfo");
    create(cluster, &workload("Deployment", "podinfo:1.0.0", json!({"replicas": 3}))).await;
    podinfo.until("1.0.0 complete 3/3/3").await;
    cluster.kubelet().set_image("podinfo:2.0.0", PodState::waiting("ImagePullBackOff", "no such image"));
    change::<Deployment>(cluster, json!({"progressDeadlineSeconds": 1})).await;
    set_image::<Deployment>(cluster, "podinfo:2.0.0").await;
    podinfo.until(EXCEEDED).await;
    podinfo
}

#[tokio::test]
async fn a_deployment_that_exceeded_its_deadline_recovers() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = late(&cluster).await;
    cluster.kubelet().set_image("podinfo:2.0.0", PodState::Ready);
    podinfo.until("2.0.0 complete 3/3/3").await;
}

/// The condition with the failure stays until the controller has seen the change.
#[tokio::test]
async fn a_failure_is_not_that_of_the_next_image() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = late(&cluster).await;
    change::<Deployment>(&cluster, json!({"progressDeadlineSeconds": 600})).await;
    set_image::<Deployment>(&cluster, "podinfo:3.0.0").await;
    let lines = podinfo.until("3.0.0 complete 3/3/3").await;
    assert!(!lines.iter().any(|line| line.starts_with("3.0.0 failed")), "{lines:#?}");
}

#[tokio::test]
async fn a_deployment_whose_pods_exceed_a_quota_fails_until_it_is_lifted() {
    let cluster = WorkloadCluster::new().await;
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
        "spec": {"hard": {"pods": "0"}},
    });
    create(&cluster, &quota).await;
    // The controller of quotas does not run.
    let quotas: Api<ResourceQuota> = Api::default_namespaced(cluster.client());
    let status = json!({"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}});
    quotas.patch_status("none", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();

    let mut podinfo = Observed::start::<Deployment>(&cluster, "podinfo");
    create(&cluster, &workload("Deployment", "podinfo:1.0.0", json!({"replicas": 2}))).await;
    podinfo.only("1.0.0 in progress", "1.0.0 failed 2/0/0 ReplicaFailure: pods \"podinfo-").await;
    change::<Deployment>(&cluster, json!({"paused": true})).await;
    podinfo.until("1.0.0 in progress 2/0/0 the Deployment is paused").await;
    podinfo.until("1.0.0 failed 2/0/0 ReplicaFailure: pods \"podinfo-").await;

    change::<Deployment>(&cluster, json!({"paused": false, "replicas": 0})).await;
    podinfo.until("1.0.0 complete 0/0/0").await;

    quotas.delete("none", &DeleteParams::default()).await.unwrap();
    change::<Deployment>(&cluster, json!({"replicas": 2})).await;
    podinfo.until("1.0.0 complete 2/2/2").await;
}
