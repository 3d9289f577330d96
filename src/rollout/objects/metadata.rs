//! The metadata of a watched object, without what is not in use.
//!
//! Managed fields and the applied manifest in an annotation are often half of an object.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The kept labels: the ownership marks of Helm, Flux and Argo CD.
pub const KEPT_LABELS: [&str; 5] = [
    "app.kubernetes.io/instance",
    "helm.toolkit.fluxcd.io/name",
    "helm.toolkit.fluxcd.io/namespace",
    "kustomize.toolkit.fluxcd.io/name",
    "kustomize.toolkit.fluxcd.io/namespace",
];

/// The kept annotations: Argo CD's ownership mark, and its switch that suspends an Application.
pub const KEPT_ANNOTATIONS: [&str; 2] = [SKIP_RECONCILE, "argocd.argoproj.io/tracking-id"];

/// The annotation that suspends an Argo CD Application.
pub const SKIP_RECONCILE: &str = "argocd.argoproj.io/skip-reconcile";

/// The fields of the metadata that are in use.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ThinMetadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, Value>>,
    annotations: Option<BTreeMap<String, Value>>,
    owner_references: Value,
}

/// Deserializes the metadata of an object, without what is not in use.
pub(super) fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let thin = ThinMetadata::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: thin.name,
        namespace: thin.namespace,
        uid: thin.uid,
        resource_version: thin.resource_version,
        generation: thin.generation,
        creation_timestamp: thin.creation_timestamp,
        deletion_timestamp: thin.deletion_timestamp,
        labels: kept(thin.labels, &KEPT_LABELS),
        annotations: kept(thin.annotations, &KEPT_ANNOTATIONS),
        owner_references: controller(thin.owner_references).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    })
}

/// Returns the owner reference of the object's controller.
fn controller(references: Value) -> Option<OwnerReference> {
    let Value::Array(references) = references else { return None };
    let controller = references.into_iter().find(|owner| owner["controller"] == Value::Bool(true))?;
    serde_json::from_value(controller).ok()
}

fn kept(found: Option<BTreeMap<String, Value>>, keys: &[&str]) -> Option<BTreeMap<String, String>> {
    let found = found?.into_iter().filter(|(key, _)| keys.contains(&key.as_str()));
    let texts = found.filter_map(|(key, value)| Some((key, value.as_str()?.to_owned())));
    Some(texts.collect::<BTreeMap<_, _>>()).filter(|kept| !kept.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Deployment;

    #[test]
    fn only_keys_in_use_are_kept() {
        let object = json!({"metadata": {
            "name": "podinfo", "namespace": "apps", "uid": "u", "resourceVersion": "7", "generation": 4,
            "creationTimestamp": "2026-11-02T10:00:00Z",
            "labels": {"app": "podinfo", "helm.toolkit.fluxcd.io/name": "podinfo", "app.kubernetes.io/instance": 7},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{…}"},
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
            "ownerReferences": "malformed",
        }});
        let metadata = serde_json::from_value::<Deployment>(object).unwrap().metadata;
        assert_eq!(
            metadata.labels.unwrap().into_iter().collect::<Vec<_>>(),
            [("helm.toolkit.fluxcd.io/name".to_owned(), "podinfo".to_owned())]
        );
        assert_eq!(
            (metadata.annotations, metadata.managed_fields, metadata.generation),
            (None, None, Some(4))
        );
        assert_eq!((metadata.name.as_deref(), metadata.owner_references), (Some("podinfo"), None));
    }

    #[test]
    fn of_the_owners_only_the_controller_is_kept() {
        let owner = |kind: &str, controller: bool| json!({"apiVersion": "batch/v1", "kind": kind, "name": "a", "uid": "u", "controller": controller});
        for (owners, expected) in [
            (json!([owner("Backup", false), owner("CronJob", true)]), Some("CronJob")),
            (json!([owner("Backup", false)]), None),
            (json!([{"controller": true, "kind": 7}, owner("CronJob", true)]), None),
            (json!([]), None),
            (json!(null), None),
        ] {
            let object = json!({"metadata": {"name": "a", "ownerReferences": owners}});
            let metadata = serde_json::from_value::<Deployment>(object).unwrap().metadata;
            let kept = metadata.owner_references.unwrap_or_default();
            assert_eq!(kept.first().map(|owner| owner.kind.as_str()), expected, "{owners}");
        }
    }
}
