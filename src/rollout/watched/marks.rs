//! The appliers that own an object, by its labels and annotations.
//!
//! Sources: the labels that Flux's kustomize-controller and helm-controller add, and Argo CD's annotation
//! `app:group/Kind:namespace/name`. Argo CD names an Application outside its own namespace `namespace_name` there.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tagboat_api::ObjectName;

use super::{WatchedId, WatchedObject};

/// The name of the applier that owns an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    /// A Kustomization.
    Kustomization(ObjectName),
    /// An Application: its name, or `namespace_name`.
    Application(String),
}

impl Mark {
    /// Returns the marks that name an applier; none for another object.
    #[must_use]
    pub fn of_applier(id: &WatchedId) -> Vec<Self> {
        use super::GroupKind;
        if id.kind == GroupKind::KUSTOMIZATION {
            vec![Self::Kustomization(id.object_name())]
        } else if id.kind == GroupKind::APPLICATION {
            let qualified = format!("{}_{}", id.namespace, id.name);
            vec![Self::Application(id.name.clone()), Self::Application(qualified)]
        } else {
            Vec::new()
        }
    }
}

/// Returns the ownership marks of an object.
///
/// The label `app.kubernetes.io/instance` is one only without the others. Many programs set it, so it counts only
/// if an Application has this name.
#[must_use]
pub fn marks(object: &WatchedObject) -> Vec<Mark> {
    let metadata = object.metadata();
    let kustomization = owner(metadata, "kustomize.toolkit.fluxcd.io").map(Mark::Kustomization);
    let application = tracked(&object.id(), metadata).map(Mark::Application);
    let mut marks: Vec<Mark> = kustomization.into_iter().chain(application).collect();
    if marks.is_empty() {
        let instance = text(metadata.labels.as_ref(), "app.kubernetes.io/instance");
        marks.extend(instance.map(|name| Mark::Application(name.to_owned())));
    }
    marks
}

/// Returns the HelmRelease that owns an object.
#[must_use]
pub fn release(object: &WatchedObject) -> Option<ObjectName> {
    owner(object.metadata(), "helm.toolkit.fluxcd.io")
}

/// Returns the owner in the labels of a controller of Flux.
fn owner(metadata: &ObjectMeta, group: &str) -> Option<ObjectName> {
    let label = |key: &str| text(metadata.labels.as_ref(), &format!("{group}/{key}")).map(str::to_owned);
    Some(ObjectName { namespace: label("namespace")?, name: label("name")? })
}

/// Returns the Application in the tracking annotation, if this names the object itself.
///
/// Controllers copy annotations to the objects that they create; Argo CD ignores such a copy, too.
fn tracked(id: &WatchedId, metadata: &ObjectMeta) -> Option<String> {
    let tracking = text(metadata.annotations.as_ref(), "argocd.argoproj.io/tracking-id")?;
    let (application, object) = tracking.split_once(':')?;
    let (group_kind, name) = object.split_once(':')?;
    let is_own = group_kind.split_once('/') == Some((id.kind.group(), id.kind.kind()))
        && name.split_once('/').is_some_and(|(namespace, name)| {
            name == id.name && (namespace == id.namespace || id.namespace.is_empty())
        });
    (is_own && !application.is_empty()).then(|| application.to_owned())
}

fn text<'m>(texts: Option<&'m BTreeMap<String, String>>, key: &str) -> Option<&'m str> {
    texts?.get(key).map(String::as_str).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::rollout::components::testing::watched;

    fn deployment(labels: &Value, tracking: &Value) -> WatchedObject {
        watched(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "web", "namespace": "shop", "labels": labels,
                "annotations": {"argocd.argoproj.io/tracking-id": tracking},
            },
        }))
    }

    fn application(name: &str) -> Vec<Mark> {
        vec![Mark::Application(name.to_owned())]
    }

    #[test]
    fn the_tracking_annotation_names_an_application_if_it_names_the_object_itself() {
        for (tracking, expected) in [
            ("shop:apps/Deployment:shop/web", application("shop")),
            ("tenants_shop:apps/Deployment:shop/web", application("tenants_shop")),
            // Of another object, from which a controller copied it.
            ("shop:apps/Deployment:shop/other", vec![]),
            ("shop:apps/Deployment:other/web", vec![]),
            ("shop:apps/StatefulSet:shop/web", vec![]),
            ("shop:extensions/Deployment:shop/web", vec![]),
            ("shop:/Deployment:shop/web", vec![]),
            // Malformed.
            (":apps/Deployment:shop/web", vec![]),
            ("shop:apps/Deployment:web", vec![]),
            ("shop:Deployment:shop/web", vec![]),
            ("shop:apps/Deployment:shop/web:more", vec![]),
            ("shop:apps/Deployment", vec![]),
            ("shop", vec![]),
            ("::", vec![]),
            ("", vec![]),
        ] {
            let object = deployment(&json!({}), &json!(tracking));
            assert_eq!(marks(&object), expected, "{tracking}");
            // Without a valid annotation, the label counts.
            let object = deployment(&json!({"app.kubernetes.io/instance": "label"}), &json!(tracking));
            let expected = if expected.is_empty() { application("label") } else { expected };
            assert_eq!(marks(&object), expected, "{tracking} with a label");
        }
        let object = deployment(&json!({}), &json!(7));
        assert_eq!(marks(&object), []);
        let cluster_scoped = watched(json!({
            "apiVersion": "db.example.com/v1", "kind": "Engine",
            "metadata": {
                "name": "main",
                "annotations": {"argocd.argoproj.io/tracking-id": "shop:db.example.com/Engine:shop/main"},
            },
        }));
        assert_eq!(marks(&cluster_scoped), application("shop"));
    }

    #[test]
    fn labels_name_a_kustomization_or_a_release_with_both_name_and_namespace() {
        let key = |group: &str, part: &str| format!("{group}.toolkit.fluxcd.io/{part}");
        for (name, namespace, is_complete) in
            [("apps", "flux-system", true), ("apps", "", false), ("", "flux-system", false)]
        {
            let labels = |group: &str| json!({key(group, "name"): name, key(group, "namespace"): namespace});
            let owner = ObjectName { namespace: namespace.to_owned(), name: name.to_owned() };
            let kustomized = deployment(&labels("kustomize"), &json!(null));
            let expected = is_complete.then(|| Mark::Kustomization(owner.clone()));
            assert_eq!(marks(&kustomized), Vec::from_iter(expected), "{name} {namespace}");
            let released = deployment(&labels("helm"), &json!(null));
            assert_eq!(super::release(&released), is_complete.then_some(owner), "{name} {namespace}");
        }
    }
}
