//! The status of an object of any kind, by the rules of kstatus.
//!
//! Kstatus is a library and a convention: `Reconciling` and `Stalled` are true only in an abnormal state, so an
//! object without status is current. Of its rules for kinds of Kubernetes, those of pods and ReplicaSets are here:
//! the other kinds have a rule of their own in this folder, or no image. Source: the README of `pkg/kstatus` in
//! cli-utils.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::ApiResource;
use serde::Deserialize;

use super::{Assessment, Counts};
use crate::rollout::objects::{Condition, GenericObject, PodStatus, Unreadable, find, parse_status};
use crate::rollout::pods;

/// Assesses an object whose spec has the place's value.
///
/// `Current` is complete, `InProgress` is in progress, and `Stalled` has failed with the condition's reason.
#[must_use]
pub fn assess(object: &GenericObject, resource: &ApiResource) -> Assessment {
    read(object, resource).unwrap_or_else(|error| Assessment::unreadable(&error))
}

/// The fields of the status that any kind may have.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    observed_generation: Option<i64>,
    conditions: Option<Vec<Condition>>,
}

fn read(object: &GenericObject, resource: &ApiResource) -> Result<Assessment, Unreadable> {
    let status: Status = parse_status(&object.status)?;
    let none = Counts::default();
    if object.metadata.deletion_timestamp.is_some() {
        return Ok(Assessment::in_progress(none, "the object is being deleted"));
    }
    let observed = status.observed_generation;
    if observed.is_some() && object.metadata.generation.is_some() && observed != object.metadata.generation {
        return Ok(Assessment::in_progress(none, "the controller has not observed the change yet"));
    }
    let conditions = status.conditions.unwrap_or_default();
    for condition in conditions.iter().filter(|condition| condition.is_true()) {
        match condition.kind.as_str() {
            "Reconciling" => return Ok(Assessment::in_progress(none, condition.text())),
            "Stalled" => {
                let code = Some(condition.reason()).filter(|reason| !reason.is_empty()).unwrap_or("Stalled");
                return Ok(Assessment::failed(none, code, condition.text()));
            }
            _ => {}
        }
    }
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") => return Ok(pod(&parse_status(&object.status)?, &conditions)),
        ("apps", "ReplicaSet") => {
            return Ok(replica_set(object, &parse_status(&object.status)?, &conditions));
        }
        _ => {}
    }
    let ready = find(&conditions, "Ready");
    Ok(match ready {
        Some(ready) if matches!(ready.status.as_str(), "False" | "Unknown") => {
            Assessment::in_progress(none, ready.text())
        }
        _ => Assessment::complete(none, ready.and_then(transition)),
    })
}

fn transition(condition: &Condition) -> Option<&Time> {
    condition.last_transition_time.as_ref()
}

/// Assesses a pod of its own: complete when it is ready or has ended.
///
/// It is failed when a container waits with an error, as the pods of other objects are.
fn pod(status: &PodStatus, conditions: &[Condition]) -> Assessment {
    let ready = find(conditions, "Ready").filter(|ready| ready.is_true());
    let counts = Counts::new(1, 1, ready.is_some().into(), Some(1));
    match status.phase.as_deref().unwrap_or_default() {
        "Succeeded" | "Failed" => return Assessment::complete(Counts { desired: 0, ..counts }, None),
        "Running" if ready.is_some() => return Assessment::complete(counts, ready.and_then(transition)),
        _ => {}
    }
    if let Some(failure) = pods::waiting(status) {
        return Assessment::failed(counts, &failure.code, &failure.message);
    }
    if status.phase.as_deref() == Some("Running") {
        return Assessment::in_progress(counts, "the pod is not ready");
    }
    let unscheduled = find(conditions, "PodScheduled").filter(|scheduled| scheduled.is_false());
    Assessment::in_progress(counts, unscheduled.map_or("the pod has not started", Condition::text))
}

/// The counts of a ReplicaSet.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ReplicaSetStatus {
    replicas: i64,
    fully_labeled_replicas: i64,
    ready_replicas: i64,
    available_replicas: i64,
}

/// Assesses a ReplicaSet of its own: complete when all pods are labeled, available and ready.
fn replica_set(object: &GenericObject, status: &ReplicaSetStatus, conditions: &[Condition]) -> Assessment {
    let desired = object.spec["replicas"].as_i64().unwrap_or(1);
    let (labeled, all) = (status.fully_labeled_replicas, Some(status.replicas));
    let counts = Counts::new(desired, labeled, status.ready_replicas, all);
    if let Some(failure) = find(conditions, "ReplicaFailure").filter(|failure| failure.is_true()) {
        return Assessment::in_progress(counts, failure.text());
    }
    let fewest = status.fully_labeled_replicas.min(status.available_replicas).min(status.ready_replicas);
    if fewest < desired {
        Assessment::in_progress(counts, &format!("available pods: {fewest} of {desired}"))
    } else if status.replicas > desired {
        Assessment::in_progress(
            counts,
            &format!("pods that end: {}", status.replicas.saturating_sub(desired)),
        )
    } else {
        Assessment::complete(counts, None)
    }
}

#[cfg(test)]
mod tests {
    use kube::core::GroupVersionKind;
    use serde_json::{Value, json};

    use super::super::testing::{complete, failed, in_progress, summary};
    use super::*;

    fn assessed(group: &str, kind: &str, object: Value) -> String {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        summary(&assess(&serde_json::from_value(object).unwrap(), &resource))
    }

    fn condition(kind: &str, status: &str) -> Value {
        json!({"type": kind, "status": status, "reason": "Reason", "message": format!("{kind} is {status}"),
            "lastTransitionTime": "2026-11-02T10:04:11Z"})
    }

    #[test]
    fn the_rules_for_any_kind() {
        let metadata = json!({"name": "db", "generation": 3});
        let unobserved = in_progress(0, 0, 0, "the controller has not observed the change yet");
        let says = |text| in_progress(0, 0, 0, text);
        let conditions = |list: &[Value]| json!({"observedGeneration": 3, "conditions": list});
        let table = [
            ("no status", json!(null), complete(0, 0, 0, None)),
            ("an empty status", json!({}), complete(0, 0, 0, None)),
            ("observed", json!({"observedGeneration": 3}), complete(0, 0, 0, None)),
            ("not observed", json!({"observedGeneration": 2}), unobserved.clone()),
            ("before the first observation of Flux", json!({"observedGeneration": -1}), unobserved.clone()),
            (
                "stalled before the change",
                json!({"observedGeneration": 2, "conditions": [condition("Stalled", "True")]}),
                unobserved,
            ),
            (
                "reconciling",
                conditions(&[condition("Ready", "True"), condition("Reconciling", "True")]),
                says("Reconciling is True"),
            ),
            (
                "stalled",
                conditions(&[condition("Ready", "False"), condition("Stalled", "True")]),
                failed(0, 0, 0, "Reason", "Stalled is True"),
            ),
            (
                "the first of both",
                conditions(&[condition("Stalled", "True"), condition("Reconciling", "True")]),
                failed(0, 0, 0, "Reason", "Stalled is True"),
            ),
            (
                "neither",
                conditions(&[condition("Stalled", "False"), condition("Reconciling", "False")]),
                complete(0, 0, 0, None),
            ),
            (
                "ready",
                conditions(&[condition("Ready", "True")]),
                complete(0, 0, 0, Some("2026-11-02T10:04:11Z")),
            ),
            ("not ready", conditions(&[condition("Ready", "False")]), says("Ready is False")),
            ("unknown", conditions(&[condition("Ready", "Unknown")]), says("Ready is Unknown")),
            (
                "stalled without a reason",
                json!({"conditions": [{"type": "Stalled", "status": "True"}]}),
                failed(0, 0, 0, "Stalled", ""),
            ),
            (
                "conditions without a time",
                conditions(&[
                    json!({"type": "Ready", "status": "True", "lastTransitionTime": "", "lastUpdateTime": 7}),
                    json!({"type": null, "status": null, "reason": null, "message": null}),
                ]),
                complete(0, 0, 0, None),
            ),
            ("null", json!({"conditions": null, "observedGeneration": null}), complete(0, 0, 0, None)),
            ("other fields", json!({"phase": {"x": 1}, "replicas": "three"}), complete(0, 0, 0, None)),
            (
                "malformed conditions",
                json!({"conditions": {"Ready": true}}),
                says("the object cannot be read: status.conditions: invalid type: map, expected a sequence"),
            ),
            (
                "a malformed generation",
                json!({"observedGeneration": "3"}),
                says(
                    "the object cannot be read: status.observedGeneration: invalid type: string \"3\", expected i64",
                ),
            ),
        ];
        for (name, status, expected) in table {
            let object = json!({"metadata": metadata, "spec": {"image": "postgres:17.1"}, "status": status});
            assert_eq!(assessed("db.example.com", "Database", object), expected, "{name}");
        }
        let deleted = json!({"metadata": {"deletionTimestamp": "2026-11-02T10:04:11Z"}});
        assert_eq!(assessed("", "ConfigMap", deleted), says("the object is being deleted"));
    }

    #[test]
    fn pods() {
        let unschedulable = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/3 nodes are available"});
        let table = [
            (
                json!({"phase": "Running", "conditions": [condition("Ready", "True")]}),
                complete(1, 1, 1, Some("2026-11-02T10:04:11Z")),
            ),
            (
                json!({"phase": "Running", "conditions": [condition("Ready", "False")]}),
                in_progress(1, 1, 0, "the pod is not ready"),
            ),
            (
                json!({"phase": "Succeeded", "conditions": [condition("Ready", "False")]}),
                complete(0, 1, 0, None),
            ),
            (json!({"phase": "Failed"}), complete(0, 1, 0, None)),
            (
                json!({"phase": "Pending", "conditions": [unschedulable]}),
                in_progress(1, 1, 0, "0/3 nodes are available"),
            ),
            (json!({"phase": "Pending"}), in_progress(1, 1, 0, "the pod has not started")),
            (json!({}), in_progress(1, 1, 0, "the pod has not started")),
        ];
        for (status, expected) in table {
            assert_eq!(assessed("", "Pod", json!({"status": status})), expected, "{status}");
        }
    }

    /// Kstatus knows `CrashLoopBackOff` only; the pods of other objects fail for each of these reasons.
    #[test]
    fn a_pod_whose_container_waits_with_an_error_has_failed() {
        let ended = json!({"terminated": {"exitCode": 3, "reason": "Error"}});
        let container = |reason: &str, last: &Value| {
            json!({
                "name": "db", "restartCount": 2, "lastState": last,
                "state": {"waiting": {"reason": reason, "message": format!("{reason} of db")}},
            })
        };
        let table = [
            (
                json!({"phase": "Pending", "containerStatuses": [container("ImagePullBackOff", &json!(null))]}),
                failed(1, 1, 0, "ImagePullBackOff", "container db: ImagePullBackOff of db"),
            ),
            (
                json!({"phase": "Running", "containerStatuses": [container("CrashLoopBackOff", &ended)]}),
                failed(1, 1, 0, "CrashLoopBackOff", "container db: exit code 3, 2 restarts"),
            ),
            (
                json!({"phase": "Pending", "containerStatuses": [container("ContainerCreating", &json!(null))],
                    "initContainerStatuses": [container("RunContainerError", &json!(null))]}),
                failed(1, 1, 0, "RunContainerError", "container db: RunContainerError of db"),
            ),
            (
                json!({"phase": "Pending", "containerStatuses": [container("ContainerCreating", &json!(null))]}),
                in_progress(1, 1, 0, "the pod has not started"),
            ),
        ];
        for (status, expected) in table {
            assert_eq!(assessed("", "Pod", json!({"status": status})), expected, "{status}");
        }
    }

    #[test]
    fn replica_sets() {
        let counts = |all, labeled, ready, available| {
            json!({"replicas": all, "fullyLabeledReplicas": labeled, "readyReplicas": ready,
                "availableReplicas": available, "observedGeneration": 1})
        };
        let table = [
            (counts(2, 2, 2, 2), complete(2, 2, 2, None)),
            (counts(2, 2, 2, 1), in_progress(2, 2, 2, "available pods: 1 of 2")),
            (counts(2, 2, 1, 1), in_progress(2, 2, 1, "available pods: 1 of 2")),
            (counts(3, 3, 3, 3), in_progress(2, 3, 3, "pods that end: 1")),
            (
                json!({"conditions": [condition("ReplicaFailure", "True")]}),
                in_progress(2, 0, 0, "ReplicaFailure is True"),
            ),
        ];
        for (status, expected) in table {
            let object = json!({"metadata": {"generation": 1}, "spec": {"replicas": 2}, "status": status});
            assert_eq!(assessed("apps", "ReplicaSet", object), expected, "{status}");
        }
    }
}
