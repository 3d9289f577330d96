//! The rollout of an OS image on the nodes of a NodePool.
//!
//! The counts are those of nodes. The nodes controller writes the conditions: see `docs/nodes.md`.

use kube::core::ApiResource;
use serde::Deserialize;
use tagboat_api::NodePool;
use tagboat_api::node_pool::{DEGRADED, DegradedReason, UP_TO_DATE};

use super::{Assessment, Counts, PreviousState};
use crate::rollout::objects::{Condition, GenericObject, Unreadable, find, parse_status};

/// The reasons for which a rollout does not go on by itself.
const FATAL: [DegradedReason; 3] =
    [DegradedReason::RolloutHalted, DegradedReason::InvalidSpec, DegradedReason::TagResolutionError];

/// Returns `true` for the kind NodePool.
#[must_use]
pub fn is_node_pool(resource: &ApiResource) -> bool {
    use kube::Resource;
    resource.group == NodePool::group(&()) && resource.kind == NodePool::kind(&())
}

/// Assesses a pool whose spec has the wanted image.
///
/// It is complete when all nodes have booted the image. It has failed with the reason of `Degraded` if no node goes on:
/// after a halt, or if the spec or the tag cannot be used. Without the tag, the pool keeps the image before. So a pool
/// that was complete stays so while the registry does not answer.
#[must_use]
pub fn assess(object: &GenericObject, previous: PreviousState) -> Assessment {
    read(object, previous).unwrap_or_else(|error| Assessment::unreadable(&error))
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    observed_generation: Option<i64>,
    node_count: i64,
    updated_count: i64,
    conditions: Vec<Condition>,
}

fn read(object: &GenericObject, previous: PreviousState) -> Result<Assessment, Unreadable> {
    let status: Status = parse_status(&object.status)?;
    let updated = status.updated_count;
    let counts = Counts { desired: status.node_count, updated, ready: updated, updated_ready: updated };
    if object.metadata.deletion_timestamp.is_some() {
        return Ok(Assessment::in_progress(counts, "the object is being deleted"));
    }
    if status.observed_generation != object.metadata.generation {
        let counts = Counts { updated: 0, updated_ready: 0, ..counts };
        return Ok(Assessment::in_progress(counts, "the controller has not observed the change yet"));
    }
    let degraded = find(&status.conditions, DEGRADED).filter(|condition| condition.is_true());
    let is_fatal =
        |condition: &&Condition| FATAL.iter().any(|reason| reason.to_string() == condition.reason());
    let up_to_date = find(&status.conditions, UP_TO_DATE);
    let is_updated = up_to_date.is_some_and(Condition::is_true);
    let failure = degraded.filter(is_fatal).filter(|_| !is_updated || previous != PreviousState::Complete);
    Ok(match (failure, up_to_date) {
        (Some(failure), _) => Assessment::failed(counts, failure.reason(), failure.text()),
        (None, Some(condition)) if is_updated => {
            Assessment::complete(counts, condition.last_transition_time.as_ref())
        }
        (None, condition) => {
            let text = degraded.or(condition).map_or("the controller has not reported yet", Condition::text);
            Assessment::in_progress(counts, text)
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{complete, failed, in_progress, summary};
    use super::*;

    fn pool(status: &Value) -> GenericObject {
        let metadata = json!({"name": "workers", "generation": 2});
        serde_json::from_value(json!({"metadata": metadata, "spec": {}, "status": status})).unwrap()
    }

    /// Returns a status with the reasons of its two conditions; `=` makes one true.
    fn status(updated: i64, up_to_date: &str, degraded: &str) -> Value {
        let condition = |type_: &str, text: &str| {
            let (reason, is_true) = text.strip_prefix('=').map_or((text, "False"), |reason| (reason, "True"));
            json!({
                "type": type_, "status": is_true, "reason": reason, "message": format!("{type_} message"),
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        };
        json!({
            "observedGeneration": 2, "nodeCount": 3, "updatedCount": updated,
            "conditions": [condition(UP_TO_DATE, up_to_date), condition(DEGRADED, degraded)],
        })
    }

    #[test]
    fn every_reason() {
        use PreviousState::{Complete, Incomplete};
        let ended = complete(3, 3, 3, Some("2026-01-01T00:00:00Z"));
        let waiting = |updated, text: &str| in_progress(3, updated, updated, text);
        for (status, previous, expected) in [
            (status(3, "=AllUpdated", "Healthy"), Incomplete, ended.clone()),
            (status(3, "=AllUpdated", "=NodeDegraded"), Incomplete, ended.clone()),
            (status(3, "=AllUpdated", "=NodeConflict"), Incomplete, ended.clone()),
            (status(1, "RolloutInProgress", "Healthy"), Incomplete, waiting(1, "UpToDate message")),
            (status(1, "Paused", "Healthy"), Incomplete, waiting(1, "UpToDate message")),
            (status(0, "OutsideWindow", "Healthy"), Incomplete, waiting(0, "UpToDate message")),
            (status(1, "RolloutInProgress", "=NodeDegraded"), Complete, waiting(1, "Degraded message")),
            (
                status(1, "RolloutInProgress", "=RolloutHalted"),
                Complete,
                failed(3, 1, 1, "RolloutHalted", "Degraded message"),
            ),
            (
                status(3, "=AllUpdated", "=InvalidSpec"),
                Incomplete,
                failed(3, 3, 3, "InvalidSpec", "Degraded message"),
            ),
            // All nodes have the image before, and the tag of the new one is not known.
            (
                status(3, "=AllUpdated", "=TagResolutionError"),
                Incomplete,
                failed(3, 3, 3, "TagResolutionError", "Degraded message"),
            ),
            // The image was booted, and its tag is resolved again.
            (status(3, "=AllUpdated", "=TagResolutionError"), Complete, ended),
        ] {
            assert_eq!(summary(&assess(&pool(&status), previous)), expected, "{status}");
        }
    }

    #[test]
    fn a_status_of_an_earlier_spec_says_nothing() {
        let unobserved = "the controller has not observed the change yet";
        let mut old = status(3, "=AllUpdated", "Healthy");
        old["observedGeneration"] = json!(1);
        for (status, expected) in [
            (old, in_progress(3, 0, 3, unobserved)),
            (Value::Null, in_progress(0, 0, 0, unobserved)),
            (json!({"observedGeneration": 2}), in_progress(0, 0, 0, "the controller has not reported yet")),
            (json!({"observedGeneration": "x"}), "in progress 0/0/0 the object cannot be read: ".to_owned()),
        ] {
            let found = summary(&assess(&pool(&status), PreviousState::Unknown));
            assert!(found.starts_with(&expected), "{found}");
        }
    }
}
