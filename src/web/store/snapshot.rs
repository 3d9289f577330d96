//! The deployments at one moment, as a request sees them.

use std::borrow::Cow;
use std::sync::Arc;

use kube::ResourceExt;
use tagboat_api::DeploymentStatus;
use tagboat_api::deployment_status::{State, Summary};

use crate::objects::ObjectName;
use crate::rollout::aggregate::most_severe;
use crate::rollout::outage::Outage;

/// The deployments at one moment, all of which have a status.
///
/// During an outage of the own cluster, every deployment is failed.
#[derive(Debug, Clone)]
pub struct Snapshot {
    objects: Vec<Arc<DeploymentStatus>>,
    outage: Option<Outage>,
}

impl Snapshot {
    pub(super) fn new(objects: Vec<Arc<DeploymentStatus>>, outage: Option<Outage>) -> Self {
        Self { objects, outage }
    }

    /// Returns the objects as stored, sorted by name.
    #[must_use]
    pub fn objects(&self) -> &[Arc<DeploymentStatus>] {
        &self.objects
    }

    /// Keeps the objects for which a function returns true, given their state.
    #[must_use]
    pub fn filter(mut self, mut is_kept: impl FnMut(&DeploymentStatus, State) -> bool) -> Self {
        let is_outage = self.outage.is_some();
        self.objects.retain(|object| state(object, is_outage).is_some_and(|state| is_kept(object, state)));
        self
    }

    /// Returns an object as it is shown.
    #[must_use]
    pub fn shown<'o>(&self, object: &'o DeploymentStatus) -> Cow<'o, DeploymentStatus> {
        match &self.outage {
            None => Cow::Borrowed(object),
            Some(outage) => Cow::Owned(outage.applied_to(object)),
        }
    }

    /// Returns the most severe state of the objects; pending without any.
    #[must_use]
    pub fn state(&self) -> State {
        most_severe(self.states())
    }

    /// Returns the number of objects, and of those in each state.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.states().collect()
    }

    fn states(&self) -> impl Iterator<Item = State> {
        let is_outage = self.outage.is_some();
        self.objects.iter().filter_map(move |object| state(object, is_outage))
    }

    /// Returns texts that are the same for equal snapshots, and different for others.
    ///
    /// The API server gives each state of an object another version.
    #[must_use]
    pub fn versions(&self) -> Vec<String> {
        let outage = self.outage.as_ref().map(|outage| outage.since.to_string());
        let versions = self.objects.iter().flat_map(|object| {
            [ObjectName::of(&**object).to_string()]
                .into_iter()
                .chain([object.uid(), object.resource_version()].map(Option::unwrap_or_default))
        });
        outage.into_iter().chain(versions).collect()
    }
}

/// Returns the state of an object as it is shown.
fn state(object: &DeploymentStatus, is_outage: bool) -> Option<State> {
    let state = object.status.as_ref()?.report.state;
    Some(if is_outage { State::Failed } else { state })
}
