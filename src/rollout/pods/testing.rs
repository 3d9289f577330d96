//! Pods of tests, and what is reported of them.

use serde_json::{Value, json};

use super::list::{PodList, PodReport, report};
use crate::rollout::objects::Pod;

pub(super) const WANTED: &str = "ghcr.io/a/podinfo:6.9.0";
pub(super) const NOW: &str = "2026-11-02T10:30:00Z";

/// Returns a scheduled pod of the wanted image that is unready since a time.
pub(super) fn pod(name: &str, since: &str, state: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "creationTimestamp": "2026-11-02T10:00:00Z"},
        "spec": {
            "restartPolicy": "Always", "nodeName": "node-1",
            "initContainers": [{"name": "setup", "image": "busybox:1"}],
            "containers": [{"name": "podinfo", "image": WANTED}, {"name": "proxy", "image": "envoy:1"}],
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {"type": "Ready", "status": "False", "reason": "ContainersNotReady",
                    "message": "containers with unready status: [podinfo]", "lastTransitionTime": since},
            ],
            "containerStatuses": [state],
        },
    })
}

pub(super) fn waiting(reason: &str, message: &str) -> Value {
    json!({"name": "podinfo", "ready": false, "restartCount": 0,
        "state": {"waiting": {"reason": reason, "message": message}}})
}

pub(super) fn ready(name: &str) -> Value {
    let mut pod = pod(name, NOW, &json!({"name": "podinfo", "ready": true, "state": {"running": {}}}));
    pod["status"]["conditions"][1]["status"] = json!("True");
    pod
}

pub(super) fn unschedulable(name: &str) -> Value {
    let mut pod = pod(name, NOW, &json!({"name": "podinfo"}));
    pod["status"] = json!({"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 Insufficient cpu.", "lastTransitionTime": "2026-11-02T10:00:00Z",
    }]});
    pod
}

/// Returns a list of [`NOW`].
pub(super) fn list(pods: &[Value]) -> PodList {
    let pods: Vec<Pod> = pods.iter().map(|pod| serde_json::from_value(pod.clone()).unwrap()).collect();
    PodList { pods, listed_at: NOW.parse().unwrap() }
}

pub(super) fn reported(pods: &[Value]) -> PodReport {
    report(&list(pods), |image| image == WANTED)
}

/// Returns the code and the message of a failure.
pub(super) fn failed(pods: &[Value]) -> Option<String> {
    reported(pods).failure.map(|failure| format!("{}: {}", failure.code, failure.message))
}
