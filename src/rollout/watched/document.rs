//! The identity of a document that has a marker.

use super::{GroupKind, WatchedId};
use crate::update::ObjectIdentifier;

/// Returns the identity in a document, if it has a kind and a name.
#[must_use]
pub fn document(document: &ObjectIdentifier) -> Option<WatchedId> {
    let is_named = !document.kind.is_empty() && !document.name.is_empty();
    is_named.then(|| {
        let kind = GroupKind::new(&document.api_version, &document.kind);
        WatchedId::new(kind, &document.namespace, &document.name)
    })
}

/// Returns `true` if a document can be an object that becomes a component.
///
/// Appliers are none: their workloads are. A ConfigMap or Secret has no spec, and the configuration of kustomize is no
/// object.
#[must_use]
pub fn can_be_component(document: &WatchedId) -> bool {
    let kind = &document.kind;
    let has_no_spec = kind.group().is_empty() && matches!(kind.kind(), "ConfigMap" | "Secret");
    !has_no_spec && kind.group() != "kustomize.config.k8s.io" && !GroupKind::APPLIERS.contains(kind)
}
