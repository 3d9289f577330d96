//! The observation from which the components of a policy are computed, and the result.

use jiff::Timestamp;

use crate::rollout::aggregate::{Component, DeploymentError};
use crate::rollout::before::BeforeRollout;
use crate::rollout::image::WantedImage;
use crate::rollout::index::{Cluster, PlaceIndex};
use crate::rollout::tie::Stop;
use crate::rollout::watched::WatchedId;

/// The observation of a policy.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'i> {
    /// The policy, its automations with their places, and the previous status.
    ///
    /// An automation that was not scanned in this process keeps the components of the previous status.
    pub before: &'i BeforeRollout<'i>,
    /// The places of all policies, which tell if another policy claims a workload.
    pub places: &'i PlaceIndex,
    /// The clusters: Tagboat's own, and those with a kubeconfig.
    pub clusters: &'i [Cluster<'i>],
    /// Set by `--no-cross-namespace-refs`: only objects in the automation's namespace are matched.
    pub no_cross_namespace: bool,
    /// The time of the observation.
    pub now: Timestamp,
    /// Ends the computation early, whose result is then of no use.
    pub stop: Stop<'i>,
}

/// The components of a policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Components {
    /// The components, in the order of their names; each name occurs once.
    ///
    /// Names have no API group. Of two objects with one name, the one with the later group is the component.
    pub components: Vec<Component>,
    /// The error of a cluster with some of them, which does not respond.
    pub error: Option<DeploymentError>,
    /// The lists of pods that the next observation should have.
    pub pods_wanted: Vec<PodRequest>,
    /// The time at which a component changes without a change of an object.
    pub next_check: Option<Timestamp>,
}

impl Components {
    /// Has the components checked at a time, unless they are checked earlier.
    pub(super) fn check_at(&mut self, time: Timestamp) {
        self.next_check = Some(self.next_check.map_or(time, |earlier| earlier.min(time)));
    }
}

/// A request for the pods of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct PodRequest {
    /// The name of the cluster; none for Tagboat's own.
    pub cluster: Option<String>,
    /// The object; the key of [`Cluster::pods`].
    pub object: WatchedId,
    /// The namespace of the pods.
    pub namespace: String,
    /// The label selector of the pods.
    pub selector: String,
    /// The generation of the object.
    pub generation: Option<i64>,
    /// The images of the policy; pods with others do not count.
    pub wanted: Vec<WantedImage>,
}
