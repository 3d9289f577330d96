//! Evictions of pods of a real Deployment, under budgets that a real controller computes.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tagboat::objects::cluster::{ApiGuard, ClusterError, Eviction, EvictionTarget, evict};

use crate::support::api_server::apply;
use crate::support::eventually::eventually;
use crate::support::workloads::WorkloadCluster;

fn budget(name: &str, available: u32) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
        "spec": {"minAvailable": available, "selector": {"matchLabels": {"app": "db"}}},
    })
}

/// A Deployment of two ready pods, and one of its pods.
async fn two_pods(cluster: &WorkloadCluster) -> Pod {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "db"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [{"name": "db", "image": "db:1.0.0"}]},
            },
        },
    });
    apply(&cluster.client(), &deployment, false).await.unwrap();
    let api: Api<Deployment> = Api::default_namespaced(cluster.client());
    eventually("both pods are ready", async || {
        api.get("db").await.unwrap().status.and_then(|status| status.ready_replicas) == Some(2)
    })
    .await;
    pods(cluster).list(&ListParams::default()).await.unwrap().items.remove(0)
}

fn pods(cluster: &WorkloadCluster) -> Api<Pod> {
    Api::default_namespaced(cluster.client())
}

/// Creates a budget, and waits until its controller has computed it.
async fn create_budget(cluster: &WorkloadCluster, name: &str, available: u32) {
    apply(&cluster.client(), &budget(name, available), false).await.unwrap();
    let api: Api<PodDisruptionBudget> = Api::default_namespaced(cluster.client());
    eventually("the budget is computed", async || {
        let status = api.get(name).await.unwrap().status;
        status.is_some_and(|status| status.expected_pods == 2 && status.current_healthy == 2)
    })
    .await;
}

async fn evict_pod(cluster: &WorkloadCluster, name: &str, uid: &str) -> Result<Eviction, ClusterError> {
    let target =
        EvictionTarget { namespace: cluster.cluster().namespace(), name, uid, grace_period: Some(0) };
    evict(cluster.cluster().client_without_retries(), &ApiGuard::default(), target).await
}

#[tokio::test]
async fn a_budget_blocks_an_eviction_until_it_is_relaxed() {
    let cluster = WorkloadCluster::new().await;
    let pod = two_pods(&cluster).await;
    let (name, uid) = (pod.name_any(), pod.uid().unwrap());
    create_budget(&cluster, "quorum", 2).await;
    let Eviction::Blocked { message, retry_after } = evict_pod(&cluster, &name, &uid).await.unwrap() else {
        panic!("the budget allows no eviction")
    };
    assert!(message.contains("quorum needs 2 healthy pods and has 2 currently"), "{message}");
    assert!((1..=60).contains(&retry_after.as_secs()), "{retry_after:?}");
    assert!(pods(&cluster).get(&name).await.unwrap().metadata.deletion_timestamp.is_none());

    let api: Api<PodDisruptionBudget> = Api::default_namespaced(cluster.client());
    let relaxed = Patch::Merge(json!({"spec": {"minAvailable": 1}}));
    api.patch("quorum", &PatchParams::default(), &relaxed).await.unwrap();
    eventually("the eviction is accepted", async || {
        evict_pod(&cluster, &name, &uid).await.unwrap() == Eviction::Accepted
    })
    .await;
    eventually("the pod is gone", async || pods(&cluster).get_opt(&name).await.unwrap().is_none()).await;
    assert_eq!(evict_pod(&cluster, &name, &uid).await.unwrap(), Eviction::Accepted, "it is gone already");
}

#[tokio::test]
async fn two_budgets_of_a_pod_are_an_error_with_the_reason() {
    let cluster = WorkloadCluster::new().await;
    let pod = two_pods(&cluster).await;
    create_budget(&cluster, "one", 1).await;
    create_budget(&cluster, "two", 1).await;
    let error = evict_pod(&cluster, &pod.name_any(), &pod.uid().unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("more than one PodDisruptionBudget"), "{error}");
    assert!(error.is_transient());
}

#[tokio::test]
async fn another_pod_of_the_name_is_not_evicted() {
    let cluster = WorkloadCluster::new().await;
    let pod = two_pods(&cluster).await;
    assert_eq!(evict_pod(&cluster, &pod.name_any(), "another").await.unwrap(), Eviction::Accepted);
    let same = pods(&cluster).get(&pod.name_any()).await.unwrap();
    assert!(same.metadata.deletion_timestamp.is_none());
}
