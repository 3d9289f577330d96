//! Manifests of workloads, and changes to them and their pods.

use std::fmt::Debug;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::api_server::apply;
use crate::support::eventually::eventually_found;
use crate::support::workloads::WorkloadCluster;

/// A pod template with an image, such as `podinfo:1.0.0`.
pub(super) fn template(image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "podinfo"}},
        "spec": {"containers": [{"name": "podinfo", "image": image}]},
    })
}

/// A workload with the name and the label `podinfo`, and further fields of its spec.
pub(super) fn workload(kind: &str, image: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "podinfo"},
        "spec": {"selector": {"matchLabels": {"app": "podinfo"}}, "template": template(image)},
    });
    merge(&mut object["spec"], spec);
    object
}

/// A Job `podinfo`, whose pods do not restart, with further fields of its spec.
pub(super) fn job(spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "podinfo"},
        "spec": {"template": template("podinfo:1.0.0")},
    });
    object["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
    merge(&mut object["spec"], spec);
    object
}

fn merge(object: &mut Value, fields: Value) {
    let Value::Object(fields) = fields else { panic!("no fields: {fields}") };
    object.as_object_mut().expect("an object").extend(fields);
}

/// Returns the names of all pods.
pub(super) async fn names(pods: &Api<Pod>) -> Vec<String> {
    pods.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect()
}

/// Deletes one of some pods, and waits until another is ready in its place.
pub(super) async fn replace_one(pods: &Api<Pod>, count: usize) {
    let deleted = names(pods).await.remove(0);
    pods.delete(&deleted, &DeleteParams::default()).await.unwrap();
    eventually_found("another pod is ready", async || {
        let ready = pods.list(&ListParams::default()).await.unwrap().items.into_iter().filter(is_ready);
        let ready: Vec<String> = ready.map(|pod| pod.name_any()).collect();
        (ready.len() == count && !ready.contains(&deleted)).then_some(())
    })
    .await;
}

fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Creates an object.
pub(super) async fn create(cluster: &WorkloadCluster, document: &Value) {
    apply(&cluster.client(), document, false).await.unwrap();
}

/// Changes the spec of `podinfo` by a merge patch.
pub(super) async fn change<K>(cluster: &WorkloadCluster, spec: Value)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    let api: Api<K> = Api::default_namespaced(cluster.client());
    let patch = Patch::Merge(json!({"spec": spec}));
    api.patch("podinfo", &PatchParams::default(), &patch).await.unwrap();
}

/// Changes the image of `podinfo`.
pub(super) async fn set_image<K>(cluster: &WorkloadCluster, image: &str)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    change::<K>(cluster, json!({"template": template(image)})).await;
}
