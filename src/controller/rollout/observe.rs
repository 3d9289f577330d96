//! The observation of one policy: from objects, places and pods to a status.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::deployment_status::DeploymentStatusStatus;
use tagboat_api::{ImagePolicy, ImageUpdateAutomation, ObjectName};

use super::state::Rollouts;
use crate::reconcile::cross_namespace::CrossNamespace;
use crate::reference::ImageReference;
use crate::rollout::before::{AutomationView, BeforeRollout};
use crate::rollout::components::{Cluster, Components, Contact, Inputs, PodRequest, components};
use crate::rollout::index::ClusterIndex;
use crate::rollout::place::ScannedPlaces;
use crate::rollout::report::{Observation, status};
use crate::rollout::tie::Stop;

/// The result of an observation.
#[derive(Debug)]
pub(super) struct Observed {
    /// The status.
    pub(super) status: DeploymentStatusStatus,
    /// True if the policy has a component.
    pub(super) has_components: bool,
    /// The lists of pods that the next observation needs.
    pub(super) pods: Vec<PodRequest>,
    /// The time at which the status changes without a change of an object.
    pub(super) next_check: Option<Timestamp>,
}

/// An automation of a policy, with its scan.
struct Known {
    automation: Arc<ImageUpdateAutomation>,
    scan: Option<Arc<ScannedPlaces>>,
}

/// Observes a policy, once all kinds are listed.
///
/// It may block the thread for a while, and after `stop` the result is of no use.
pub(super) fn observe(
    rollouts: &Rollouts,
    policy: &ImagePolicy,
    previous: Option<&DeploymentStatusStatus>,
    now: Timestamp,
    stop: Stop<'_>,
) -> Observed {
    let name = ObjectName::of(policy);
    let known = automations(rollouts, &name, previous);
    let views: Vec<AutomationView<'_>> = known
        .iter()
        .map(|known| AutomationView { automation: &known.automation, scan: known.scan.as_deref() })
        .collect();
    let before = BeforeRollout { policy, automations: &views, previous };
    let found = found_components(rollouts, &before, now, stop);
    let observation = Observation {
        deployment_id: policy.uid().unwrap_or_default(),
        target: before.target(),
        commit: before.commit(),
        revision: before.revision(),
        error: before.error().or(found.error),
        components: found.components,
    };
    let has_components = !observation.components.is_empty();
    let status = status(observation, previous, now);
    Observed { status, has_components, pods: found.pods_wanted, next_check: found.next_check }
}

/// Returns the components of a policy in all clusters.
fn found_components(
    rollouts: &Rollouts,
    before: &BeforeRollout<'_>,
    now: Timestamp,
    stop: Stop<'_>,
) -> Components {
    let policy = ObjectName::of(before.policy);
    let remote = rollouts.remote.read().clone();
    let contacts: Vec<Contact> = remote
        .values()
        .map(|remote| match remote.watched() {
            Some(cluster) if rollouts.is_listed_for(&policy, cluster) => Contact::Watched,
            Some(_) => Contact::Listing,
            None => Contact::Lost,
        })
        .collect();
    let places = rollouts.place_index.read();
    let (index, pods) = (rollouts.cluster.index(), rollouts.cluster.pods.lists());
    let own = Cluster { name: None, index: &index, contact: Contact::Watched, problem: None, pods: &pods };
    let of_remote: Vec<_> = remote
        .values()
        .map(|remote| remote.watched().map(|cluster| (cluster.index(), cluster.pods.lists())))
        .collect();
    let (no_index, no_pods) = (ClusterIndex::default(), HashMap::new());
    let others = remote.iter().zip(&of_remote).zip(contacts).map(|(((name, remote), objects), contact)| {
        let (index, pods) =
            objects.as_ref().map_or((&no_index, &no_pods), |(index, pods)| (&**index, &**pods));
        Cluster { name: Some(name), index, contact, problem: remote.problem(), pods }
    });
    let clusters: Vec<Cluster<'_>> = [own].into_iter().chain(others).collect();
    components(&Inputs {
        before,
        places: &places,
        clusters: &clusters,
        no_cross_namespace: rollouts.options.cross_namespace == CrossNamespace::Forbidden,
        now,
        stop,
    })
}

/// Returns the image that a policy has selected.
pub(super) fn image(policy: &ImagePolicy) -> Option<ImageReference> {
    BeforeRollout { policy, automations: &[], previous: None }.image()
}

/// Returns the automations of a policy.
///
/// They have places of the policy, or the previous status names them.
fn automations(
    rollouts: &Rollouts,
    policy: &ObjectName,
    previous: Option<&DeploymentStatusStatus>,
) -> Vec<Known> {
    let scans = rollouts.places.of_policy(policy);
    let mut names: BTreeSet<ObjectName> = scans.iter().map(|scan| scan.automation.clone()).collect();
    let components = previous.iter().flat_map(|previous| &previous.report.components);
    names.extend(components.filter_map(|component| {
        let name = component.automation.clone()?;
        Some(ObjectName { namespace: policy.namespace.clone(), name })
    }));
    names
        .into_iter()
        .filter_map(|name| {
            let automation = rollouts.automations.get(&name)?;
            let scan = rollouts.places.of_automation(&name);
            Some(Known { automation, scan })
        })
        .collect()
}
