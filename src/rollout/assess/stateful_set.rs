//! The rollout of a StatefulSet, by its revisions.
//!
//! Its controller sets no conditions; errors are reported by its pods. Source: `computeReplicaStatus` and
//! `completeRollingUpdate` in `pkg/controller/statefulset/` of Kubernetes.

use super::{Assessment, Counts, PreviousState};
use crate::rollout::objects::{StatefulSet, StatefulSetSpec, StatefulSetStatus, Unreadable};

/// Assesses a StatefulSet that has the wanted image.
///
/// A rolling update is complete when the controller makes `updateRevision` the `currentRevision`. With `OnDelete`
/// or a partition it never does, so no pod may have another revision.
///
/// The revisions are equal from the creation of a StatefulSet on, and again after a change that is taken back. So
/// a set whose rollout was observed needs all pods to be updated and ready, once. At the first observation, when an
/// unready pod says nothing about the rollout, they only have to be updated.
#[must_use]
pub fn assess(object: &StatefulSet, previous: PreviousState) -> Assessment {
    read(object, previous).unwrap_or_else(Assessment::unreadable)
}

fn read(object: &StatefulSet, previous: PreviousState) -> Result<Assessment, &Unreadable> {
    let (spec, status) = (object.spec.get()?, object.status.get()?);
    let desired = spec.replicas.unwrap_or(1);
    let is_observed = status.observed_generation >= object.metadata.generation;
    let all = is_observed.then_some(status.replicas);
    let counts = Counts::new(desired, status.updated_replicas, status.ready_replicas, all);
    if !is_observed {
        return Ok(if previous == PreviousState::Complete {
            Assessment::complete(counts, None)
        } else {
            Assessment::in_progress(counts, "the StatefulSet controller has not observed the change yet")
        });
    }
    let is_one_revision = status.update_revision == status.current_revision;
    let is_updated = status.updated_replicas >= status.replicas && status.updated_replicas >= desired;
    let is_complete = match previous {
        // A terminating pod counts as a replica of no revision, so `updatedReplicas` is no measure here.
        PreviousState::Complete => is_one_revision || updates_by_hand(spec) && status.current_replicas == 0,
        PreviousState::Incomplete | PreviousState::Unknown => {
            let is_ready = previous == PreviousState::Unknown || status.ready_replicas >= desired;
            (is_one_revision || updates_by_hand(spec)) && is_updated && is_ready
        }
    };
    Ok(if is_complete { Assessment::complete(counts, None) } else { waiting(counts, spec, status) })
}

/// Returns `true` if a user decides about the update of some pods.
fn updates_by_hand(spec: &StatefulSetSpec) -> bool {
    is_on_delete(spec) || partition(spec) > 0
}

fn is_on_delete(spec: &StatefulSetSpec) -> bool {
    spec.update_strategy.kind.as_deref() == Some("OnDelete")
}

fn partition(spec: &StatefulSetSpec) -> i64 {
    if is_on_delete(spec) { 0 } else { spec.update_strategy.rolling_update.partition.unwrap_or(0) }
}

fn waiting(counts: Counts, spec: &StatefulSetSpec, status: &StatefulSetStatus) -> Assessment {
    let Counts { desired, updated, ready, .. } = counts;
    let old = status.replicas.saturating_sub(updated);
    let text = if old > 0 && is_on_delete(spec) {
        format!("pods of the old revision, until they are deleted: {old}")
    } else if old > 0 && updated >= desired.saturating_sub(partition(spec)) {
        format!("pods of the old revision below partition {}: {old}", partition(spec))
    } else if updated < desired {
        format!("pods of the current revision: {updated} of {desired}")
    } else {
        format!("ready pods: {ready} of {desired}")
    };
    Assessment::in_progress(counts, &text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{complete, in_progress, summary};
    use super::*;

    /// Returns a StatefulSet: replicas, current, updated and ready pods, then its two revisions.
    fn stateful_set(strategy: &Value, pods: [i64; 4], revisions: [&str; 2]) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "db", "namespace": "apps", "generation": 2},
            "spec": {
                "replicas": 3, "serviceName": "db", "podManagementPolicy": "OrderedReady",
                "selector": {"matchLabels": {"app": "db"}}, "updateStrategy": strategy,
                "template": {"spec": {"containers": [{"name": "db", "image": "postgres:17.1"}]}},
            },
            "status": {
                "observedGeneration": 2, "collisionCount": 0, "replicas": pods[0], "currentReplicas": pods[1],
                "updatedReplicas": pods[2], "readyReplicas": pods[3], "availableReplicas": pods[3],
                "currentRevision": revisions[0], "updateRevision": revisions[1],
            },
        })
    }

    #[test]
    fn every_row_of_the_rule() {
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}});
        let partition = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
        let on_delete = json!({"type": "OnDelete"});
        let (one, two) = (["db-a", "db-a"], ["db-a", "db-b"]);
        let table = [
            ("complete", &rolling, [3, 3, 3, 3], one, false, complete(3, 3, 3, None)),
            (
                "in progress",
                &rolling,
                [3, 2, 1, 3],
                two,
                false,
                in_progress(3, 1, 3, "pods of the current revision: 1 of 3"),
            ),
            (
                "the last pod is not ready",
                &rolling,
                [3, 0, 3, 2],
                two,
                false,
                in_progress(3, 3, 2, "ready pods: 2 of 3"),
            ),
            (
                "new, with one pod",
                &rolling,
                [1, 1, 1, 0],
                one,
                false,
                in_progress(3, 1, 0, "pods of the current revision: 1 of 3"),
            ),
            (
                "new, without pods",
                &rolling,
                [0; 4],
                one,
                false,
                in_progress(3, 0, 0, "pods of the current revision: 0 of 3"),
            ),
            (
                "a change that was taken back",
                &rolling,
                [3, 2, 2, 3],
                one,
                false,
                in_progress(3, 2, 3, "pods of the current revision: 2 of 3"),
            ),
            ("an unready pod after the end", &rolling, [3, 3, 3, 2], one, true, complete(3, 3, 2, None)),
            ("a terminating pod after the end", &rolling, [3, 2, 2, 2], one, true, complete(3, 2, 2, None)),
            (
                "another rollout of the same image",
                &rolling,
                [3, 2, 1, 3],
                two,
                true,
                in_progress(3, 1, 3, "pods of the current revision: 1 of 3"),
            ),
            (
                "partition",
                &partition,
                [3, 2, 1, 3],
                two,
                false,
                in_progress(3, 1, 3, "pods of the old revision below partition 2: 2"),
            ),
            ("partition, no old pod", &partition, [3, 0, 3, 3], two, false, complete(3, 3, 3, None)),
            (
                "on delete",
                &on_delete,
                [3, 1, 2, 3],
                two,
                false,
                in_progress(3, 2, 3, "pods of the old revision, until they are deleted: 1"),
            ),
            ("on delete, no old pod", &on_delete, [3, 0, 3, 3], two, false, complete(3, 3, 3, None)),
            (
                "on delete, all pods deleted",
                &on_delete,
                [0; 4],
                two,
                false,
                in_progress(3, 0, 0, "pods of the current revision: 0 of 3"),
            ),
            (
                "on delete, a terminating pod after the end",
                &on_delete,
                [3, 0, 2, 2],
                two,
                true,
                complete(3, 2, 2, None),
            ),
            (
                "on delete, an old pod after a change of the same image",
                &on_delete,
                [3, 1, 2, 3],
                two,
                true,
                in_progress(3, 2, 3, "pods of the old revision, until they are deleted: 1"),
            ),
        ];
        for (name, strategy, pods, revisions, was_complete, expected) in table {
            let object = serde_json::from_value(stateful_set(strategy, pods, revisions)).unwrap();
            assert_eq!(summary(&assess(&object, state(was_complete))), expected, "{name}");
        }
    }

    fn state(was_complete: bool) -> PreviousState {
        if was_complete { PreviousState::Complete } else { PreviousState::Incomplete }
    }

    #[test]
    fn a_stateful_set_that_ran_before_needs_no_ready_pod_but_its_revision() {
        let rolling = json!({"type": "RollingUpdate"});
        for (pods, revisions, expected) in [
            ([3, 3, 3, 2], ["db-a", "db-a"], complete(3, 3, 2, None)),
            ([3, 1, 2, 3], ["db-a", "db-b"], in_progress(3, 2, 3, "pods of the current revision: 2 of 3")),
            // It was made a moment ago.
            ([1, 1, 1, 0], ["db-a", "db-a"], in_progress(3, 1, 0, "pods of the current revision: 1 of 3")),
        ] {
            let object = serde_json::from_value(stateful_set(&rolling, pods, revisions)).unwrap();
            assert_eq!(summary(&assess(&object, PreviousState::Unknown)), expected, "{pods:?}");
        }
    }

    #[test]
    fn the_status_must_describe_the_spec() {
        let mut object = stateful_set(&json!(null), [3, 3, 3, 3], ["db-a", "db-a"]);
        object["metadata"]["generation"] = json!(3);
        let object = serde_json::from_value(object).unwrap();
        let text = "the StatefulSet controller has not observed the change yet";
        assert_eq!(summary(&assess(&object, PreviousState::Incomplete)), in_progress(3, 3, 3, text));
        assert_eq!(summary(&assess(&object, PreviousState::Complete)), complete(3, 3, 3, None));
    }

    #[test]
    fn no_replicas_are_complete_when_observed() {
        let mut object = stateful_set(&json!(null), [0; 4], ["db-a", "db-a"]);
        object["spec"]["replicas"] = json!(0);
        assert_eq!(
            summary(&assess(&serde_json::from_value(object).unwrap(), PreviousState::Incomplete)),
            complete(0, 0, 0, None)
        );
    }
}
