//! The reason for which a pool is not up to date.

use tagboat_api::node_pool::{DEGRADED, UP_TO_DATE};

use crate::nodes::PoolDocument;

/// Returns the reason why a pool is not up to date; none if it is.
///
/// A status of an older generation of the spec says nothing about the present one. `needs_nodes` is true if a pool without
/// nodes does not count.
pub(super) fn blocker(pool: &PoolDocument, needs_nodes: bool) -> Option<String> {
    let is_observed = pool.status.observed_generation == pool.generation;
    if pool.deletion_timestamp.is_some() {
        // The status of the deletion names the nodes for which it waits.
        let awaited = pool.condition(UP_TO_DATE).filter(|_| is_observed);
        return Some(awaited.map_or_else(|| "it is being deleted".to_owned(), |found| found.message.clone()));
    }
    let Some(condition) = pool.condition(UP_TO_DATE) else { return Some("it has no status yet".to_owned()) };
    if !is_observed {
        return Some("the controller has not reported on its last change yet".to_owned());
    }
    if condition.status == "True" && !(needs_nodes && pool.status.node_count == 0) {
        return None;
    }
    let degraded = pool.condition(DEGRADED).filter(|condition| condition.status == "True");
    let causes = [Some(condition), degraded].into_iter().flatten();
    let causes = causes.map(|condition| format!("{}: {}", condition.reason, condition.message));
    Some(causes.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::nodes::PoolView;

    fn pool(observed: i64, conditions: &[(&str, &str, &str, &str)], deleted: &Value) -> PoolDocument {
        let condition = |(type_, status, reason, message): &(&str, &str, &str, &str)| {
            json!({"type": type_, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": "2026-11-23T10:00:00Z"})
        };
        let conditions: Vec<Value> = conditions.iter().map(condition).collect();
        let object = json!({
            "apiVersion": "tagboat.dev/v1alpha1", "kind": "NodePool",
            "metadata": {"name": "workers", "generation": 3, "deletionTimestamp": deleted},
            "spec": {"nodeSelector": {"matchLabels": {"role": "worker"}}},
            "status": {"observedGeneration": observed, "conditions": conditions},
        });
        let pool = Arc::new(serde_json::from_value(object).unwrap());
        PoolView { pool, nodes: Vec::new() }.document()
    }

    #[test]
    fn a_pool_is_up_to_date_by_the_condition_of_its_present_generation() {
        const DONE: (&str, &str, &str, &str) = (UP_TO_DATE, "True", "AllUpdated", "3/3 updated");
        const PROGRESS: (&str, &str, &str, &str) =
            (UP_TO_DATE, "False", "RolloutInProgress", "1/3 updated; 2 draining");
        const HEALTHY: (&str, &str, &str, &str) = (DEGRADED, "False", "Healthy", "no node has a problem");
        const HALTED: (&str, &str, &str, &str) = (DEGRADED, "True", "RolloutHalted", "no other node begins");
        const CONFLICT: (&str, &str, &str, &str) = (DEGRADED, "True", "NodeConflict", "a is in two");
        for (observed, conditions, expected) in [
            (3, &[DONE, HEALTHY][..], None),
            (3, &[DONE, CONFLICT], None),
            (2, &[DONE, HEALTHY], Some("the controller has not reported on its last change yet")),
            (3, &[PROGRESS, HEALTHY], Some("RolloutInProgress: 1/3 updated; 2 draining")),
            (
                3,
                &[PROGRESS, HALTED],
                Some("RolloutInProgress: 1/3 updated; 2 draining; RolloutHalted: no other node begins"),
            ),
            (0, &[], Some("it has no status yet")),
        ] {
            assert_eq!(
                blocker(&pool(observed, conditions, &json!(null)), false).as_deref(),
                expected,
                "{conditions:?}"
            );
        }
        const EMPTY: (&str, &str, &str, &str) = (UP_TO_DATE, "True", "AllUpdated", "0/0 updated; no node");
        let empty = pool(3, &[EMPTY, HEALTHY], &json!(null));
        assert_eq!(blocker(&empty, false), None);
        assert_eq!(blocker(&empty, true).as_deref(), Some("AllUpdated: 0/0 updated; no node"));
        const LEAVES: (&str, &str, &str, &str) =
            (UP_TO_DATE, "False", "RolloutInProgress", "being deleted: a is being released");
        for (observed, condition, expected) in
            [(2, DONE, "it is being deleted"), (3, LEAVES, "being deleted: a is being released")]
        {
            let deleted = pool(observed, &[condition], &json!("2026-11-23T11:00:00Z"));
            assert_eq!(blocker(&deleted, false).as_deref(), Some(expected));
        }
    }
}
