//! Deployments that roll out, scale, pause, and lose pods.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod as CorePod;
use kube::api::Api;
use serde_json::{Value, json};
use tagboat::rollout::assess::PreviousState;
use tagboat::rollout::assess::deployment::assess;
use tagboat::rollout::objects::{Deployment, find};

use super::manifests::{change, create, names, replace_one, set_image, workload};
use super::observed::Observed;
use crate::support::eventually::eventually_found;
use crate::support::workloads::{PodState, WorkloadCluster};

fn deployment(spec: Value) -> Value {
    workload("Deployment", "podinfo:1.0.0", spec)
}

/// Returns a Deployment of three pods that has rolled out.
async fn rolled_out(cluster: &WorkloadCluster, mut spec: Value) -> Observed {
    let mut podinfo = Observed::start::<Deployment>(cluster, "podinfo");
    spec["replicas"] = json!(3);
    create(cluster, &deployment(spec)).await;
    podinfo.only("1.0.0 in progress", "1.0.0 complete 3/3/3").await;
    podinfo
}

#[tokio::test]
async fn a_rollout_is_complete_when_its_controller_says_so() {
    let (cluster, begin) = (WorkloadCluster::new().await, Timestamp::now());
    let mut podinfo = rolled_out(&cluster, json!({})).await;

    // The condition of the first rollout stays until the controller has seen the second.
    cluster.kubelet().set_image("podinfo:2.0.0", PodState::Starting);
    set_image::<Deployment>(&cluster, "podinfo:2.0.0").await;
    podinfo
        .only("2.0.0 in progress 3/", "2.0.0 in progress 3/1/3 pods of the current template: 1 of 3")
        .await;
    cluster.kubelet().set_image("podinfo:2.0.0", PodState::Ready);
    podinfo.only("2.0.0 in progress 3/", "2.0.0 complete 3/3/3").await;

    let api: Api<Deployment> = Api::default_namespaced(cluster.client());
    let finished = assess(&api.get("podinfo").await.unwrap(), PreviousState::Incomplete).finished.unwrap();
    // The condition has whole seconds.
    assert!(begin - SignedDuration::from_secs(1) < finished && finished <= Timestamp::now(), "{finished}");
}

#[tokio::test]
async fn pods_that_come_and_go_change_only_the_counts_of_a_complete_deployment() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = rolled_out(&cluster, json!({})).await;
    let pods: Api<CorePod> = Api::default_namespaced(cluster.client());
    let one = names(&pods).await.remove(0);
    cluster.kubelet().set_pod(&one, PodState::Unready);
    podinfo.only("1.0.0 complete", "1.0.0 complete 3/3/2").await;
    let api: Api<Deployment> = Api::default_namespaced(cluster.client());
    let unready = api.get("podinfo").await.unwrap();
    let conditions = &unready.status.get().unwrap().conditions;
    assert!(find(conditions, "Available").unwrap().is_false());
    assert!(find(conditions, "Progressing").unwrap().has_reason("NewReplicaSetAvailable"));

    cluster.kubelet().set_pod(&one, PodState::Ready);
    podinfo.only("1.0.0 complete", "1.0.0 complete 3/3/3").await;
    replace_one(&pods, 3).await;
    change::<Deployment>(&cluster, json!({"replicas": 30})).await;
    podinfo.only("1.0.0 complete", "1.0.0 complete 30/30/30").await;
    change::<Deployment>(&cluster, json!({"replicas": 3})).await;
    podinfo.only("1.0.0 complete", "1.0.0 complete 3/3/3").await;
}

#[tokio::test]
async fn a_paused_deployment_is_never_complete() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = rolled_out(&cluster, json!({})).await;
    change::<Deployment>(&cluster, json!({"paused": true})).await;
    set_image::<Deployment>(&cluster, "podinfo:2.0.0").await;
    podinfo.until("2.0.0 in progress 3/0/3 the Deployment is paused").await;
    change::<Deployment>(&cluster, json!({"paused": false})).await;
    podinfo.only("2.0.0 in progress", "2.0.0 complete 3/3/3").await;
}

#[tokio::test]
async fn a_deployment_without_replicas_is_complete_at_once() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = Observed::start::<Deployment>(&cluster, "podinfo");
    create(&cluster, &deployment(json!({"replicas": 0}))).await;
    podinfo.only("nothing", "1.0.0 complete 0/0/0").await;
    set_image::<Deployment>(&cluster, "podinfo:2.0.0").await;
    podinfo.only("1.0.0 complete 0/0/0", "2.0.0 complete 0/0/0").await;
    // A Deployment that is scaled before the controller has seen the image rolls it out.
    let api: Api<Deployment> = Api::default_namespaced(cluster.client());
    eventually_found("the rollout of no pods ends", async || {
        let now = api.get("podinfo").await.unwrap();
        let status = now.status.get().unwrap();
        let progressing = find(&status.conditions, "Progressing")?;
        let is_observed = status.observed_generation == now.metadata.generation;
        (is_observed && progressing.has_reason("NewReplicaSetAvailable")).then_some(())
    })
    .await;
    change::<Deployment>(&cluster, json!({"replicas": 2})).await;
    podinfo.only("2.0.0 complete", "2.0.0 complete 2/2/2").await;
}

#[tokio::test]
async fn the_counts_decide_about_a_deployment_without_a_deadline() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = rolled_out(&cluster, json!({"progressDeadlineSeconds": i32::MAX})).await;
    let api: Api<Deployment> = Api::default_namespaced(cluster.client());
    let complete = api.get("podinfo").await.unwrap();
    assert_eq!(find(&complete.status.get().unwrap().conditions, "Progressing"), None);

    set_image::<Deployment>(&cluster, "podinfo:2.0.0").await;
    podinfo.only("2.0.0 in progress", "2.0.0 complete 3/3/3").await;
    let pods: Api<CorePod> = Api::default_namespaced(cluster.client());
    let one = names(&pods).await.remove(0);
    cluster.kubelet().set_pod(&one, PodState::Unready);
    podinfo.only("2.0.0 complete", "2.0.0 complete 3/3/2").await;
}

/// The same image again, with another template, such as after `kubectl rollout restart`.
#[tokio::test]
async fn a_restart_of_all_pods_is_a_rollout() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = rolled_out(&cluster, json!({})).await;
    let restarted = json!({"template": {"metadata": {"annotations": {"restarted": "now"}}}});
    change::<Deployment>(&cluster, restarted).await;
    podinfo.until("1.0.0 in progress").await;
    podinfo.only("1.0.0 in progress", "1.0.0 complete 3/3/3").await;
}
