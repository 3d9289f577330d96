//! The object that runs a pod template.
//!
//! A Job of a CronJob and the primary of a Canary are no components, because the object that controls them is one. A
//! workload to which a Rollout refers is scaled to zero; the Rollout runs its template.

use crate::rollout::index::ClusterIndex;
use crate::rollout::objects::Unreadable;
use crate::rollout::watched::{GroupKind, WatchedId, WatchedObject};

/// Returns the component that runs the template of an object, if there is one.
pub(super) fn runner(index: &ClusterIndex, id: &WatchedId) -> Option<WatchedId> {
    let object = index.get(id)?;
    let is_component = match object {
        WatchedObject::Canary(_) | WatchedObject::GitRepository(_) => false,
        WatchedObject::Kustomization(_) | WatchedObject::HelmRelease(_) | WatchedObject::Application(_) => {
            object.is_remote_applier()
        }
        _ => !is_controlled(index, object),
    };
    let rollout = || index.referrers(id).find(|referrer| referrer.kind == GroupKind::ARGO_ROLLOUT);
    is_component.then(|| rollout().unwrap_or(id).clone())
}

fn is_controlled(index: &ClusterIndex, object: &WatchedObject) -> bool {
    object.controller().is_some_and(|owner| {
        let has_rule = GroupKind::WORKLOADS.contains(&owner.kind) || owner.kind == GroupKind::CANARY;
        has_rule || index.get(&owner).is_some()
    })
}

/// Returns the images that an object runs.
///
/// A Rollout with `workloadRef` runs those of that workload.
///
/// # Errors
///
/// The spec cannot be read.
pub fn images<'i>(
    index: &'i ClusterIndex,
    object: &'i WatchedObject,
) -> Result<Vec<&'i str>, &'i Unreadable> {
    match object {
        WatchedObject::ArgoRollout(_) => match object.target() {
            Some(target) => index.get(&target).map_or_else(|| Ok(Vec::new()), WatchedObject::images),
            None => object.images(),
        },
        _ => object.images(),
    }
}
