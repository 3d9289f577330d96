//! The status of a deployment, from an observation and the previous status.
//!
//! An observation has every component with the beginning of its state as far as the object reports it. A component
//! that is in the same state with the same image as before keeps the time of the previous status. A component that the
//! previous status omits is treated as one that is observed for the first time.
//!
//! `since` of the deployment is the time since which the target has the aggregate state. `timeStamp` is the time of the
//! last change of any other field: a report that equals the previous one has its time stamp, too, and need not be
//! written.

use std::collections::HashMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tagboat_api::deployment_status::{
    BlockReason, CommitRef, ComponentStatus, DeploymentStatusStatus, MAX_MESSAGE, MAX_TEXT, Report, State,
    Target,
};

use super::absent::Absent;
use super::aggregate::{
    self, Aggregate, Component, DeploymentError, aggregate, component_progress, progress, summary,
};
use super::bounds::{self, cut, whole_seconds};
use super::conditions::conditions;
use super::history::{self, continued_complete_since, last_deployed};

/// An observation of a deployment.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The uid of the policy.
    pub deployment_id: String,
    /// The image that the policy has selected.
    pub target: Option<Target>,
    /// The commit of the target, if Tagboat pushed it.
    pub commit: Option<CommitRef>,
    /// The git revision that was observed.
    pub revision: Option<String>,
    /// The error before the rollout.
    pub error: Option<DeploymentError>,
    /// All components, in any order; each name occurs once.
    pub components: Vec<Component>,
}

/// Returns the status of a deployment after an observation.
#[must_use]
pub fn status(
    observation: Observation,
    previous: Option<&DeploymentStatusStatus>,
    now: Timestamp,
) -> DeploymentStatusStatus {
    let now = whole_seconds(now);
    let deployment_id = observation.deployment_id.clone();
    let report = report(observation, previous.map(|previous| &previous.report), &now);
    let time_stamp = match previous {
        Some(previous) if previous.report == report => previous.time_stamp.clone(),
        // A clock that was set back does not set the time stamp back.
        Some(previous) => now.max(previous.time_stamp.clone()),
        None => now,
    };
    DeploymentStatusStatus { deployment_id, time_stamp, report }
}

fn report(observation: Observation, previous: Option<&Report>, now: &Time) -> Report {
    let Observation { deployment_id, target, commit, revision, error, components } = observation;
    let known: HashMap<&str, &ComponentStatus> = previous
        .iter()
        .flat_map(|previous| &previous.components)
        .map(|component| (component.name.as_str(), component))
        .collect();
    let absent = previous.map(|previous| Absent::new(&previous.components)).unwrap_or_default();
    let components: Vec<Component> = components
        .into_iter()
        .map(|component| {
            let status = bounds::component(component.status);
            // At the first observation of an object, `completeSince` tells that it ran before.
            let absent = || absent.of(&status).filter(|_| status.complete_since.is_none());
            let previous = known.get(status.name.as_str()).copied().or_else(absent);
            Component { status: continued(previous, status), ..component }
        })
        .collect();
    let overall = aggregate(&components, error.as_ref());
    let mut components: Vec<ComponentStatus> =
        components.into_iter().map(|component| component.status).collect();
    aggregate::sort_worst_first(&mut components);
    let listed = bounds::listed(&components);
    let unchosen = (components.is_empty() && target.is_none()).then_some(BlockReason::NotChosen);
    let same_rollout =
        previous.filter(|previous| is_same_rollout(previous, target.as_ref(), commit.as_ref()));
    let old_history = previous.map_or(&[][..], |previous| &previous.deploy_history);
    let failed_since = failed_since(&overall, &components, same_rollout, now);
    let mut report = Report {
        state: overall.state,
        reason: overall.reason.or(unchosen),
        message: overall.message.map(|message| cut(message, MAX_MESSAGE)),
        since: since(overall.state, target.as_ref(), &components, previous, now),
        failed_since,
        error: overall.error.map(|error| bounds::error(error, &deployment_id)),
        summary: summary(&components),
        progress: progress(&components),
        omitted: i64::try_from(components.len() - listed).unwrap_or(i64::MAX),
        deploy_history: history::fold(old_history, target.as_ref(), commit.as_ref(), &components),
        target,
        commit,
        revision: revision.map(|revision| cut(revision, MAX_TEXT)),
        components,
        conditions: Vec::new(),
    };
    report.components.truncate(listed);
    let old_conditions = previous.map_or(&[][..], |previous| &previous.conditions);
    report.conditions = conditions(&report, old_conditions, now);
    report
}

/// Returns a component with the times of its previous status that still apply.
fn continued(previous: Option<&ComponentStatus>, current: ComponentStatus) -> ComponentStatus {
    let last_deployed = last_deployed(previous, &current);
    let complete_since = continued_complete_since(previous, &current);
    let is_same =
        |previous: &&ComponentStatus| previous.state == current.state && previous.image == current.image;
    let since =
        previous.filter(is_same).map_or_else(|| current.since.clone(), |previous| previous.since.clone());
    ComponentStatus { since, last_deployed, complete_since, ..current }
}

/// Returns the time since which the target has the state.
///
/// If the state is new, it is the time of the last component that reached it, unless that was before the previous
/// state: then another component left the deployment, just now.
fn since(
    state: State,
    target: Option<&Target>,
    components: &[ComponentStatus],
    previous: Option<&Report>,
    now: &Time,
) -> Time {
    let in_state = components.iter().filter(|component| component.state == state);
    let last = in_state.map(|component| &component.since).max().filter(|last| *last <= now);
    match previous {
        Some(previous) if previous.state == state && previous.target.as_ref() == target => {
            previous.since.clone()
        }
        Some(previous) => last.filter(|last| **last > previous.since).unwrap_or(now).clone(),
        None => last.unwrap_or(now).clone(),
    }
}

/// Returns true if a previous report has the same target and commit.
///
/// A commit that is not known is no other one.
fn is_same_rollout(previous: &Report, target: Option<&Target>, commit: Option<&CommitRef>) -> bool {
    let mut commits = previous.commit.iter().zip(commit);
    previous.target.as_ref() == target && commits.all(|(previous, commit)| previous.id == commit.id)
}

/// Returns the time at which the rollout of the target failed.
///
/// After an outage, and after a restart, its pods are not listed yet: it may be installing or installed for a moment. So
/// it has failed until all of its pods are ready. `previous` is about the same rollout.
fn failed_since(
    overall: &Aggregate,
    components: &[ComponentStatus],
    previous: Option<&Report>,
    now: &Time,
) -> Option<Time> {
    let is_ready = || components.iter().filter_map(component_progress).all(|(done, desired)| done == desired);
    let known = previous.and_then(|previous| previous.failed_since.clone());
    match overall.state {
        State::Installed if is_ready() => None,
        State::Failed if overall.error.is_none() => known.or_else(|| Some(now.clone())),
        _ => known,
    }
}

#[cfg(test)]
mod tests;
