//! The rollout of a Deployment, as its controller decides it.
//!
//! Sources: `syncRolloutStatus` in `pkg/controller/deployment/progress.go` and `DeploymentComplete` in
//! `pkg/controller/deployment/util/deployment_util.go` of Kubernetes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Assessment, Counts, PreviousState};
use crate::rollout::objects::{
    Condition, Deployment, DeploymentSpec, DeploymentStatus, Unreadable, find, is_true,
};

/// The deadline that the API server and the controller treat as none, in seconds.
const NO_DEADLINE: i64 = i32::MAX as i64;

/// Assesses a Deployment that has the wanted image.
///
/// Without replicas it is complete at once. Its condition may then be that of the image before, so the reported end
/// counts only at the first observation.
///
/// Codes: `ReplicaFailure`, `ProgressDeadlineExceeded`.
#[must_use]
pub fn assess(object: &Deployment, previous: PreviousState) -> Assessment {
    read(object, previous).unwrap_or_else(Assessment::unreadable)
}

fn read(object: &Deployment, previous: PreviousState) -> Result<Assessment, &Unreadable> {
    let was_complete = previous == PreviousState::Complete;
    let (spec, status) = (object.spec.get()?, object.status.get()?);
    let desired = spec.replicas.unwrap_or(1);
    let is_observed = status.observed_generation >= object.metadata.generation;
    let all = is_observed.then_some(status.replicas);
    let counts = Counts::new(desired, status.updated_replicas, status.ready_replicas, all);
    let progressing = find(&status.conditions, "Progressing");
    let finished = progressing.filter(|condition| is_available(condition)).and_then(end);

    if is_observed && is_true(&status.conditions, "ReplicaFailure") {
        let text = find(&status.conditions, "ReplicaFailure").map_or("", Condition::text);
        return Ok(Assessment::failed(counts, "ReplicaFailure", text));
    }
    if spec.paused {
        return Ok(Assessment::in_progress(counts, "the Deployment is paused"));
    }
    if desired == 0 {
        let finished = finished.filter(|_| previous == PreviousState::Unknown);
        return Ok(Assessment::complete(Counts { updated: 0, ready: 0, ..counts }, finished));
    }
    if !is_observed {
        return Ok(if was_complete {
            Assessment::complete(counts, finished)
        } else {
            Assessment::in_progress(counts, "the Deployment controller has not observed the change yet")
        });
    }
    if !has_deadline(spec) {
        let is_complete = counts_are_complete(desired, status)
            || was_complete && status.replicas == status.updated_replicas;
        return Ok(if is_complete { Assessment::complete(counts, None) } else { waiting(counts, status) });
    }
    Ok(match progressing {
        Some(condition) if condition.has_reason("ProgressDeadlineExceeded") => {
            Assessment::failed(counts, "ProgressDeadlineExceeded", condition.text())
        }
        Some(condition) if is_available(condition) && status.replicas == status.updated_replicas => {
            Assessment::complete(counts, finished)
        }
        // The ReplicaSet could not be created, for example because of a quota.
        Some(condition) if condition.is_false() => Assessment::in_progress(counts, condition.text()),
        _ => waiting(counts, status),
    })
}

fn has_deadline(spec: &DeploymentSpec) -> bool {
    spec.progress_deadline_seconds.is_some_and(|seconds| seconds != NO_DEADLINE)
}

/// Returns `true` if the condition `Progressing` says that the rollout is complete.
fn is_available(progressing: &Condition) -> bool {
    progressing.has_reason("NewReplicaSetAvailable")
}

/// Returns the end of a complete rollout.
///
/// `lastTransitionTime` is older, because the condition was true before.
fn end(progressing: &Condition) -> Option<&Time> {
    progressing.last_update_time.as_ref().or(progressing.last_transition_time.as_ref())
}

fn counts_are_complete(desired: i64, status: &DeploymentStatus) -> bool {
    [status.updated_replicas, status.replicas, status.available_replicas] == [desired; 3]
}

fn waiting(counts: Counts, status: &DeploymentStatus) -> Assessment {
    let Counts { desired, updated, .. } = counts;
    let text = if updated < desired {
        format!("pods of the current template: {updated} of {desired}")
    } else if status.replicas > updated {
        format!("pods of older templates: {}", status.replicas.saturating_sub(updated))
    } else {
        format!("available pods: {} of {desired}", status.available_replicas)
    };
    Assessment::in_progress(counts, &text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{complete, failed, in_progress, summary};
    use super::*;

    /// A Deployment of three pods, with changes to its spec and status.
    fn deployment(spec: Value, status: Value) -> Value {
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "podinfo", "namespace": "apps", "generation": 4},
            "spec": {
                "replicas": 3, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 10,
                "selector": {"matchLabels": {"app": "podinfo"}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
                "template": {"spec": {"containers": [{"name": "podinfo", "image": "ghcr.io/a/podinfo:6.9.0"}]}},
            },
            "status": {
                "observedGeneration": 4, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3,
                "availableReplicas": 3,
            },
        });
        for (part, changes) in [("spec", spec), ("status", status)] {
            for (key, value) in changes.as_object().unwrap() {
                object[part][key] = value.clone();
            }
        }
        object
    }

    fn condition(kind: &str, status: &str, reason: &str) -> Value {
        json!({
            "type": kind, "status": status, "reason": reason, "message": format!("{reason} of podinfo"),
            "lastTransitionTime": "2026-11-01T08:00:00Z", "lastUpdateTime": "2026-11-02T10:04:11Z",
        })
    }

    #[test]
    fn every_row_of_the_rule() {
        let available = || condition("Progressing", "True", "NewReplicaSetAvailable");
        let updated = || condition("Progressing", "True", "ReplicaSetUpdated");
        let exceeded = || condition("Progressing", "False", "ProgressDeadlineExceeded");
        let quota = || condition("ReplicaFailure", "True", "FailedCreate");
        let unavailable = || condition("Available", "False", "MinimumReplicasUnavailable");
        let ended = "2026-11-02T10:04:11Z";
        let table = [
            ("complete", json!({}), json!({"conditions": [available()]}), complete(3, 3, 3, Some(ended))),
            (
                "in progress",
                json!({}),
                json!({"replicas": 4, "updatedReplicas": 2, "conditions": [updated()]}),
                in_progress(3, 2, 3, "pods of the current template: 2 of 3"),
            ),
            (
                "older pods are left",
                json!({}),
                json!({"replicas": 5, "conditions": [updated()]}),
                in_progress(3, 3, 3, "pods of older templates: 2"),
            ),
            (
                "not available for long enough",
                json!({}),
                json!({"availableReplicas": 1, "conditions": [updated()]}),
                in_progress(3, 3, 3, "available pods: 1 of 3"),
            ),
            (
                "not observed",
                json!({}),
                json!({"observedGeneration": 3, "conditions": [available()]}),
                in_progress(3, 3, 3, "the Deployment controller has not observed the change yet"),
            ),
            (
                "no status yet",
                json!({}),
                json!({"observedGeneration": null, "replicas": 0, "updatedReplicas": 0, "readyReplicas": 0,
                    "availableReplicas": 0}),
                in_progress(3, 0, 0, "the Deployment controller has not observed the change yet"),
            ),
            (
                "one unready pod after the end",
                json!({}),
                json!({"readyReplicas": 2, "availableReplicas": 2, "conditions": [unavailable(), available()]}),
                complete(3, 3, 2, Some(ended)),
            ),
            (
                "scaled up after the end",
                json!({"replicas": 30}),
                json!({"replicas": 30, "updatedReplicas": 30, "conditions": [available()]}),
                complete(30, 30, 3, Some(ended)),
            ),
            (
                "scaled down after the end",
                json!({"replicas": 1}),
                json!({"conditions": [available()]}),
                complete(1, 3, 3, Some(ended)),
            ),
            (
                "the condition is of the rollout before, and an old pod is left",
                json!({}),
                json!({"updatedReplicas": 0, "conditions": [available()]}),
                in_progress(3, 0, 3, "pods of the current template: 0 of 3"),
            ),
            (
                "deadline exceeded",
                json!({}),
                json!({"updatedReplicas": 1, "conditions": [exceeded()]}),
                failed(3, 1, 3, "ProgressDeadlineExceeded", "ProgressDeadlineExceeded of podinfo"),
            ),
            (
                "deadline of the rollout before",
                json!({}),
                json!({"observedGeneration": 3, "conditions": [exceeded()]}),
                in_progress(3, 3, 3, "the Deployment controller has not observed the change yet"),
            ),
            (
                "pods cannot be created",
                json!({}),
                json!({"updatedReplicas": 0, "conditions": [updated(), quota()]}),
                failed(3, 0, 3, "ReplicaFailure", "FailedCreate of podinfo"),
            ),
            (
                "the ReplicaSet cannot be created",
                json!({}),
                json!({"updatedReplicas": 0,
                    "conditions": [condition("Progressing", "False", "ReplicaSetCreateError")]}),
                in_progress(3, 0, 3, "ReplicaSetCreateError of podinfo"),
            ),
            (
                "paused",
                json!({"paused": true}),
                json!({"conditions": [condition("Progressing", "Unknown", "DeploymentPaused")]}),
                in_progress(3, 3, 3, "the Deployment is paused"),
            ),
            (
                "paused, pods cannot be created",
                json!({"paused": true}),
                json!({"conditions": [quota()]}),
                failed(3, 3, 3, "ReplicaFailure", "FailedCreate of podinfo"),
            ),
            ("no replicas", json!({"replicas": 0}), json!({"conditions": []}), complete(0, 0, 0, None)),
            (
                "no replicas, not observed",
                json!({"replicas": 0}),
                json!({"observedGeneration": 3, "conditions": [available()]}),
                complete(0, 0, 0, Some(ended)),
            ),
            (
                "no replicas, pods cannot be created",
                json!({"replicas": 0}),
                json!({"conditions": [quota()]}),
                failed(0, 3, 3, "ReplicaFailure", "FailedCreate of podinfo"),
            ),
            (
                "the default of one replica",
                json!({"replicas": null}),
                json!({"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "conditions": [available()]}),
                complete(1, 1, 1, Some(ended)),
            ),
        ];
        for (name, spec, status, expected) in table {
            let object = serde_json::from_value(deployment(spec, status)).unwrap();
            assert_eq!(summary(&assess(&object, PreviousState::Unknown)), expected, "{name}");
        }
    }

    /// With replicas, the condition is that of the rollout that is complete.
    #[test]
    fn without_replicas_the_reported_end_counts_only_at_the_first_observation() {
        use PreviousState::{Complete, Incomplete, Unknown};
        let ended = Some("2026-11-02T10:04:11Z");
        let status = json!({"conditions": [condition("Progressing", "True", "NewReplicaSetAvailable")]});
        let table = [
            (0, Unknown, complete(0, 0, 0, ended)),
            (0, Incomplete, complete(0, 0, 0, None)),
            (0, Complete, complete(0, 0, 0, None)),
            (3, Incomplete, complete(3, 3, 3, ended)),
        ];
        for (replicas, previous, expected) in table {
            let object = deployment(json!({"replicas": replicas}), status.clone());
            let assessment = assess(&serde_json::from_value(object).unwrap(), previous);
            assert_eq!(summary(&assessment), expected, "{replicas} {previous:?}");
        }
    }

    #[test]
    fn without_a_deadline_the_counts_decide() {
        for deadline in [json!(null), json!(i32::MAX)] {
            let table = [
                ("complete", json!({}), false, complete(3, 3, 3, None)),
                (
                    "one unavailable pod before the end",
                    json!({"availableReplicas": 2}),
                    false,
                    in_progress(3, 3, 3, "available pods: 2 of 3"),
                ),
                (
                    "one unavailable pod after the end",
                    json!({"availableReplicas": 2}),
                    true,
                    complete(3, 3, 3, None),
                ),
                (
                    "another rollout of the same image",
                    json!({"replicas": 4, "updatedReplicas": 1}),
                    true,
                    in_progress(3, 1, 3, "pods of the current template: 1 of 3"),
                ),
                (
                    "pods cannot be created",
                    json!({"updatedReplicas": 0, "conditions": [condition("ReplicaFailure", "True", "FailedCreate")]}),
                    false,
                    failed(3, 0, 3, "ReplicaFailure", "FailedCreate of podinfo"),
                ),
            ];
            for (name, status, was_complete, expected) in table {
                let previous = if was_complete { PreviousState::Complete } else { PreviousState::Incomplete };
                let object = deployment(json!({"progressDeadlineSeconds": deadline}), status);
                let assessment = assess(&serde_json::from_value(object).unwrap(), previous);
                assert_eq!(summary(&assessment), expected, "{name}, deadline {deadline}");
            }
        }
    }

    /// Between `kubectl scale` and the controller's answer, the status is of the generation before.
    #[test]
    fn a_scaled_deployment_stays_complete() {
        let available = condition("Progressing", "True", "NewReplicaSetAvailable");
        let status = json!({"observedGeneration": 3, "conditions": [available]});
        let object = serde_json::from_value(deployment(json!({"replicas": 30}), status)).unwrap();
        assert_eq!(
            summary(&assess(&object, PreviousState::Complete)),
            complete(30, 3, 3, Some("2026-11-02T10:04:11Z"))
        );
    }

    #[test]
    fn an_unreadable_field_is_a_message() {
        let object = serde_json::from_value(deployment(json!({}), json!({"replicas": "3"}))).unwrap();
        let text = "the object cannot be read: status.replicas: invalid type: string \"3\", expected i64";
        assert_eq!(summary(&assess(&object, PreviousState::Complete)), in_progress(0, 0, 0, text));
        let object =
            serde_json::from_value(deployment(json!({"strategy": 7}), json!({"collisionCount": "x"})));
        assert!(!summary(&assess(&object.unwrap(), PreviousState::Incomplete)).contains("cannot be read"));
    }
}
