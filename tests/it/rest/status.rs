//! Statuses of deployments, as the tests write them.

use serde_json::{Value, json};

/// A status with one component for each state.
/// A failed component has an error.
pub(crate) fn status(id: &str, state: &str, components: &[(&str, &str)]) -> Value {
    let time = "2026-11-23T10:00:00Z";
    let components: Vec<Value> = components
        .iter()
        .map(|(name, state)| {
            let mut component = json!({
                "name": name,
                "state": state,
                "since": time,
                "desired": 3,
                "updated": 3,
                "ready": 2,
                "updatedReady": 2,
                "automation": "fleet",
                "image": "ghcr.io/org/app:1.2.0",
                "place": "apps/app.yaml:12",
                "tie": "object",
            });
            if *state == "failed" {
                component["error"] =
                    json!({"code": "CrashLoopBackOff", "source": name, "message": "exit code 1"});
            }
            component
        })
        .collect();
    let count = |state: &str| components.iter().filter(|component| component["state"] == state).count();
    let mut summary = json!({"total": components.len()});
    for state in ["failed", "removing", "installing", "pending", "removed", "installed"] {
        summary[state] = json!(count(state));
    }
    json!({
        "deploymentId": id,
        "timeStamp": time,
        "state": state,
        "since": time,
        "target": {"name": "ghcr.io/org/app", "tag": "1.2.0"},
        "commit": {"id": "a".repeat(40), "branch": "main", "time": time, "automation": "fleet"},
        "revision": format!("main@sha1:{}", "a".repeat(40)),
        "summary": summary,
        "progress": "2/3",
        "components": components,
        "deployHistory": [{"version": "1.2.0", "objectCount": 1, "lastDeployed": time}],
        "conditions": [{
            "type": "Ready",
            "status": "False",
            "reason": "Pending",
            "message": "",
            "lastTransitionTime": time,
        }],
    })
}

/// An object with a status.
pub(crate) fn object(namespace: &str, name: &str, labels: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": "tagboat.dev/v1alpha1",
        "kind": "DeploymentStatus",
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "spec": {"policyRef": {"name": name}},
        "status": status,
    })
}
