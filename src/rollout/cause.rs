//! The cause of a state as one text, which begins with its code.
//!
//! The fields of a status have the code and the message apart from each other; what shows both as one text uses this.

use tagboat_api::deployment_status::{BlockReason, ComponentStatus, Report};

/// Returns the cause of a deployment's state: its error, or that of its worst component.
#[must_use]
pub fn cause(report: &Report) -> Option<String> {
    if let Some(error) = &report.error {
        return Some(format!("{}: {}", error.code, error.message));
    }
    let worst = report.components.first();
    let of_worst = worst.and_then(|worst| Some(format!("{}: {}", worst.name, component_cause(worst)?)));
    of_worst.or_else(|| with_reason(report.reason, report.message.as_deref()))
}

/// Returns the cause of a component's state: its error, or its reason and message.
#[must_use]
pub fn component_cause(component: &ComponentStatus) -> Option<String> {
    match &component.error {
        Some(error) => Some(format!("{}: {}", error.code, error.message)),
        None => with_reason(component.reason, component.message.as_deref()),
    }
}

fn with_reason(reason: Option<BlockReason>, message: Option<&str>) -> Option<String> {
    match (reason, message) {
        (Some(reason), Some(message)) => Some(format!("{reason}: {message}")),
        (Some(reason), None) => Some(reason.to_string()),
        (None, message) => message.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SINCE: &str = "2026-01-01T00:00:00Z";

    /// Returns a component with these fields.
    fn component(name: &str, fields: &Value) -> Value {
        let mut component = json!({"name": name, "state": "pending", "since": SINCE});
        component.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        component
    }

    /// Returns the cause of a report with these fields and components.
    fn cause_of(fields: &Value, components: &[Value]) -> Option<String> {
        let mut report = json!({
            "state": "pending", "since": SINCE, "summary": {}, "progress": "0/1", "components": components,
        });
        report.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        cause(&serde_json::from_value(report).unwrap())
    }

    fn error(code: &str, message: &str) -> Value {
        json!({"code": code, "source": "Kustomization/flux-system/apps", "message": message})
    }

    #[test]
    fn the_cause_of_a_component_is_its_error_or_its_reason_and_message() {
        for (fields, expected) in [
            (json!({}), None),
            (json!({"message": "1 of 3 pods is ready"}), Some("1 of 3 pods is ready")),
            (json!({"reason": "NotFound"}), Some("NotFound")),
            (
                json!({"reason": "NotApplied", "message": "it is suspended"}),
                Some("NotApplied: it is suspended"),
            ),
            (json!({"error": error("BuildFailed", "no such file")}), Some("BuildFailed: no such file")),
            (
                json!({"error": error("BuildFailed", "x"), "reason": "NotApplied", "message": "y"}),
                Some("BuildFailed: x"),
            ),
        ] {
            let component = serde_json::from_value(component("Deployment/a/d", &fields)).unwrap();
            assert_eq!(component_cause(&component).as_deref(), expected, "{fields}");
        }
    }

    #[test]
    fn the_cause_of_a_deployment_is_its_error_then_its_worst_component_then_its_reason() {
        let own =
            json!({"error": error("GitPushRejected", "denied"), "reason": "NotCommitted", "message": "m"});
        let blocked = json!({"reason": "NotChosen", "message": "the policy has selected no image"});
        let silent = component("Deployment/a/d", &json!({}));
        let waits = component("Deployment/a/d", &json!({"reason": "NotApplied", "message": "waits"}));
        let failed = component("CronJob/a/c", &json!({"error": error("UpgradeFailed", "timeout")}));
        for (fields, components, expected) in [
            (json!({}), vec![], None),
            (json!({}), vec![silent.clone()], None),
            (blocked.clone(), vec![], Some("NotChosen: the policy has selected no image")),
            // The worst component is the first; one without a cause leaves that of the deployment.
            (
                blocked.clone(),
                vec![silent.clone(), waits.clone()],
                Some("NotChosen: the policy has selected no image"),
            ),
            (json!({"message": "m"}), vec![silent], Some("m")),
            (blocked.clone(), vec![waits.clone()], Some("Deployment/a/d: NotApplied: waits")),
            (blocked, vec![failed.clone(), waits], Some("CronJob/a/c: UpgradeFailed: timeout")),
            (own.clone(), vec![failed], Some("GitPushRejected: denied")),
            (own, vec![], Some("GitPushRejected: denied")),
        ] {
            assert_eq!(cause_of(&fields, &components).as_deref(), expected, "{fields} {components:?}");
        }
    }
}
