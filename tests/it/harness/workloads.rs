//! The cluster of the workload tests, and a second cluster beside it.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tagboat::rollout::objects::{Application, ArgoRollout, Canary, HelmRelease, Kustomization};

use crate::support::api_server::{ApiServer, Cluster, apply};
use crate::support::eventually::eventually;
use crate::support::workloads::{Controllers, Ended, PodState, WorkloadCluster, install_kinds};

fn deployment(replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "podinfo"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "podinfo"}},
            "template": {
                "metadata": {"labels": {"app": "podinfo"}},
                "spec": {"containers": [{"name": "podinfo", "image": "podinfo:1.0.0"}]},
            },
        },
    })
}

async fn ready_replicas(client: &Client) -> i32 {
    let api: Api<Deployment> = Api::default_namespaced(client.clone());
    let status = api.get("podinfo").await.unwrap().status;
    status.and_then(|status| status.ready_replicas).unwrap_or_default()
}

#[tokio::test]
async fn pods_are_scheduled_run_and_end() {
    let cluster = WorkloadCluster::new().await;
    let client = cluster.client();
    apply(&client, &deployment(2), false).await.unwrap();
    eventually("two pods are ready", async || ready_replicas(&client).await == 2).await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let one = pods.list(&ListParams::default()).await.unwrap().items.remove(0);
    assert_eq!(one.spec.as_ref().unwrap().node_name.as_deref(), Some("any"));
    cluster.kubelet().set_pod(&one.name_any(), PodState::Unready);
    eventually("one pod is not ready", async || ready_replicas(&client).await == 1).await;

    // The garbage collector deletes the pods with their owner, and the kubelet ends them.
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    deployments.delete("podinfo", &DeleteParams::background()).await.unwrap();
    eventually("no pod is left", async || pods.list(&ListParams::default()).await.unwrap().items.is_empty())
        .await;
}

#[tokio::test]
async fn the_server_accepts_each_state_of_a_pod() {
    let cluster = WorkloadCluster::new().await;
    let ended = Ended { exit_code: 137, reason: "OOMKilled", restarts: 2 };
    let states = [
        (PodState::Unschedulable("no node has room".to_owned()), "Pending Unschedulable"),
        (PodState::Starting, "Pending ContainerCreating"),
        (PodState::waiting("ErrImagePull", "not found"), "Pending ErrImagePull"),
        (PodState::Ready, "Running ready"),
        (PodState::Unready, "Running"),
        (PodState::BackOff(ended.clone()), "Running CrashLoopBackOff"),
        (PodState::Restarted(ended), "Running"),
        (PodState::Failed(3), "Failed Error"),
    ];
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let pod = |image: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": image},
            "spec": {"containers": [{"name": "podinfo", "image": image}]}})
    };
    // A pod that has a node keeps it.
    cluster.kubelet().set_image("podinfo", states[0].0.clone());
    for image in ["podinfo", "job"] {
        apply(&cluster.client(), &pod(image), false).await.unwrap();
    }
    // One pod takes one state after the other, and its last is final.
    for (state, expected) in states {
        cluster.kubelet().set_image("podinfo", state);
        eventually(expected, async || summary(&pods.get("podinfo").await.unwrap()) == expected).await;
    }
    cluster.kubelet().set_image("job", PodState::Succeeded);
    eventually("success", async || summary(&pods.get("job").await.unwrap()) == "Succeeded Completed").await;
}

/// The phase of a pod, and the reason or the readiness of its container.
fn summary(pod: &Pod) -> String {
    let status = pod.status.as_ref().unwrap();
    let container = status.container_statuses.iter().flatten().next();
    let detail = container.and_then(|container| {
        let state = container.state.as_ref().unwrap();
        let waiting = state.waiting.as_ref().and_then(|waiting| waiting.reason.clone());
        let ended = state.terminated.as_ref().and_then(|ended| ended.reason.clone());
        waiting.or(ended).or(container.ready.then(|| "ready".to_owned()))
    });
    let scheduled = status.conditions.iter().flatten().find(|condition| condition.type_ == "PodScheduled");
    let detail = detail.or_else(|| scheduled.and_then(|scheduled| scheduled.reason.clone()));
    format!("{} {}", status.phase.as_deref().unwrap(), detail.unwrap_or_default()).trim_end().to_owned()
}

#[tokio::test]
async fn a_daemon_set_runs_on_the_nodes_of_its_test() {
    let (cluster, other) = (WorkloadCluster::new().await, WorkloadCluster::new().await);
    for (cluster, node) in [(&cluster, "one"), (&cluster, "two"), (&other, "one")] {
        cluster.add_node(node).await;
    }
    let client = cluster.client();
    let daemon_set = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"nodeSelector": cluster.node_selector(),
                    "containers": [{"name": "agent", "image": "agent:1.0.0"}]},
            },
        },
    });
    apply(&client, &daemon_set, false).await.unwrap();
    let sets: Api<DaemonSet> = Api::default_namespaced(client.clone());
    eventually("both nodes have a ready pod", async || {
        let status = sets.get("agent").await.unwrap().status;
        status.is_some_and(|status| (status.desired_number_scheduled, status.number_ready) == (2, 2))
    })
    .await;
}

#[tokio::test]
async fn a_deleted_namespace_is_removed_with_its_objects() {
    let cluster = WorkloadCluster::new().await;
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    let name = cluster.cluster().namespace();
    namespaces.delete(name, &DeleteParams::default()).await.unwrap();
    eventually("the namespace is gone", async || namespaces.get_opt(name).await.unwrap().is_none()).await;
}

/// Writes the status, and reads the object as Tagboat does.
async fn kept<K>(client: &Client, document: Value) -> K
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let mut object = document.clone();
    object["metadata"] = json!({"name": "podinfo"});
    object["spec"] = document["spec"].clone();
    let status = object.as_object_mut().unwrap().remove("status").unwrap();
    let made = apply(client, &object, false).await.unwrap();
    assert_eq!(made.data["status"], Value::Null);
    let api: Api<K> = Api::default_namespaced(client.clone());
    let patch = Patch::Merge(json!({"status": status}));
    api.patch_status("podinfo", &PatchParams::default(), &patch).await.unwrap();
    api.get("podinfo").await.unwrap()
}

#[tokio::test]
async fn kinds_without_a_controller_are_kept_as_tests_write_them() {
    let cluster = WorkloadCluster::new().await;
    let client = &cluster.client();
    let kustomization: Kustomization = kept(
        client,
        json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "spec": {"path": "./apps"}, "status": {"lastAppliedRevision": "main@sha1:abc"}}),
    )
    .await;
    let applied = kustomization.status.get().unwrap().last_applied_revision.clone();
    assert_eq!(applied.as_deref(), Some("main@sha1:abc"));
    let release: HelmRelease = kept(
        client,
        json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "spec": {},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
    )
    .await;
    assert!(release.status.get().unwrap().conditions[0].is_true());
    let application: Application = kept(
        client,
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "spec": {"source": {"repoURL": "https://git.example/a", "path": "apps"}},
            "status": {"health": {"status": "Healthy"}}}),
    )
    .await;
    assert_eq!(application.status.get().unwrap().health.status.as_deref(), Some("Healthy"));
    let rollout: ArgoRollout = kept(
        client,
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "spec": {"replicas": 5},
            "status": {"phase": "Healthy"}}),
    )
    .await;
    assert_eq!(rollout.status.get().unwrap().phase.as_deref(), Some("Healthy"));
    let canary: Canary = kept(
        client,
        json!({"apiVersion": "flagger.app/v1beta1", "kind": "Canary",
            "spec": {"targetRef": {"kind": "Deployment", "name": "podinfo"}}, "status": {"phase": "Initialized"}}),
    )
    .await;
    assert_eq!(canary.status.get().unwrap().phase.as_deref(), Some("Initialized"));
}

#[tokio::test]
async fn a_second_cluster_has_its_own_objects_controllers_and_outages() {
    let first = Arc::new(ApiServer::start());
    let second = Arc::new(first.start_beside("second"));
    install_kinds(&second);
    let _controllers = Controllers::start(&second);
    let here = Cluster::on(Arc::clone(&first)).await;
    let there = WorkloadCluster::on(Arc::clone(&second)).await;
    for client in [here.client(), there.client()] {
        apply(&client, &deployment(1), false).await.unwrap();
    }
    eventually("the pod runs in the second cluster", async || ready_replicas(&there.client()).await == 1)
        .await;
    assert_eq!(ready_replicas(&here.client()).await, 0);

    let note: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "note"}, "data": {"in": "the first"}})).unwrap();
    let of_first: Api<ConfigMap> = Api::default_namespaced(here.client());
    of_first.create(&PostParams::default(), &note).await.unwrap();
    let of_second: Api<ConfigMap> = Api::default_namespaced(there.client());
    assert_eq!(of_second.get_opt("note").await.unwrap(), None);

    second.stop();
    assert!(of_second.get_opt("note").await.is_err());
    of_first.get("note").await.unwrap();
    second.resume();
    assert_eq!(of_second.get_opt("note").await.unwrap(), None);
    cluster_scales(&there, 3).await;
}

/// Waits until the controllers answer a change.
async fn cluster_scales(cluster: &WorkloadCluster, replicas: i32) {
    apply(&cluster.client(), &deployment(replicas), false).await.unwrap();
    eventually("the Deployment is scaled", async || ready_replicas(&cluster.client()).await == replicas)
        .await;
}
