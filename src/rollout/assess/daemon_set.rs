//! The rollout of a DaemonSet, by its counts.
//!
//! Its controller sets no conditions; errors are reported by its pods. Source: the documentation of
//! `DaemonSetStatus` in the API reference of Kubernetes.

use super::{Assessment, Counts, PreviousState};
use crate::rollout::objects::{DaemonSet, Unreadable};

/// Assesses a DaemonSet that has the wanted image.
///
/// It is complete when the pods of all nodes are updated and have once been available. After that, a new node and
/// an unavailable pod change only the counts. Its status does not tell if a pod was available before, so at the first
/// observation it is enough that all are updated.
#[must_use]
pub fn assess(object: &DaemonSet, previous: PreviousState) -> Assessment {
    read(object, previous).unwrap_or_else(Assessment::unreadable)
}

fn read(object: &DaemonSet, previous: PreviousState) -> Result<Assessment, &Unreadable> {
    let status = object.status.get()?;
    let (desired, updated) = (status.desired_number_scheduled, status.updated_number_scheduled);
    let is_observed = status.observed_generation >= object.metadata.generation;
    let all = is_observed.then_some(status.current_number_scheduled);
    let counts = Counts::new(desired, updated, status.number_ready, all);
    let is_complete = match previous {
        PreviousState::Complete => !is_observed || updated >= status.current_number_scheduled,
        PreviousState::Incomplete => is_observed && updated >= desired && status.number_available >= desired,
        PreviousState::Unknown => is_observed && updated >= desired,
    };
    Ok(if is_complete {
        Assessment::complete(counts, None)
    } else if !is_observed {
        Assessment::in_progress(counts, "the DaemonSet controller has not observed the change yet")
    } else if updated < desired {
        Assessment::in_progress(counts, &format!("pods of the current template: {updated} of {desired}"))
    } else {
        let available = status.number_available;
        Assessment::in_progress(counts, &format!("available pods: {available} of {desired}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{complete, in_progress, summary};
    use super::*;

    /// Returns a DaemonSet: desired, current, updated, ready and available pods.
    fn daemon_set(generation: i64, pods: [i64; 5]) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": "agent", "namespace": "apps", "generation": generation},
            "spec": {
                "selector": {"matchLabels": {"app": "agent"}}, "updateStrategy": {"type": "RollingUpdate"},
                "template": {"spec": {"containers": [{"name": "agent", "image": "ghcr.io/a/agent:2"}]}},
            },
            "status": {
                "observedGeneration": 5, "numberMisscheduled": 0, "desiredNumberScheduled": pods[0],
                "currentNumberScheduled": pods[1], "updatedNumberScheduled": pods[2], "numberReady": pods[3],
                "numberAvailable": pods[4],
            },
        })
    }

    #[test]
    fn every_row_of_the_rule() {
        let table = [
            ("complete", 5, [4, 4, 4, 4, 4], false, complete(4, 4, 4, None)),
            ("no node", 5, [0; 5], false, complete(0, 0, 0, None)),
            (
                "in progress",
                5,
                [4, 4, 1, 4, 4],
                false,
                in_progress(4, 1, 4, "pods of the current template: 1 of 4"),
            ),
            (
                "updated, not available",
                5,
                [4, 4, 4, 4, 3],
                false,
                in_progress(4, 4, 4, "available pods: 3 of 4"),
            ),
            (
                "not observed",
                6,
                [4, 4, 4, 4, 4],
                false,
                in_progress(4, 4, 4, "the DaemonSet controller has not observed the change yet"),
            ),
            ("an unavailable pod after the end", 5, [4, 4, 4, 3, 3], true, complete(4, 4, 3, None)),
            ("a new node after the end", 5, [5, 4, 4, 4, 4], true, complete(5, 4, 4, None)),
            (
                "a change that is not observed after the end",
                6,
                [4, 4, 4, 4, 4],
                true,
                complete(4, 4, 4, None),
            ),
            (
                "another rollout of the same image",
                5,
                [4, 4, 1, 4, 4],
                true,
                in_progress(4, 1, 4, "pods of the current template: 1 of 4"),
            ),
        ];
        for (name, generation, pods, was_complete, expected) in table {
            let object = serde_json::from_value(daemon_set(generation, pods)).unwrap();
            let previous = if was_complete { PreviousState::Complete } else { PreviousState::Incomplete };
            assert_eq!(summary(&assess(&object, previous)), expected, "{name}");
        }
    }

    #[test]
    fn a_daemon_set_without_status_is_in_progress() {
        let object = json!({"metadata": {"name": "agent", "generation": 1}});
        let text = "the DaemonSet controller has not observed the change yet";
        let assessment = assess(&serde_json::from_value(object).unwrap(), PreviousState::Unknown);
        assert_eq!(summary(&assessment), in_progress(0, 0, 0, text));
    }

    #[test]
    fn a_daemon_set_that_ran_before_needs_no_available_pod_on_each_node() {
        for (pods, expected) in [
            ([4, 4, 4, 3, 3], complete(4, 4, 3, None)),
            ([4, 4, 3, 4, 4], in_progress(4, 3, 4, "pods of the current template: 3 of 4")),
        ] {
            let object = serde_json::from_value(daemon_set(5, pods)).unwrap();
            assert_eq!(summary(&assess(&object, PreviousState::Unknown)), expected, "{pods:?}");
        }
    }
}
