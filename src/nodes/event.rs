//! The events of a pool: the differences of two statuses.

use std::fmt;

use tagboat_api::Condition;
use tagboat_api::node_pool::{DEGRADED, DegradedReason, NodePoolStatus, UP_TO_DATE};

/// The reason of an event of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolEventReason {
    /// Nodes get another image, or need a reboot.
    RolloutStarted,
    /// All nodes are up to date.
    RolloutCompleted,
    /// No other node begins.
    RolloutHalted,
}

/// Formats the name of the reason.
impl fmt::Display for PoolEventReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::RolloutStarted => "RolloutStarted",
            Self::RolloutCompleted => "RolloutCompleted",
            Self::RolloutHalted => "RolloutHalted",
        })
    }
}

/// An event of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolEvent {
    /// The reason.
    pub reason: PoolEventReason,
    /// The message.
    pub message: String,
    /// The identity of the event.
    ///
    /// It follows from the status before, so a process that ends before it writes the new one announces no second event.
    pub key: String,
}

/// Returns the events that lead from one status to the next.
#[must_use]
pub fn pool_events(previous: Option<&NodePoolStatus>, current: &NodePoolStatus) -> Vec<PoolEvent> {
    let before = |type_: &str| previous.and_then(|previous| condition(previous, type_));
    let target = current.target_digest.as_deref();
    let image = target.unwrap_or("the updates of their hosts");
    let event = |reason: PoolEventReason, message: String, before: Option<&Condition>| {
        let since = before.map(|before| before.last_transition_time.0.to_string()).unwrap_or_default();
        let key = format!("{reason} {} {since}", target.unwrap_or_default());
        PoolEvent { reason, message, key }
    };
    let mut events = Vec::new();
    let (was, is) = (before(UP_TO_DATE), condition(current, UP_TO_DATE));
    let status =
        |condition: Option<&Condition>| condition.map_or("Unknown", |found| &found.status).to_owned();
    let is_retargeted = previous.is_some_and(|previous| previous.target_digest.as_deref() != target);
    let (was_updated, is_updated) = (status(was), status(is));
    // Otherwise it goes on: a status that is unknown for a while, as without a registry, begins no other rollout.
    let is_begun = !is_retargeted
        && previous.is_some_and(|previous| match &*was_updated {
            "False" => previous.node_count > 0,
            "True" => false,
            _ => previous.updated_count < previous.node_count,
        });
    if is_updated == "False" && !is_begun && current.node_count > 0 {
        let waiting = current.node_count - current.updated_count;
        let message = format!("{waiting} of {} nodes get {image}", current.node_count);
        events.push(event(PoolEventReason::RolloutStarted, message, was));
    }
    if is_updated == "True" && was_updated == "False" && current.node_count > 0 {
        let message = format!("all {} nodes have {image}", current.node_count);
        events.push(event(PoolEventReason::RolloutCompleted, message, was));
    }
    let is_halted = |found: Option<&Condition>| {
        found.is_some_and(|found| found.reason == DegradedReason::RolloutHalted.to_string())
    };
    let (was, is) = (before(DEGRADED), condition(current, DEGRADED));
    if let Some(is) = is
        && is_halted(Some(is))
        && !is_halted(was)
    {
        let mut halted = event(PoolEventReason::RolloutHalted, is.message.clone(), was);
        // The condition can be true for another reason before and between two of them.
        halted.key = format!("{} {}", halted.key, is.message);
        events.push(halted);
    }
    events
}

fn condition<'s>(status: &'s NodePoolStatus, type_: &str) -> Option<&'s Condition> {
    status.conditions.iter().find(|condition| condition.type_ == type_)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn status(digest: &str, up_to_date: &str, degraded: &str, since: i64) -> NodePoolStatus {
        let condition = |type_: &str, status: &str, reason: &str| Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: "n1: not ready".to_owned(),
            last_transition_time: Time(Timestamp::from_second(since).unwrap()),
            observed_generation: None,
        };
        NodePoolStatus {
            target_digest: Some(digest.to_owned()),
            node_count: 3,
            updated_count: if up_to_date == "True" { 3 } else { 1 },
            conditions: vec![condition(UP_TO_DATE, up_to_date, ""), condition(DEGRADED, "True", degraded)],
            ..NodePoolStatus::default()
        }
    }

    fn reasons(previous: Option<&NodePoolStatus>, current: &NodePoolStatus) -> Vec<String> {
        pool_events(previous, current).iter().map(|event| event.reason.to_string()).collect()
    }

    #[test]
    fn a_rollout_starts_ends_and_halts_once() {
        let [done, unknown] = ["True", "Unknown"].map(|state| status("v1", state, "Healthy", 0));
        let [first, second] = ["v1", "v2"].map(|digest| status(digest, "False", "Healthy", 9));
        let done_before = NodePoolStatus { updated_count: 3, ..unknown.clone() };
        let none = NodePoolStatus { node_count: 0, ..unknown.clone() };
        let halted = status("v2", "False", "RolloutHalted", 9);
        let invalid = status("v2", "False", "InvalidSpec", 9);
        for (previous, current, expected) in [
            (None, &done, &[][..]),
            (None, &first, &["RolloutStarted"]),
            (Some(&unknown), &first, &[]),
            (Some(&done_before), &first, &["RolloutStarted"]),
            (Some(&none), &first, &["RolloutStarted"]),
            (Some(&done), &second, &["RolloutStarted"]),
            (Some(&second), &second, &[]),
            (Some(&first), &second, &["RolloutStarted"]),
            (Some(&second), &halted, &["RolloutHalted"]),
            (Some(&halted), &halted, &[]),
            (Some(&halted), &invalid, &[]),
            (Some(&first), &done, &["RolloutCompleted"]),
            (Some(&unknown), &done, &[]),
        ] {
            assert_eq!(reasons(previous, current), expected, "{previous:?} {current:?}");
        }
    }

    /// Its status is unknown while the tag cannot be resolved, or the spec is invalid.
    #[test]
    fn a_rollout_goes_on_after_a_status_that_is_unknown() {
        let [first, unknown] = ["False", "Unknown"].map(|state| status("v2", state, "Healthy", 0));
        assert!(reasons(Some(&first), &unknown).is_empty() && reasons(Some(&unknown), &first).is_empty());
        let another = status("v3", "False", "Healthy", 0);
        assert_eq!(reasons(Some(&unknown), &another), ["RolloutStarted"]);
    }

    #[test]
    fn a_pool_without_nodes_completes_nothing() {
        let first = status("v1", "False", "Healthy", 0);
        let empty = NodePoolStatus { node_count: 0, updated_count: 0, ..status("v1", "True", "Healthy", 0) };
        assert!(reasons(Some(&first), &empty).is_empty());
    }

    #[test]
    fn the_key_of_an_event_follows_from_the_status_before() {
        let done = status("v1", "True", "Healthy", 0);
        let keys = |since| pool_events(Some(&done), &status("v2", "False", "Healthy", since)).remove(0).key;
        assert_eq!(keys(5), keys(6));
        assert_eq!(keys(5), "RolloutStarted v2 1970-01-01T00:00:00Z");
    }
}
