//! The progress of an object that has the wanted image.

use jiff::Timestamp;
use tagboat_api::deployment_status::{ComponentStatus, State};

use super::context::Context;
use crate::rollout::applier::{application, helm_release, kustomization};
use crate::rollout::assess::{
    Assessment, Counts, PreviousState, argo_rollout, canary, daemon_set, deployment, job, kstatus, node_pool,
    stateful_set,
};
use crate::rollout::history::complete_since;
use crate::rollout::index::ClusterIndex;
use crate::rollout::objects::Canary;
use crate::rollout::tie::images;
use crate::rollout::watched::{GroupKind, WatchedId, WatchedObject};

/// The facts from the previous status about an object.
#[derive(Clone, Copy)]
pub(super) struct PreviousRollout<'c> {
    /// The component of the previous status.
    pub(super) previous: Option<&'c ComponentStatus>,
    /// The image that the object has now.
    pub(super) image: Option<&'c str>,
    /// The time of the observation.
    pub(super) now: Timestamp,
}

impl PreviousRollout<'_> {
    /// Returns the component of the previous status, if it had the same image.
    fn same_image(&self) -> Option<&ComponentStatus> {
        self.previous.filter(|previous| previous.image.as_deref() == self.image)
    }

    /// Returns the last observed state of the rollout of the object's image.
    ///
    /// A complete rollout stays so while pods fail and while the cluster does not answer. After a state in which the
    /// rollout was in progress, it has to complete again.
    fn state(&self) -> PreviousState {
        let Some(previous) = self.previous else { return PreviousState::Unknown };
        let is_over = matches!(previous.state, State::Installed | State::Failed | State::Pending);
        match self.same_image().and_then(complete_since) {
            Some(_) if is_over => PreviousState::Complete,
            _ => PreviousState::Incomplete,
        }
    }

    /// Returns the time at which the object got its image, if it was observed.
    fn has_image_since(&self) -> Option<Timestamp> {
        match self.same_image() {
            Some(previous) if previous.state == State::Installing => Some(previous.since.0),
            // The beginning of a state after the first one is not that of the image.
            Some(_) => None,
            None => self.previous.map(|_| self.now),
        }
    }
}

/// Assesses an object that has the wanted image.
///
/// `is_wanted` compares an image.
pub(super) fn assess(
    index: &ClusterIndex,
    id: &WatchedId,
    object: &WatchedObject,
    previous: PreviousRollout<'_>,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Assessment {
    if let Some(canary) = canary_of(index, id) {
        return assess_target(index, id, canary, previous, is_wanted);
    }
    by_kind(index, object, previous.state())
}

/// Assesses an object with another image than the wanted one.
///
/// The target of a Canary has the counts of the workload that serves, and a rollout that is not known.
pub(super) fn assess_other_image(index: &ClusterIndex, id: &WatchedId, object: &WatchedObject) -> Assessment {
    let Some(canary) = canary_of(index, id) else {
        return by_kind(index, object, PreviousState::Unknown);
    };
    let counts = primary(index, id, canary).map(|(_, primary)| counts(index, primary)).unwrap_or_default();
    Assessment::in_progress(counts, "")
}

fn counts(index: &ClusterIndex, object: &WatchedObject) -> Counts {
    by_kind(index, object, PreviousState::Complete).counts
}

fn by_kind(index: &ClusterIndex, object: &WatchedObject, previous: PreviousState) -> Assessment {
    let was_complete = previous == PreviousState::Complete;
    match object {
        WatchedObject::Deployment(object) => deployment::assess(object, previous),
        WatchedObject::StatefulSet(object) => stateful_set::assess(object, previous),
        WatchedObject::DaemonSet(object) => daemon_set::assess(object, previous),
        WatchedObject::Job(object) => job::assess(object),
        // Its template has the image, and its Jobs are no part of the rollout, so it never fails.
        WatchedObject::CronJob(_) => Assessment::complete(Counts::default(), None),
        WatchedObject::ArgoRollout(rollout) => {
            let target = object.target().and_then(|target| index.get(&target));
            let generation = target.and_then(|target| target.metadata().generation);
            argo_rollout::assess(rollout, generation, was_complete)
        }
        WatchedObject::Kustomization(object) => kustomization::assess_remote(object),
        WatchedObject::HelmRelease(object) => helm_release::assess_remote(object),
        WatchedObject::Application(object) => application::assess_remote(object),
        WatchedObject::Other(resource, object) if node_pool::is_node_pool(resource) => {
            node_pool::assess(object, previous)
        }
        WatchedObject::Other(resource, object) => kstatus::assess(object, resource),
        WatchedObject::Canary(_) | WatchedObject::GitRepository(_) => {
            Assessment::in_progress(Counts::default(), "the object runs no image")
        }
    }
}

fn canary_of<'i>(index: &'i ClusterIndex, target: &WatchedId) -> Option<&'i Canary> {
    let canaries = index.referrers(target).filter(|referrer| referrer.kind == GroupKind::CANARY);
    canaries.into_iter().find_map(|id| match index.get(id)? {
        WatchedObject::Canary(canary) => Some(&**canary),
        _ => None,
    })
}

/// Returns the workload that serves the promoted version of a Canary's target.
fn primary<'i>(
    index: &'i ClusterIndex,
    target: &WatchedId,
    canary: &Canary,
) -> Option<(WatchedId, &'i WatchedObject)> {
    let id = WatchedId::new(
        target.kind.clone(),
        &target.namespace,
        &Canary::primary_name(canary.spec.get().ok()?),
    );
    index.get(&id).map(|object| (id, object))
}

fn assess_target(
    index: &ClusterIndex,
    id: &WatchedId,
    canary: &Canary,
    previous: PreviousRollout<'_>,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Assessment {
    let primary = primary(index, id, canary).map(|(_, primary)| primary);
    let promoted = primary.and_then(|primary| images(index, primary).ok()).unwrap_or_default();
    let target = canary::Target {
        primary: primary.map(|primary| counts(index, primary)),
        is_promoted: promoted.into_iter().any(is_wanted),
        has_image_since: previous.has_image_since(),
    };
    canary::assess(canary, &target)
}

impl<'c> PreviousRollout<'c> {
    /// Creates the facts of a component.
    pub(super) fn new(
        context: &Context<'_>,
        previous: Option<&'c ComponentStatus>,
        image: Option<&'c str>,
    ) -> Self {
        Self { previous, image, now: context.inputs.now }
    }
}
