//! The status of a Kustomization of Flux.
//!
//! Source: `internal/controller/kustomization_controller.go` of kustomize-controller. It sets `Ready` to `Unknown`
//! at the start of each attempt, and to `False` with a reason when the attempt failed.

use super::ApplierStatus;
use super::flux::{self, Fields};
use crate::rollout::assess::{Assessment, Failure};
use crate::rollout::objects::{Condition, Kustomization, Unreadable};

/// The reasons of failed attempts, which are their codes.
const FAILURES: [&str; 5] =
    ["ArtifactFailed", "BuildFailed", "HealthCheckFailed", "PruneFailed", "ReconciliationFailed"];

/// Returns the status of a Kustomization.
///
/// Codes: `BuildFailed`, `HealthCheckFailed`, `ReconciliationFailed`, `PruneFailed`, `ArtifactFailed`.
#[must_use]
pub fn status(object: &Kustomization) -> ApplierStatus {
    read(object).unwrap_or_else(ApplierStatus::unreadable)
}

/// Assesses a Kustomization with `spec.kubeConfig`, whose objects are in another cluster.
///
/// It has applied a revision with the wanted image.
#[must_use]
pub fn assess_remote(object: &Kustomization) -> Assessment {
    let conditions = object.status.get().map_or(&[][..], |status| &status.conditions);
    flux::assess(status(object), conditions)
}

fn read(object: &Kustomization) -> Result<ApplierStatus, &Unreadable> {
    let (spec, status) = (object.spec.get()?, object.status.get()?);
    let fields = Fields {
        generation: object.metadata.generation,
        observed_generation: status.observed_generation,
        is_suspended: spec.suspend,
        applied_revision: status.last_applied_revision.as_deref(),
        conditions: &status.conditions,
    };
    Ok(flux::status(&fields, failure))
}

fn failure(ready: &Condition) -> Option<Failure> {
    FAILURES.contains(&ready.reason()).then(|| Failure::new(ready.reason(), ready.text()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{Attempt, Block};
    use super::*;
    use crate::rollout::assess::Progress;

    fn kustomization(spec: Value, ready: Value) -> Kustomization {
        let mut object = json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "apps", "namespace": "flux-system", "generation": 2},
            "spec": {
                "interval": "10m", "path": "./apps", "prune": true,
                "sourceRef": {"kind": "GitRepository", "name": "fleet"},
            },
            "status": {
                "observedGeneration": 2, "lastAppliedRevision": "main@sha1:aaaa",
                "lastAttemptedRevision": "main@sha1:bbbb", "conditions": [],
                "inventory": {"entries": [{"id": "apps_podinfo_apps_Deployment", "v": "v1"}]},
            },
        });
        let Value::Object(spec) = spec else { panic!("no fields: {spec}") };
        for (key, value) in spec {
            object["spec"][key] = value;
        }
        object["status"]["conditions"] = Value::Array(vec![ready]);
        serde_json::from_value(object).unwrap()
    }

    fn ready(status: &str, reason: &str) -> Value {
        json!({"type": "Ready", "status": status, "reason": reason, "message": format!("{reason} of apps"),
            "observedGeneration": 2, "lastTransitionTime": "2026-11-02T10:04:11Z"})
    }

    #[test]
    fn every_reason() {
        for reason in FAILURES {
            let found = status(&kustomization(json!({}), ready("False", reason)));
            let failure = Failure { code: reason.to_owned(), message: format!("{reason} of apps") };
            assert_eq!((found.attempt, found.message), (Attempt::Failed(failure), None));
            assert_eq!(found.applied_revision.as_deref(), Some("main@sha1:aaaa"));
        }
        for (state, reason, attempt, message) in [
            ("True", "ReconciliationSucceeded", Attempt::Succeeded, None),
            ("Unknown", "Progressing", Attempt::InProgress, Some("Progressing of apps")),
            ("False", "DependencyNotReady", Attempt::InProgress, Some("DependencyNotReady of apps")),
            ("False", "HealthCheckCanceled", Attempt::InProgress, Some("HealthCheckCanceled of apps")),
        ] {
            let found = status(&kustomization(json!({}), ready(state, reason)));
            assert_eq!((found.attempt, found.message.as_deref()), (attempt, message), "{reason}");
        }
    }

    #[test]
    fn a_suspended_kustomization_is_blocked() {
        let done = || ready("True", "ReconciliationSucceeded");
        assert_eq!(status(&kustomization(json!({}), done())).block, None);
        assert_eq!(status(&kustomization(json!({"suspend": null}), done())).block, None);
        assert_eq!(status(&kustomization(json!({"suspend": true}), done())).block, Some(Block::Suspended));
    }

    #[test]
    fn a_new_kustomization_is_in_progress() {
        let object =
            json!({"metadata": {"name": "apps", "generation": 1}, "status": {"observedGeneration": -1}});
        let found = status(&serde_json::from_value(object).unwrap());
        assert_eq!((found.attempt, found.applied_revision, found.message), (Attempt::InProgress, None, None));
    }

    #[test]
    fn an_unreadable_kustomization_is_a_message() {
        let object = json!({"spec": {"suspend": "yes", "patches": 7}});
        let found = status(&serde_json::from_value(object).unwrap());
        let text =
            "the object cannot be read: spec.suspend: invalid type: string \"yes\", expected a boolean";
        assert_eq!((found.attempt, found.message.as_deref()), (Attempt::InProgress, Some(text)));
    }

    #[test]
    fn a_remote_kustomization_is_assessed_by_ready_and_the_revision() {
        let spec = json!({"kubeConfig": {"secretRef": {"name": "edge"}}});
        let done = kustomization(spec.clone(), ready("True", "ReconciliationSucceeded"));
        assert!(done.spec.get().unwrap().kube_config.is_some());
        let complete = assess_remote(&done);
        assert_eq!(
            (complete.progress, complete.finished.unwrap().to_string().as_str()),
            (Progress::Complete, "2026-11-02T10:04:11Z")
        );
        let failed = kustomization(spec.clone(), ready("False", "HealthCheckFailed"));
        let Progress::Failed(failure) = assess_remote(&failed).progress else { panic!() };
        assert_eq!(failure.code, "HealthCheckFailed");
        let mut changed = kustomization(spec, ready("True", "ReconciliationSucceeded"));
        changed.metadata.generation = Some(3);
        assert_eq!(assess_remote(&changed).progress, Progress::InProgress);
    }
}
