//! The status of an Application of Argo CD.
//!
//! Source: `ApplicationStatus` in `pkg/apis/application/v1alpha1/types.go`, and the phases of operations in
//! gitops-engine.

use super::{ApplierStatus, Attempt, Block};
use crate::rollout::assess::{Assessment, Counts, Failure};
use crate::rollout::message::message;
use crate::rollout::objects::{
    Application, ApplicationDestination, ApplicationSpec, ApplicationStatus, OperationState, SKIP_RECONCILE,
    Unreadable,
};

/// The address of Argo CD's own cluster, as Applications write it.
const OWN_SERVER: &str = "https://kubernetes.default.svc";

/// The name of Argo CD's own cluster.
const OWN_NAME: &str = "in-cluster";

/// Returns the status of an Application, for one of its sources.
///
/// `source` is the index in [`ApplicationSpec::sources`]. The code is `SyncFailed`.
#[must_use]
pub fn status(object: &Application, source: usize) -> ApplierStatus {
    read(object, source).unwrap_or_else(ApplierStatus::unreadable)
}

/// Returns `true` if an Application is applied to another cluster than Argo CD's own.
#[must_use]
pub fn is_remote(destination: &ApplicationDestination) -> bool {
    let named = destination.name.as_deref().is_some_and(|name| !name.is_empty() && name != OWN_NAME);
    let server = destination.server.as_deref().map(|server| server.trim_end_matches('/'));
    named || server.is_some_and(|server| !server.is_empty() && server != OWN_SERVER)
}

/// Assesses an Application with another destination, by the images and the health that it reports.
///
/// Its `status.summary.images` has the wanted image. Codes: `SyncFailed`, `Degraded`.
#[must_use]
pub fn assess_remote(object: &Application) -> Assessment {
    let none = Counts::default();
    let (spec, status) = match (object.spec.get(), object.status.get()) {
        (Ok(spec), Ok(status)) => (spec, status),
        (Err(error), _) | (_, Err(error)) => return Assessment::unreadable(error),
    };
    let sources = 0..spec.sources().len().max(1);
    if let Some(failure) = sources.into_iter().find_map(|source| failure(status, source)) {
        return Assessment::failed(none, &failure.code, &failure.message);
    }
    let health = status.health.status.as_deref().unwrap_or("Unknown");
    let text = status.health.message.as_deref().filter(|text| !text.is_empty()).unwrap_or(health);
    match health {
        "Healthy" => Assessment::complete(none, status.health.last_transition_time.as_ref()),
        "Degraded" => Assessment::failed(none, "Degraded", text),
        _ => Assessment::in_progress(none, text),
    }
}

fn read(object: &Application, source: usize) -> Result<ApplierStatus, &Unreadable> {
    let (spec, status) = (object.spec.get()?, object.status.get()?);
    let sync = status.sync.status.as_deref().unwrap_or_default();
    let block = if is_skipped(object) {
        Some(Block::Suspended)
    } else {
        (sync == "OutOfSync" && !is_automated(spec)).then_some(Block::OutOfSync)
    };
    let attempt = match failure(status, source) {
        Some(failure) => Attempt::Failed(failure),
        None if sync == "Synced" => Attempt::Succeeded,
        None => Attempt::InProgress,
    };
    let operation = status.operation_state.as_ref();
    let running = operation.filter(|operation| operation.phase.as_deref() == Some("Running"));
    let text = running.and_then(|operation| operation.message.as_deref()).map(message);
    let message = text.filter(|text| !text.is_empty() && attempt == Attempt::InProgress);
    Ok(ApplierStatus { applied_revision: applied(status, source), block, attempt, message })
}

/// Returns the revision of a source that is applied.
fn applied(status: &ApplicationStatus, source: usize) -> Option<String> {
    let is_synced = status.sync.status.as_deref() == Some("Synced");
    let newest = status.history.last();
    let revision = if is_synced { Some(&status.sync.revision) } else { newest };
    revision.and_then(|revision| revision.of_source(source)).map(message)
}

/// Returns the failure of the last operation, if it synced the compared revision.
///
/// The result of a sync of an older revision stays until the next sync, which may be a user's.
fn failure(status: &ApplicationStatus, source: usize) -> Option<Failure> {
    let operation = status.operation_state.as_ref()?;
    let phase = operation.phase.as_deref().filter(|phase| matches!(*phase, "Failed" | "Error"))?;
    let compared = status.sync.revision.of_source(source);
    let is_older = synced(operation, source).is_some_and(|synced| compared.is_some_and(|now| now != synced));
    let text = operation.message.as_deref().filter(|text| !text.is_empty()).unwrap_or(phase);
    (!is_older).then(|| Failure::new("SyncFailed", text))
}

/// Returns the revision of an operation: the synced one, or else the requested one.
fn synced(operation: &OperationState, source: usize) -> Option<&str> {
    let result = operation.sync_result.as_ref().and_then(|result| result.of_source(source));
    result.or_else(|| operation.operation.sync.as_ref()?.of_source(source))
}

fn is_automated(spec: &ApplicationSpec) -> bool {
    spec.sync_policy.automated.as_ref().is_some_and(|automated| automated.enabled != Some(false))
}

fn is_skipped(object: &Application) -> bool {
    let annotations = object.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get(SKIP_RECONCILE)).is_some_and(|value| {
        // The values that Go's `strconv.ParseBool` reads as true.
        matches!(value.as_str(), "1" | "t" | "T" | "true" | "TRUE" | "True")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::rollout::assess::Progress;

    const NEW: &str = "b2f1";
    const OLD: &str = "a0c3";

    fn application(changes: &[(&str, Value)]) -> Application {
        let mut object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "shop", "namespace": "argocd", "annotations": {}},
            "spec": {
                "project": "default",
                "source": {"repoURL": "https://git.example/fleet.git", "path": "shop", "targetRevision": "main"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
                "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["A=true"]},
            },
            "status": {
                "sync": {"status": "Synced", "revision": NEW, "comparedTo": {"source": {}}},
                "health": {"status": "Healthy", "lastTransitionTime": "2026-11-02T10:04:11Z"},
                "summary": {"images": ["ghcr.io/a/shop:2.0.0"], "externalURLs": ["https://shop.example"]},
                "history": [{"id": 0, "revision": "9999"}, {"id": 1, "revision": OLD}],
                "operationState": operation("Succeeded", NEW),
            },
        });
        for (path, value) in changes {
            *object.pointer_mut(path).unwrap() = value.clone();
        }
        serde_json::from_value(object).unwrap()
    }

    fn operation(phase: &str, revision: &str) -> Value {
        json!({"phase": phase, "message": format!("sync {phase}"), "startedAt": "2026-11-02T10:04:00Z",
            "operation": {"sync": {"revision": revision, "prune": true}, "retry": {"limit": 5}},
            "syncResult": {"revision": revision, "resources": []}})
    }

    #[test]
    fn every_phase_of_an_operation() {
        let out_of_sync = || ("/status/sync/status", json!("OutOfSync"));
        let state = |phase, revision| ("/status/operationState", operation(phase, revision));
        let failed = |phase: &str| Attempt::Failed(Failure::new("SyncFailed", &format!("sync {phase}")));
        let table = [
            ("synced", vec![], Attempt::Succeeded, NEW, None),
            ("out of sync", vec![out_of_sync()], Attempt::InProgress, OLD, None),
            (
                "running",
                vec![out_of_sync(), state("Running", NEW)],
                Attempt::InProgress,
                OLD,
                Some("sync Running"),
            ),
            ("failed", vec![out_of_sync(), state("Failed", NEW)], failed("Failed"), OLD, None),
            ("error", vec![out_of_sync(), state("Error", NEW)], failed("Error"), OLD, None),
            ("failed after the apply, in a hook", vec![state("Failed", NEW)], failed("Failed"), NEW, None),
            (
                "an older sync failed",
                vec![out_of_sync(), state("Failed", OLD)],
                Attempt::InProgress,
                OLD,
                None,
            ),
            ("terminating", vec![out_of_sync(), state("Terminating", NEW)], Attempt::InProgress, OLD, None),
            ("no operation", vec![("/status/operationState", json!(null))], Attempt::Succeeded, NEW, None),
        ];
        for (name, changes, attempt, applied, message) in table {
            let found = status(&application(&changes), 0);
            assert_eq!(
                (found.attempt, found.applied_revision.as_deref()),
                (attempt, Some(applied)),
                "{name}"
            );
            assert_eq!(found.message.as_deref(), message, "{name}");
        }
    }

    #[test]
    fn a_failure_before_the_sync_has_the_requested_revision() {
        for (revision, is_failed) in [(NEW, true), (OLD, false)] {
            let mut state = operation("Error", revision);
            state.as_object_mut().unwrap().remove("syncResult");
            let found = status(&application(&[("/status/operationState", state)]), 0);
            assert_eq!(matches!(found.attempt, Attempt::Failed(_)), is_failed, "{revision}");
        }
    }

    #[test]
    fn out_of_sync_without_automated_sync_is_blocked() {
        let policies = [
            (json!({"automated": {}}), None),
            (json!({"automated": {"enabled": true}}), None),
            (json!({"automated": {"enabled": false}}), Some(Block::OutOfSync)),
            (json!({"automated": null}), Some(Block::OutOfSync)),
            (json!({"syncOptions": []}), Some(Block::OutOfSync)),
            (json!(null), Some(Block::OutOfSync)),
        ];
        for (policy, expected) in policies {
            let changes = [("/status/sync/status", json!("OutOfSync")), ("/spec/syncPolicy", policy.clone())];
            assert_eq!(status(&application(&changes), 0).block, expected, "{policy}");
            assert_eq!(status(&application(&changes[1..]), 0).block, None, "{policy}");
        }
        let skipped = ("/metadata/annotations", json!({SKIP_RECONCILE: "true"}));
        assert_eq!(status(&application(&[skipped]), 0).block, Some(Block::Suspended));
    }

    #[test]
    fn each_source_has_its_revision() {
        let source = |path| json!({"repoURL": "https://git.example/fleet.git", "path": path});
        let mut object =
            application(&[("/status/sync", json!({"status": "Synced", "revisions": [OLD, NEW]}))]);
        assert_eq!(object.spec.get().unwrap().sources()[0].path.as_deref(), Some("shop"));
        assert_eq!(status(&object, 1).applied_revision.as_deref(), Some(NEW));
        assert_eq!(status(&object, 2).applied_revision, None);
        let spec = json!({"spec": {"sources": [source("a"), source("b")]}});
        object.spec = serde_json::from_value::<Application>(spec).unwrap().spec;
        assert_eq!(object.spec.get().unwrap().sources().len(), 2);
    }

    #[test]
    fn a_destination_is_remote_by_address_or_name() {
        for (destination, expected) in [
            (json!({"server": "https://kubernetes.default.svc"}), false),
            (json!({"server": "https://kubernetes.default.svc/"}), false),
            (json!({"name": "in-cluster"}), false),
            (json!({"name": "", "server": "https://kubernetes.default.svc"}), false),
            (json!({}), false),
            (json!({"name": "edge-1"}), true),
            (json!({"server": "https://10.0.0.7:6443"}), true),
        ] {
            let object = application(&[("/spec/destination", destination.clone())]);
            assert_eq!(is_remote(&object.spec.get().unwrap().destination), expected, "{destination}");
        }
    }

    #[test]
    fn a_remote_application_is_assessed_by_its_images_and_health() {
        let health =
            |status: &str| ("/status/health", json!({"status": status, "message": format!("is {status}")}));
        let failed = |code: &str, text: &str| Progress::Failed(Failure::new(code, text));
        let error = ("/status/operationState", operation("Error", NEW));
        let table = [
            (vec![], Progress::Complete, None),
            (vec![health("Progressing")], Progress::InProgress, Some("is Progressing")),
            (vec![health("Suspended")], Progress::InProgress, Some("is Suspended")),
            (vec![health("Missing")], Progress::InProgress, Some("is Missing")),
            (vec![health("Unknown")], Progress::InProgress, Some("is Unknown")),
            (vec![health("Degraded")], failed("Degraded", "is Degraded"), None),
            (vec![error], failed("SyncFailed", "sync Error"), None),
            (vec![("/status/health", json!({}))], Progress::InProgress, Some("Unknown")),
        ];
        for (changes, progress, message) in table {
            let object = application(&changes);
            assert_eq!(object.status.get().unwrap().summary.images, ["ghcr.io/a/shop:2.0.0"]);
            let found = assess_remote(&object);
            assert_eq!((found.progress, found.message.as_deref()), (progress, message), "{changes:?}");
        }
        let finished = assess_remote(&application(&[])).finished.unwrap();
        assert_eq!(finished.to_string(), "2026-11-02T10:04:11Z");
    }

    #[test]
    fn an_unreadable_application_is_a_message() {
        let object = application(&[("/status/summary", json!({"images": "none"}))]);
        let text = "the object cannot be read: status.summary.images: invalid type: string \"none\", expected a sequence";
        assert_eq!(status(&object, 0).message.as_deref(), Some(text));
        assert_eq!(assess_remote(&object).message.as_deref(), Some(text));
    }
}
