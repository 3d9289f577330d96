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
