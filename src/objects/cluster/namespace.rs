//! The Namespace as the API server has it, without what is not in use.

use kube::Resource;
use kube::core::ObjectMeta;
use serde::Deserialize;
use tagboat_api::settings::PREFIX;

/// A Namespace: its identity, and its annotations of ours.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource)]
#[resource(inherit = k8s_openapi::api::core::v1::Namespace)]
#[serde(from = "WholeNamespace")]
pub struct NamespaceObject {
    /// The name, the UID, the resource version, and the annotations of ours.
    pub metadata: ObjectMeta,
}

/// A Namespace as the API server sends it.
#[derive(Deserialize)]
struct WholeNamespace {
    metadata: ObjectMeta,
}

impl From<WholeNamespace> for NamespaceObject {
    fn from(WholeNamespace { metadata }: WholeNamespace) -> Self {
        let ObjectMeta { name, uid, resource_version, mut annotations, .. } = metadata;
        if let Some(annotations) = &mut annotations {
            annotations.retain(|key, _| key.starts_with(PREFIX));
        }
        Self { metadata: ObjectMeta { name, uid, resource_version, annotations, ..ObjectMeta::default() } }
    }
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_namespace_has_its_identity_and_our_annotations_only() {
        let whole = json!({
            "metadata": {
                "name": "shop", "uid": "u", "resourceVersion": "7",
                "labels": {"team": "a"},
                "annotations": {"tagboat.dev/freeze": "incident", "example.com/note": "x"},
                "managedFields": [{"manager": "kubectl"}],
            },
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        });
        let namespace: NamespaceObject = serde_json::from_value(whole).unwrap();
        let expected = [("tagboat.dev/freeze".to_owned(), "incident".to_owned())].into();
        assert_eq!(namespace.annotations(), &expected);
        let ObjectMeta { name, uid, resource_version, labels, managed_fields, .. } = &namespace.metadata;
        let identity = [name, uid, resource_version].map(Option::as_deref);
        assert_eq!((identity, labels, managed_fields), ([Some("shop"), Some("u"), Some("7")], &None, &None));
    }
}
