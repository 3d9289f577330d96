//! The rollout of an Argo Rollout, by the phase that its controller reports.
//!
//! Source: `GetRolloutPhase` in `utils/rollout/rolloututil.go` of Argo Rollouts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Assessment, Counts};
use crate::rollout::objects::{ArgoRollout, ArgoRolloutStatus, Unreadable, find};

/// Assesses a Rollout that has the wanted image.
///
/// The image is in its template, or in the workload of its `workloadRef`. `workload_generation` is the generation of
/// that workload: its change does not change the Rollout, so the phase
/// may be that of the template before. Codes: `Degraded`, `Aborted`.
#[must_use]
pub fn assess(object: &ArgoRollout, workload_generation: Option<i64>, was_complete: bool) -> Assessment {
    read(object, workload_generation, was_complete).unwrap_or_else(Assessment::unreadable)
}

fn read(
    object: &ArgoRollout,
    workload_generation: Option<i64>,
    was_complete: bool,
) -> Result<Assessment, &Unreadable> {
    let (spec, status) = (object.spec.get()?, object.status.get()?);
    let text = status.message.as_deref().unwrap_or_default();
    let is_observed = is_observed(status.observed_generation.as_deref(), object.metadata.generation)
        && is_observed(status.workload_observed_generation.as_deref(), workload_generation);
    let all = is_observed.then_some(status.replicas);
    let desired = spec.replicas.unwrap_or(1);
    let counts = Counts::new(desired, status.updated_replicas, status.ready_replicas, all);
    let phase = status.phase.as_deref().unwrap_or_default();

    Ok(if !is_observed {
        if was_complete {
            Assessment::complete(counts, finished(status))
        } else {
            Assessment::in_progress(counts, "the Rollout controller has not observed the change yet")
        }
    } else if status.abort {
        Assessment::failed(counts, "Aborted", if text.is_empty() { "the rollout was aborted" } else { text })
    } else {
        match phase {
            "Healthy" => Assessment::complete(counts, finished(status)),
            "Degraded" => Assessment::failed(counts, "Degraded", text),
            // Pods of a promoted template restart, or a user scales: the phase is that of the pods.
            "Progressing" if was_complete && is_promoted(status) => {
                Assessment::complete(counts, finished(status))
            }
            "" => Assessment::in_progress(counts, "the Rollout has no phase"),
            _ if text.is_empty() => Assessment::in_progress(counts, phase),
            _ => Assessment::in_progress(counts, &format!("{phase}: {text}")),
        }
    })
}

/// Returns `true` if the status describes a generation.
///
/// Older versions report a hash instead, or nothing, which tells nothing; a larger number is a hash of digits.
fn is_observed(observed: Option<&str>, generation: Option<i64>) -> bool {
    let observed = observed.and_then(|observed| observed.parse::<i64>().ok());
    observed.is_none_or(|observed| generation.is_none_or(|generation| observed >= generation))
}

fn is_promoted(status: &ArgoRolloutStatus) -> bool {
    status.stable_rs.is_some() && status.stable_rs == status.current_pod_hash
}

fn finished(status: &ArgoRolloutStatus) -> Option<&Time> {
    let completed = find(&status.conditions, "Completed").filter(|condition| condition.is_true())?;
    completed.last_transition_time.as_ref()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{complete, failed, in_progress, summary};
    use super::*;

    fn rollout(status: Value) -> Value {
        let mut object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
            "metadata": {"name": "shop", "namespace": "apps", "generation": 7},
            "spec": {
                "replicas": 5, "strategy": {"canary": {"steps": [{"setWeight": 20}, {"pause": {}}]}},
                "selector": {"matchLabels": {"app": "shop"}},
                "template": {"spec": {"containers": [{"name": "shop", "image": "ghcr.io/a/shop:2.0.0"}]}},
            },
            "status": {
                "observedGeneration": "7", "phase": "Healthy", "replicas": 5, "updatedReplicas": 5,
                "readyReplicas": 5, "availableReplicas": 5, "currentPodHash": "66f8", "stableRS": "66f8",
                "conditions": [{
                    "type": "Completed", "status": "True", "reason": "RolloutCompleted",
                    "lastTransitionTime": "2026-11-02T10:04:11Z", "lastUpdateTime": "2026-11-02T10:04:11Z",
                }],
            },
        });
        let Value::Object(status) = status else { panic!("no fields: {status}") };
        for (key, value) in status {
            object["status"][key] = value;
        }
        object
    }

    #[test]
    fn every_row_of_the_rule() {
        let ended = Some("2026-11-02T10:04:11Z");
        let unobserved = "the Rollout controller has not observed the change yet";
        let restarting = json!({"phase": "Progressing", "message": "updated replicas are still becoming available",
            "readyReplicas": 4});
        let table = [
            ("healthy", json!({}), false, complete(5, 5, 5, ended)),
            (
                "healthy, of the generation before",
                json!({"observedGeneration": "6"}),
                false,
                in_progress(5, 5, 5, unobserved),
            ),
            ("scaled after the end", json!({"observedGeneration": "6"}), true, complete(5, 5, 5, ended)),
            (
                "degraded, of the generation before",
                json!({"observedGeneration": "6", "phase": "Degraded", "abort": true}),
                false,
                in_progress(5, 5, 5, unobserved),
            ),
            (
                "a hash as generation",
                json!({"observedGeneration": "5b9c7d"}),
                false,
                complete(5, 5, 5, ended),
            ),
            (
                "a hash of digits",
                json!({"observedGeneration": "7788995566"}),
                false,
                complete(5, 5, 5, ended),
            ),
            ("no generation", json!({"observedGeneration": null}), false, complete(5, 5, 5, ended)),
            ("no phase", json!({"phase": null}), false, in_progress(5, 5, 5, "the Rollout has no phase")),
            (
                "paused at a step",
                json!({"phase": "Paused", "message": "CanaryPauseStep", "updatedReplicas": 1, "currentPodHash": "77aa"}),
                true,
                in_progress(5, 1, 5, "Paused: CanaryPauseStep"),
            ),
            (
                "progressing without a message",
                json!({"phase": "Progressing"}),
                false,
                in_progress(5, 5, 5, "Progressing"),
            ),
            (
                "restarting before the end",
                restarting.clone(),
                false,
                in_progress(5, 5, 4, "Progressing: updated replicas are still becoming available"),
            ),
            ("restarting after the end", restarting, true, complete(5, 5, 4, ended)),
            (
                "another rollout of the same image",
                json!({"phase": "Progressing", "message": "more replicas need to be updated", "currentPodHash": "77aa"}),
                true,
                in_progress(5, 5, 5, "Progressing: more replicas need to be updated"),
            ),
            (
                "degraded",
                json!({"phase": "Degraded", "message": "ProgressDeadlineExceeded: ReplicaSet has timed out"}),
                true,
                failed(5, 5, 5, "Degraded", "ProgressDeadlineExceeded: ReplicaSet has timed out"),
            ),
            (
                "aborted",
                json!({"phase": "Degraded", "abort": true, "updatedReplicas": 0,
                    "message": "RolloutAborted: Rollout aborted update to revision 3"}),
                false,
                failed(5, 0, 5, "Aborted", "RolloutAborted: Rollout aborted update to revision 3"),
            ),
            (
                "aborted just now",
                json!({"abort": true}),
                false,
                failed(5, 5, 5, "Aborted", "the rollout was aborted"),
            ),
        ];
        for (name, status, was_complete, expected) in table {
            let object = serde_json::from_value(rollout(status)).unwrap();
            assert_eq!(summary(&assess(&object, None, was_complete)), expected, "{name}");
        }
    }

    /// A change of the workload does not change the generation of the Rollout.
    #[test]
    fn the_generation_of_a_referenced_workload_must_be_observed() {
        for (observed, generation, is_complete) in
            [(json!("3"), 3, true), (json!("3"), 4, false), (json!(null), 1, true), (json!("4"), 3, true)]
        {
            let mut object = rollout(json!({"workloadObservedGeneration": observed}));
            object["spec"] = json!({"replicas": 5, "workloadRef": {
                "apiVersion": "apps/v1", "kind": "Deployment", "name": "shop", "scaleDown": "onsuccess",
            }});
            let object: ArgoRollout = serde_json::from_value(object).unwrap();
            assert_eq!(object.spec.get().unwrap().workload_ref.as_ref().unwrap().name, "shop");
            let found = summary(&assess(&object, Some(generation), false));
            assert_eq!(found.starts_with("complete"), is_complete, "{observed}, {generation}: {found}");
        }
    }

    /// Deployments have a number there; a Rollout with one is malformed, not the others.
    #[test]
    fn a_generation_that_is_no_text_is_a_message() {
        let object = serde_json::from_value(rollout(json!({"observedGeneration": 7}))).unwrap();
        let text = "the object cannot be read: status.observedGeneration: invalid type: integer `7`, expected a string";
        assert_eq!(summary(&assess(&object, None, false)), in_progress(0, 0, 0, text));
    }
}
