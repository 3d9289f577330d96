//! The outage of a cluster: its deployments as they are shown meanwhile.
//!
//! A status is stored in the cluster that it describes. If that cluster does not answer, nothing can be observed or
//! written there, so the stored status is changed only where it is shown.

use jiff::Timestamp;
use tagboat_api::DeploymentStatus;
use tagboat_api::deployment_status::{BlockReason, ComponentStatus, MAX_MESSAGE, State, StatusError};

use super::aggregate::{DeploymentErrorCode, progress, sort_worst_first, summary};
use super::bounds::{cut, error, whole_seconds};
use super::conditions::conditions;
use super::history::complete_since;

/// A cluster that does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// The name of the cluster.
    pub cluster: String,
    /// The time of the first request without an answer.
    pub since: Timestamp,
}

impl Outage {
    /// Returns an object of the cluster as it is shown during the outage.
    ///
    /// The deployment is failed with the code `HostUnavailable`, and its components are pending. Their images, counts
    /// and messages are the last observed ones, and so are reasons before the apply, because no object has a part in
    /// them. The message of a failed component is that of its error.
    #[must_use]
    pub fn applied_to(&self, object: &DeploymentStatus) -> DeploymentStatus {
        let mut object = object.clone();
        let Some(status) = &mut object.status else { return object };
        let since = whole_seconds(self.since);
        let report = &mut status.report;
        for component in &mut report.components {
            self.suspend(component);
        }
        sort_worst_first(&mut report.components);
        report.summary = summary(&report.components);
        report.summary.total += report.omitted;
        report.summary.pending += report.omitted;
        report.progress = progress(&report.components);
        let message = format!("the cluster has not answered since {}", since.0);
        let unavailable = StatusError {
            code: DeploymentErrorCode::HostUnavailable.to_string(),
            source: self.cluster.clone(),
            message,
        };
        let unavailable = error(unavailable, &status.deployment_id);
        report.state = State::Failed;
        report.reason = None;
        report.message = Some(unavailable.message.clone());
        report.error = Some(unavailable);
        report.since = since.clone();
        report.conditions = conditions(report, &report.conditions, &since);
        status.time_stamp = since.max(status.time_stamp.clone());
        object
    }

    /// Makes a component pending, because its state is unknown.
    fn suspend(&self, component: &mut ComponentStatus) {
        component.complete_since = complete_since(component).cloned();
        if component.state != State::Pending {
            component.state = State::Pending;
            component.since = whole_seconds(self.since);
        }
        component.reason = component.reason.filter(|reason| is_before_apply(*reason));
        component.updated_ready = None;
        if let Some(StatusError { code, message, .. }) = component.error.take() {
            component.message = Some(cut(format!("{code}: {message}"), MAX_MESSAGE));
        }
    }
}

/// Returns true for a reason that does not depend on the objects of a component.
fn is_before_apply(reason: BlockReason) -> bool {
    match reason {
        BlockReason::NotChosen | BlockReason::NotCommitted | BlockReason::AwaitingMerge => true,
        BlockReason::NotApplied | BlockReason::NotFound => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::rollout::document::{Document, MargoManifest};

    #[test]
    fn deployments_fail_and_components_are_pending_during_an_outage() {
        let component = |name: &str, state: &str| json!({"name": name, "state": state, "since": "2026-01-01T00:00:00Z", "desired": 1, "updated": 1, "ready": 1});
        let mut failed = component("Deployment/a/b", "failed");
        failed["error"] = json!({"code": "CrashLoopBackOff", "source": "b", "message": "exit code 1"});
        let mut running = component("Deployment/a/a", "installed");
        running["message"] = json!("the Canary is Succeeded");
        let object: DeploymentStatus = serde_json::from_value(json!({
            "apiVersion": "tagboat.dev/v1alpha1",
            "kind": "DeploymentStatus",
            "metadata": {"name": "web", "namespace": "a"},
            "spec": {"policyRef": {"name": "web"}},
            "status": {
                "deploymentId": "1", "timeStamp": "2026-01-02T00:00:00Z", "state": "failed", "progress": "1/2",
                "since": "2026-01-01T00:00:00Z", "summary": {"total": 5, "failed": 1, "installed": 4}, "omitted": 3,
                "components": [failed, running],
            },
        }))
        .unwrap();
        let outage =
            Outage { cluster: "edge-1".to_owned(), since: "2026-01-03T00:00:00.5Z".parse().unwrap() };
        let shown = outage.applied_to(&object);
        let document = serde_json::to_value(Document::new(&shown).unwrap()).unwrap();
        let error = json!({
            "code": "HostUnavailable",
            "source": "edge-1",
            "message": "the cluster has not answered since 2026-01-03T00:00:00Z",
        });
        assert_eq!(document["status"]["state"], "failed");
        assert_eq!(document["status"]["error"], error);
        assert_eq!(document["status"]["progress"], "0/2");
        assert_eq!(document["status"]["summary"]["pending"], 5);
        assert_eq!(document["metadata"]["timeStamp"], "2026-01-03T00:00:00Z");
        let components = document["status"]["components"].as_array().unwrap();
        let fields = |one: &Value| ["state", "message", "completeSince"].map(|field| one[field].clone());
        assert_eq!(
            components.iter().map(fields).collect::<Vec<_>>(),
            [
                [json!("pending"), json!("the Canary is Succeeded"), json!("2026-01-01T00:00:00Z")],
                [json!("pending"), json!("CrashLoopBackOff: exit code 1"), Value::Null],
            ]
        );
        let margo = serde_json::to_value(MargoManifest::new(&shown, None).unwrap()).unwrap();
        assert_eq!(margo["status"], json!({"state": "failed", "error": error}));
        assert!(margo["components"].as_array().unwrap().iter().all(|one| one.get("error").is_none()));
    }
}
