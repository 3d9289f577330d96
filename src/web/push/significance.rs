//! The parts of a status whose change is sent: states, errors and the target.
//!
//! Counts, times and messages change too often, so a change of these alone is not sent. The message of an error is one of
//! them: that of a component's error counts restarts.

use serde::Serialize;
use tagboat_api::DeploymentStatus;
use tagboat_api::deployment_status::{State, StatusError, Target};

use crate::secrets::Fingerprint;

/// The parts of a status whose change is sent.
#[derive(Serialize)]
struct Significant<'s> {
    deployment_id: &'s str,
    state: State,
    error: Option<Error<'s>>,
    target: Option<&'s Target>,
    components: Vec<Component<'s>>,
}

/// The parts of a component whose change is sent.
#[derive(Serialize)]
struct Component<'s> {
    name: &'s str,
    state: State,
    error: Option<Error<'s>>,
}

/// The code and the source of an error.
type Error<'s> = (&'s str, &'s str);

fn error(error: &StatusError) -> Error<'_> {
    (&error.code, &error.source)
}

/// Returns the fingerprint of the parts of a status whose change is sent.
///
/// Returns `None` for a status that is not sent: one without components or without an identity.
pub(super) fn significance(object: &DeploymentStatus) -> Option<Fingerprint> {
    let status = object.status.as_ref()?;
    let report = &status.report;
    if report.components.is_empty() || status.deployment_id.is_empty() {
        return None;
    }
    let components = report.components.iter().map(|component| {
        let error = component.error.as_ref().map(error);
        Component { name: &component.name, state: component.state, error }
    });
    let mut components: Vec<_> = components.collect();
    // Their order in the status depends on their counts.
    components.sort_unstable_by_key(|component| component.name);
    let significant = Significant {
        deployment_id: &status.deployment_id,
        state: report.state,
        error: report.error.as_ref().map(error),
        target: report.target.as_ref(),
        components,
    };
    let text = serde_json::to_vec(&significant).expect("the parts have texts as keys");
    Some(Fingerprint::of([text]))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object() -> Value {
        let component = |name: &str, state: &str| json!({"name": name, "state": state, "since": "2026-01-01T00:00:00Z", "desired": 3, "updated": 3, "ready": 3});
        json!({
            "apiVersion": "tagboat.dev/v1alpha1",
            "kind": "DeploymentStatus",
            "metadata": {"name": "web", "namespace": "a"},
            "spec": {"policyRef": {"name": "web"}},
            "status": {
                "deploymentId": "1",
                "timeStamp": "2026-01-01T00:00:00Z",
                "state": "installing",
                "since": "2026-01-01T00:00:00Z",
                "target": {"name": "ghcr.io/org/app", "tag": "1.0.0"},
                "summary": {"total": 2},
                "progress": "3/6",
                "components": [component("Deployment/a/a", "installing"), component("Deployment/a/b", "installed")],
            },
        })
    }

    fn of(object: &Value) -> Option<Fingerprint> {
        significance(&serde_json::from_value(object.clone()).unwrap())
    }

    #[test]
    fn changes_of_state_error_or_target_are_significant_and_others_are_not() {
        let base = of(&object()).unwrap();
        let error = |code: &str, message: &str| json!({"code": code, "source": "a", "message": message});
        for (pointer, value, is_significant) in [
            ("/status/deploymentId", json!("2"), true),
            ("/status/state", json!("failed"), true),
            ("/status/error", error("GitPushRejected", "refused"), true),
            ("/status/target/tag", json!("1.0.1"), true),
            ("/status/target/digest", json!("sha256:1"), true),
            ("/status/components/0/state", json!("failed"), true),
            ("/status/components/0/name", json!("Deployment/a/c"), true),
            ("/status/components/0/error", error("CrashLoopBackOff", "2 restarts"), true),
            ("/status/timeStamp", json!("2026-01-01T00:00:01Z"), false),
            ("/status/progress", json!("4/6"), false),
            ("/status/message", json!("waiting"), false),
            ("/status/revision", json!("main@sha1:1"), false),
            ("/status/components/0/ready", json!(1), false),
            ("/status/components/0/message", json!("waiting"), false),
            ("/metadata/labels", json!({"team": "edge"}), false),
        ] {
            let mut changed = object();
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            changed.pointer_mut(parent).unwrap()[name] = value;
            assert_eq!(of(&changed) != Some(base), is_significant, "{pointer}");
        }
    }

    #[test]
    fn the_order_of_components_and_the_count_of_restarts_are_not_significant() {
        let mut one = object();
        one["status"]["components"][0]["error"] =
            json!({"code": "CrashLoopBackOff", "source": "a", "message": "2 restarts"});
        let mut other = one.clone();
        other["status"]["components"][0]["error"]["message"] = json!("3 restarts");
        other["status"]["components"].as_array_mut().unwrap().reverse();
        assert_eq!(of(&one), of(&other));
    }

    #[test]
    fn the_message_of_an_error_is_not_significant() {
        let with = |code: &str, source: &str, message: &str| {
            let mut object = object();
            object["status"]["error"] = json!({"code": code, "source": source, "message": message});
            of(&object)
        };
        let base = with("HostUnavailable", "edge", "cluster edge does not respond");
        assert_eq!(with("HostUnavailable", "edge", "cluster edge is not available: no login"), base);
        assert_ne!(with("HostUnavailable", "core", "cluster edge does not respond"), base);
        assert_ne!(with("GitPushRejected", "edge", "cluster edge does not respond"), base);
    }

    #[test]
    fn a_status_without_components_or_identity_is_not_sent() {
        for (pointer, value) in
            [("/status/components", json!([])), ("/status/deploymentId", json!("")), ("/status", json!(null))]
        {
            let mut object = object();
            *object.pointer_mut(pointer).unwrap() = value;
            assert_eq!(of(&object), None, "{pointer}");
        }
    }
}
