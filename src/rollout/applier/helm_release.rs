//! The status of a HelmRelease of Flux.
//!
//! Source: `summarize` in `internal/reconcile/release.go` and `api/v2/condition_types.go` of helm-controller. `Ready`
//! copies the reason of the last action. After a remediation it has the reason of that, also if it succeeded; the
//! failed action is then in `TestSuccess` or `Released`.

use super::ApplierStatus;
use super::flux::{self, Fields};
use crate::rollout::assess::{Assessment, Failure};
use crate::rollout::objects::{Condition, HelmRelease, HelmReleaseStatus, Unreadable, find};

/// The reasons of failed actions, which are their codes.
const FAILURES: [&str; 4] = ["InstallFailed", "UpgradeFailed", "TestFailed", "RollbackFailed"];

/// The reasons of a remediation, which follows a failed action.
const REMEDIATIONS: [&str; 3] = ["RollbackSucceeded", "UninstallSucceeded", "UninstallFailed"];

/// Returns the status of a HelmRelease.
///
/// Codes: `InstallFailed`, `UpgradeFailed`, `TestFailed`, `RollbackFailed`. The applied revision is the version of
/// the chart.
#[must_use]
pub fn status(object: &HelmRelease) -> ApplierStatus {
    read(object).unwrap_or_else(ApplierStatus::unreadable)
}

/// Assesses a HelmRelease with `spec.kubeConfig`, whose release is in another cluster.
///
/// Its spec has the wanted image.
#[must_use]
pub fn assess_remote(object: &HelmRelease) -> Assessment {
    let conditions = object.status.get().map_or(&[][..], |status| &status.conditions);
    flux::assess(status(object), conditions)
}

fn read(object: &HelmRelease) -> Result<ApplierStatus, &Unreadable> {
    let (spec, status) = (object.spec.get()?, object.status.get()?);
    let deployed = status.history.iter().find(|release| release.status.as_deref() == Some("deployed"));
    let fields = Fields {
        generation: object.metadata.generation,
        observed_generation: status.observed_generation,
        is_suspended: spec.suspend,
        applied_revision: deployed.and_then(|release| release.chart_version.as_deref()),
        conditions: &status.conditions,
    };
    Ok(flux::status(&fields, |ready| failure(status, ready)))
}

fn failure(status: &HelmReleaseStatus, ready: &Condition) -> Option<Failure> {
    if FAILURES.contains(&ready.reason()) {
        return Some(Failure::new(ready.reason(), ready.text()));
    }
    if !REMEDIATIONS.contains(&ready.reason()) {
        return None;
    }
    let actions = ["TestSuccess", "Released"].into_iter().filter_map(|kind| find(&status.conditions, kind));
    let failed = actions.into_iter().find(|action| action.is_false())?;
    Some(Failure::new(failed.reason(), failed.text()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{Attempt, Block};
    use super::*;
    use crate::rollout::assess::Progress;

    fn condition(kind: &str, status: &str, reason: &str) -> Value {
        json!({"type": kind, "status": status, "reason": reason, "message": format!("{reason} of podinfo"),
            "observedGeneration": 3, "lastTransitionTime": "2026-11-02T10:04:11Z"})
    }

    fn release(conditions: &[Value]) -> Value {
        json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "podinfo", "namespace": "apps", "generation": 3},
            "spec": {
                "interval": "10m", "chartRef": {"kind": "OCIRepository", "name": "podinfo"},
                "values": {"image": {"tag": "6.9.0"}},
            },
            "status": {
                "observedGeneration": 3, "conditions": conditions,
                "history": [
                    {"chartName": "podinfo", "chartVersion": "6.9.0", "status": "failed", "version": 2},
                    {"chartName": "podinfo", "chartVersion": "6.8.0", "status": "deployed", "version": 1},
                ],
            },
        })
    }

    #[test]
    fn every_reason() {
        let table: [(&str, &[Value], Result<Attempt, &str>); 10] = [
            (
                "installed",
                &[
                    condition("Ready", "True", "InstallSucceeded"),
                    condition("Released", "True", "InstallSucceeded"),
                ],
                Ok(Attempt::Succeeded),
            ),
            ("install failed", &[condition("Ready", "False", "InstallFailed")], Err("InstallFailed")),
            ("upgrade failed", &[condition("Ready", "False", "UpgradeFailed")], Err("UpgradeFailed")),
            (
                "test failed",
                &[
                    condition("Ready", "False", "TestFailed"),
                    condition("Released", "True", "UpgradeSucceeded"),
                ],
                Err("TestFailed"),
            ),
            (
                "rollback failed",
                &[
                    condition("Ready", "False", "RollbackFailed"),
                    condition("Remediated", "False", "RollbackFailed"),
                    condition("Released", "False", "UpgradeFailed"),
                ],
                Err("RollbackFailed"),
            ),
            (
                "rolled back after an upgrade",
                &[
                    condition("Ready", "False", "RollbackSucceeded"),
                    condition("Remediated", "True", "RollbackSucceeded"),
                    condition("Released", "False", "UpgradeFailed"),
                ],
                Err("UpgradeFailed"),
            ),
            (
                "rolled back after a test",
                &[
                    condition("Ready", "False", "RollbackSucceeded"),
                    condition("Released", "True", "UpgradeSucceeded"),
                    condition("TestSuccess", "False", "TestFailed"),
                ],
                Err("TestFailed"),
            ),
            (
                "uninstalled after an install",
                &[
                    condition("Ready", "False", "UninstallSucceeded"),
                    condition("Released", "False", "InstallFailed"),
                ],
                Err("InstallFailed"),
            ),
            (
                "dependency, after an older failure",
                &[
                    condition("Ready", "False", "DependencyNotReady"),
                    condition("Released", "False", "UpgradeFailed"),
                ],
                Ok(Attempt::InProgress),
            ),
            (
                "upgrading again",
                &[
                    condition("Ready", "Unknown", "Progressing"),
                    condition("Released", "False", "UpgradeFailed"),
                ],
                Ok(Attempt::InProgress),
            ),
        ];
        for (name, conditions, expected) in table {
            let found = status(&serde_json::from_value(release(conditions)).unwrap());
            let expected = expected.unwrap_or_else(|code| {
                Attempt::Failed(Failure { code: code.to_owned(), message: format!("{code} of podinfo") })
            });
            assert_eq!(found.attempt, expected, "{name}");
            assert_eq!(found.applied_revision.as_deref(), Some("6.8.0"));
        }
    }

    /// A corrected spec starts without the failure of the one before.
    #[test]
    fn a_failure_of_the_spec_before_does_not_count() {
        let mut object = release(&[condition("Ready", "False", "UpgradeFailed")]);
        object["metadata"]["generation"] = json!(4);
        assert_eq!(status(&serde_json::from_value(object).unwrap()).attempt, Attempt::InProgress);
    }

    #[test]
    fn a_suspended_release_is_blocked() {
        let mut object = release(&[]);
        object["spec"]["suspend"] = json!(true);
        assert_eq!(status(&serde_json::from_value(object).unwrap()).block, Some(Block::Suspended));
    }

    #[test]
    fn only_a_remote_release_keeps_its_values() {
        let mut object = release(&[condition("Ready", "True", "UpgradeSucceeded")]);
        let local: HelmRelease = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(local.spec.get().unwrap().values, Value::Null);
        object["spec"]["kubeConfig"] = json!({"secretRef": {"name": "edge"}});
        let remote: HelmRelease = serde_json::from_value(object).unwrap();
        let spec = remote.spec.get().unwrap();
        assert!(spec.is_remote);
        assert_eq!(spec.values, json!({"image": {"tag": "6.9.0"}}));
        assert_eq!(assess_remote(&remote).progress, Progress::Complete);
    }

    #[test]
    fn an_unreadable_release_is_a_message() {
        let object = json!({"status": {"history": 7, "lastAttemptedConfigDigest": 7}});
        let found = status(&serde_json::from_value(object).unwrap());
        let text =
            "the object cannot be read: status.history: invalid type: integer `7`, expected a sequence";
        assert_eq!((found.attempt, found.message.as_deref()), (Attempt::InProgress, Some(text)));
    }
}
