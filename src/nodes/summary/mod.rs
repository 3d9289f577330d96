//! The status of a pool: a function of its nodes and of the status before.
//!
//! The history has one record for each node: its last deployment, which is in two annotations. They are written by the
//! patch that ends a rollout of the node, so a crash before the status is written loses nothing. An entry has the largest
//! number of nodes at the same time. So a node that replaces another one does not raise it, and one that joins does.

mod deletion;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tagboat_api::Condition;
use tagboat_api::node_pool::{
    DEGRADED, DegradedReason, MAX_VERSION, NodePoolStatus, PoolHistoryEntry, UP_TO_DATE, UpToDateReason,
};

use super::node::digest_of;
use super::{AgentState, Availability, InvalidSpec, Node, Pool, Problem, Stage, availability, keys, problem};
use crate::printable::printable;
use crate::reference::Tag;
use crate::rollout::bounds::{cut, whole_seconds};
use crate::rollout::message::{message, message_with_end};
use crate::rollout::records::Records;

pub use deletion::{Departure, departing_status};

/// The maximum length of the message of a condition, in characters.
const MAX_MESSAGE: usize = 1024;

/// The maximum number of nodes that a message names.
const MAX_NAMED: usize = 5;

/// The beginning of a digest; other records of nodes are versions.
const DIGEST_PREFIX: &str = "sha256:";

/// The facts about a pool from which its status follows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observation<'o> {
    /// The name of the pool.
    pub name: &'o str,
    /// The generation of the spec.
    pub generation: i64,
    /// The nodes of the pool, without those that stay with another one.
    pub nodes: &'o [&'o Node],
    /// The pool; none if the spec is invalid, or if its tag was never resolved.
    pub pool: Option<&'o Pool>,
    /// The tag of the image.
    pub tag: Option<&'o Tag>,
    /// The time at which the tag is resolved again.
    pub next_tag_resolution: Option<Timestamp>,
    /// The error of the last resolution of the tag.
    pub resolution_error: Option<&'o str>,
    /// The field of the spec that is not valid.
    pub invalid: Option<&'o InvalidSpec>,
    /// The nodes that another pool selects as well.
    pub conflicts: &'o [Conflict],
    /// The reasons of blocked drains by node: the pod and its disruption budget.
    pub blocked: Option<&'o BTreeMap<String, String>>,
}

/// A node that two pools select.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// The name of the node.
    pub node: String,
    /// The name of the other pool.
    pub pool: String,
}

/// Returns the status of a pool.
///
/// Nothing in it depends on the time while nothing happens, so a pool at rest is not written.
#[must_use]
pub fn pool_status(
    observation: &Observation<'_>,
    previous: Option<&NodePoolStatus>,
    now: Timestamp,
) -> NodePoolStatus {
    if let Some(kept) = kept_status(observation, previous, now) {
        return kept;
    }
    let nodes = observation.nodes;
    let degraded = degraded_nodes(observation, now);
    let counts = Counts::new(observation);
    let (reason, text) = degradation(observation, &degraded, now);
    let up_to_date = UpToDate::new(observation, &counts, now);
    let progress = up_to_date.message(&counts, observation, reason);
    let conditions = Conditions { generation: observation.generation, previous, now };
    let is_degraded = if reason == DegradedReason::Healthy { "False" } else { "True" };
    NodePoolStatus {
        observed_generation: observation.generation,
        target_digest: match observation.pool {
            Some(pool) => pool.image.as_deref().and_then(digest_of).map(str::to_owned),
            None => previous.and_then(|previous| previous.target_digest.clone()),
        },
        next_tag_resolution_time: observation.next_tag_resolution.map(whole_seconds),
        node_count: number(nodes.len()),
        updated_count: number(counts.updated),
        updating_count: number(nodes.iter().filter(|node| node.holds_slot()).count()),
        degraded_count: number(degraded.len()),
        deploy_history: history(observation, previous.map_or(&[], |previous| &previous.deploy_history)),
        conditions: vec![
            conditions.condition(UP_TO_DATE, up_to_date.status, up_to_date.reason.to_string(), progress),
            conditions.condition(DEGRADED, is_degraded, reason.to_string(), text),
        ],
    }
}

/// Returns the status of a pool whose node selector is not valid.
///
/// Its nodes are not known, and stay as they are. So do their numbers.
fn kept_status(
    observation: &Observation<'_>,
    previous: Option<&NodePoolStatus>,
    now: Timestamp,
) -> Option<NodePoolStatus> {
    let invalid = observation.invalid.filter(|invalid| invalid.hides_nodes())?;
    let conditions = Conditions { generation: observation.generation, previous, now };
    let (progress, reason) = (UpToDateReason::RolloutInProgress, DegradedReason::InvalidSpec);
    let kept = format!("the nodes stay as they are; {reason}");
    Some(NodePoolStatus {
        observed_generation: observation.generation,
        next_tag_resolution_time: None,
        conditions: vec![
            conditions.condition(UP_TO_DATE, "Unknown", progress.to_string(), kept),
            conditions.condition(DEGRADED, "True", reason.to_string(), message(&invalid.to_string())),
        ],
        ..previous.cloned().unwrap_or_default()
    })
}

/// The facts that all conditions of a status share.
struct Conditions<'c> {
    generation: i64,
    previous: Option<&'c NodePoolStatus>,
    now: Timestamp,
}

impl Conditions<'_> {
    /// Returns a condition, which keeps its time while its status stays.
    fn condition(&self, type_: &str, status: &str, reason: String, text: String) -> Condition {
        let mut known = self.previous.iter().flat_map(|previous| &previous.conditions);
        let same = known.find(|known| known.type_ == type_ && known.status == status);
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason,
            message: cut(text, MAX_MESSAGE),
            last_transition_time: same
                .map_or_else(|| whole_seconds(self.now), |known| known.last_transition_time.clone()),
            observed_generation: Some(self.generation),
        }
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The number of nodes that are updated, and of the others by stage.
struct Counts {
    all: usize,
    updated: usize,
    others: BTreeMap<Stage, usize>,
}

impl Counts {
    fn new(observation: &Observation<'_>) -> Self {
        let (updated, others): (Vec<&Node>, Vec<&Node>) =
            observation.nodes.iter().partition(|node| is_updated(node, observation.pool));
        let mut stages = BTreeMap::new();
        for node in others {
            *stages.entry(node.stage().unwrap_or(Stage::Idle)).or_insert(0) += 1;
        }
        Self { all: observation.nodes.len(), updated: updated.len(), others: stages }
    }

    fn in_slots(&self) -> usize {
        self.others.iter().filter(|(stage, _)| stage.holds_slot()).map(|(_, count)| count).sum()
    }
}

/// Returns `true` if a node has the image of the pool.
///
/// It holds no slot, and its agent reports no error.
/// The digest of the booted image decides, not the label of the agent, which may be older than the wanted image. Without a pool, the image is that which the node wanted last. In a pool without an
/// image, the agent also reports `staging` while the host looks for an update, which is no rollout.
fn is_updated(node: &Node, pool: Option<&Pool>) -> bool {
    let has_target = pool.is_none_or(|pool| node.annotation(keys::DESIRED_IMAGE) == pool.image.as_deref());
    let is_searching =
        pool.is_some_and(|pool| pool.image.is_none()) && node.agent() == Some(AgentState::Staging);
    let has_image =
        node.agent() != Some(AgentState::Error) && node.desired_digest().is_some() && node.has_booted();
    !node.holds_slot() && (node.is_done() || has_image || is_searching) && has_target
}

/// The condition `UpToDate` without its message.
struct UpToDate {
    status: &'static str,
    reason: UpToDateReason,
    opens: Option<Timestamp>,
}

impl UpToDate {
    /// Without a pool, the image is not known, and neither is the status.
    ///
    /// A pool without nodes is up to date.
    fn new(observation: &Observation<'_>, counts: &Counts, now: Timestamp) -> Self {
        let with = |status, reason| Self { status, reason, opens: None };
        let Some(pool) = observation.pool else { return with("Unknown", UpToDateReason::RolloutInProgress) };
        if counts.updated == counts.all {
            return with("True", UpToDateReason::AllUpdated);
        }
        if pool.is_paused {
            return with("False", UpToDateReason::Paused);
        }
        match availability(observation.nodes, pool, now) {
            Availability::OutsideWindow(opens) if counts.in_slots() == 0 => {
                Self { status: "False", reason: UpToDateReason::OutsideWindow, opens }
            }
            _ => with("False", UpToDateReason::RolloutInProgress),
        }
    }

    /// Returns the number of nodes in each stage; those closest to the end are first.
    ///
    /// A problem that stops the rollout is named, because it is the reason for which the numbers stay.
    fn message(&self, counts: &Counts, observation: &Observation<'_>, problem: DegradedReason) -> String {
        let stages = counts.others.iter().rev();
        let stages: Vec<String> = stages.map(|(stage, count)| format!("{count} {stage}")).collect();
        let mut parts = vec![format!("{}/{} updated", counts.updated, counts.all)];
        parts.extend((!stages.is_empty()).then(|| stages.join(", ")));
        parts.extend((counts.all == 0).then(|| no_nodes(observation).to_owned()));
        parts.extend(self.opens.map(|time| format!("a window opens at {time}")));
        parts.extend((problem > DegradedReason::NodeDegraded).then(|| problem.to_string()));
        parts.join("; ")
    }
}

/// Returns the reason why a pool has no nodes.
fn no_nodes(observation: &Observation<'_>) -> &'static str {
    if observation.conflicts.is_empty() {
        "spec.nodeSelector selects no node: compare it with kubectl get nodes --show-labels"
    } else {
        "all nodes that spec.nodeSelector selects are in older pools"
    }
}

/// Returns the nodes with a problem, by name.
fn degraded_nodes<'o>(
    observation: &Observation<'o>,
    now: Timestamp,
) -> BTreeMap<&'o str, (&'o Node, Problem)> {
    let limits = observation.pool.map(|pool| pool.limits).unwrap_or_default();
    let nodes = observation.nodes.iter();
    nodes.filter_map(|node| Some((node.name.as_str(), (*node, problem(node, limits, now)?)))).collect()
}

/// Returns the reason of the condition `Degraded` of highest precedence, and its message.
fn degradation(
    observation: &Observation<'_>,
    degraded: &BTreeMap<&str, (&Node, Problem)>,
    now: Timestamp,
) -> (DegradedReason, String) {
    let blocked = |name: &str, problem: &Problem| {
        let is_drain = matches!(problem, Problem::Overdue(Stage::Draining, _));
        observation.blocked.filter(|_| is_drain)?.get(name)
    };
    let problem_of = |(name, (_, problem)): (&&str, &(&Node, Problem))| match blocked(name, problem) {
        Some(blocked) => format!("{name}: {problem}: {blocked}"),
        None => format!("{name}: {problem}"),
    };
    let is_halted = observation
        .pool
        .is_some_and(|pool| availability(observation.nodes, pool, now) == Availability::Halted);
    if let Some(error) = observation.resolution_error {
        (DegradedReason::TagResolutionError, message(&format!("the tag cannot be resolved: {error}")))
    } else if let Some(invalid) = observation.invalid {
        (DegradedReason::InvalidSpec, message(&invalid.to_string()))
    } else if is_halted {
        let in_slots = degraded.iter().filter(|(_, (node, _))| node.holds_slot()).map(problem_of);
        (DegradedReason::RolloutHalted, format!("no other node begins: {}", listed(in_slots)))
    } else if !observation.conflicts.is_empty() {
        let mut conflicts: Vec<&Conflict> = observation.conflicts.iter().collect();
        conflicts.sort();
        let conflicts = conflicts
            .iter()
            .map(|conflict| format!("{} is selected by the pool {} as well", conflict.node, conflict.pool));
        (DegradedReason::NodeConflict, listed(conflicts))
    } else if !degraded.is_empty() {
        (DegradedReason::NodeDegraded, listed(degraded.iter().map(problem_of)))
    } else {
        (DegradedReason::Healthy, "no node has a problem".to_owned())
    }
}

/// Joins the first texts, made safe and short, and counts the rest.
fn listed(texts: impl Iterator<Item = String>) -> String {
    let mut texts: Vec<String> = texts.collect();
    let rest = texts.len().saturating_sub(MAX_NAMED);
    texts.truncate(MAX_NAMED);
    // A part of the message for each text, so that a long one hides no other.
    let length = MAX_MESSAGE / (texts.len() + 1);
    let texts: Vec<String> = texts.iter().map(|text| message_with_end(text, length)).collect();
    let more = if rest > 0 { format!("; {rest} more") } else { String::new() };
    texts.join("; ") + &more
}

/// The last deployment of a node.
struct Record {
    entry: PoolHistoryEntry,
    time: Time,
}

impl Record {
    /// Returns the record of a node whose rollout has ended in the pool.
    ///
    /// The version is that of the booted image, if it is the deployed one, or else the tag of the target.
    fn of(node: &Node, observation: &Observation<'_>, target: Option<&str>) -> Option<Self> {
        let text = |text: &str| cut(printable(text).into(), MAX_VERSION);
        let (deployed, at) = node.last_deployment(observation.name).filter(|(text, _)| !text.is_empty())?;
        let time = whole_seconds(at);
        let is_booted = node.annotation(keys::BOOTED_DIGEST) == Some(deployed);
        let reported =
            node.annotation(keys::BOOTED_VERSION).filter(|version| is_booted && !version.is_empty());
        let tag = observation.tag.filter(|_| target == Some(deployed)).map(Tag::as_str);
        let (digest, version) = if deployed.starts_with(DIGEST_PREFIX) {
            (Some(text(deployed)), reported.or(tag).map(text))
        } else {
            (None, Some(text(deployed)))
        };
        let entry = PoolHistoryEntry { digest, version, node_count: 0, last_deployed: time.clone() };
        Some(Self { entry, time })
    }
}

/// Returns the history after the records of the nodes.
fn history(observation: &Observation<'_>, previous: &[PoolHistoryEntry]) -> Vec<PoolHistoryEntry> {
    let target = observation.pool.and_then(|pool| pool.image.as_deref()).and_then(digest_of);
    let nodes = observation.nodes.iter();
    let mut found: Vec<Record> = nodes.filter_map(|node| Record::of(node, observation, target)).collect();
    // The version of an entry is that of its newest record.
    found.sort_by(|a, b| a.time.cmp(&b.time));
    let mut records = Records::new(previous);
    for Record { entry, time } in found {
        let version = entry.version.clone();
        let index = records.entry(entry, is_same_image);
        if let (Some(entry), Some(version)) = (records.add(index, &time), version) {
            entry.version = Some(version);
        }
    }
    records.finish(|entry| target.is_some() && entry.digest.as_deref() == target)
}

/// Returns `true` for entries of the same digest, or without digests of the same version.
fn is_same_image(one: &PoolHistoryEntry, other: &PoolHistoryEntry) -> bool {
    one.digest == other.digest && (one.digest.is_some() || one.version == other.version)
}

#[cfg(test)]
mod tests;
