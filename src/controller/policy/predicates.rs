//! The predicate of policies: which changes of a repository make one due (`docs/flux-behaviour.md`, Triggers).

use kube::ResourceExt;
use tagboat_api::{ImagePolicy, ImageRepository};

use crate::controller::engine::predicates::have_settings_changed;
use crate::reconcile::policy::choice::is_waiting;
use crate::reference::RepositoryAddress;

/// Returns whether a change of its repository makes a policy due.
///
/// It does if the repository has other tags, another access to them, or one more scan for which a selection
/// waits.
pub(crate) fn is_due_for_repository(
    policy: &ImagePolicy,
    old: Option<&ImageRepository>,
    new: Option<&ImageRepository>,
) -> bool {
    let (Some(old), Some(new)) = (old, new) else { return true };
    if old.uid() != new.uid() || have_settings_changed(old, new) {
        return true;
    }
    let found = |repository: &ImageRepository| {
        let status = repository.status.as_ref();
        let revision = status.and_then(|status| status.last_scan_result.as_ref()).map(|last| &last.revision);
        (revision.cloned(), status.and_then(|status| status.canonical_image_name.clone()))
    };
    let scanned = |repository: &ImageRepository| {
        repository.status.as_ref()?.last_scan_result.as_ref()?.scan_time.clone()
    };
    if scanned(new).is_some() && found(old) != found(new) {
        return true;
    }
    let is_one_more_scan = scanned(old) != scanned(new);
    if is_one_more_scan && policy.status.as_ref().is_some_and(is_waiting) {
        return true;
    }
    // An image that was not scanned yet has no tags, and its scan makes the policy due. Access counts if there is no scan.
    let has_other_access = old.spec.access_from != new.spec.access_from && is_invalid(new);
    old.metadata.generation != new.metadata.generation && (is_scanned(new) || has_other_access)
}

/// Returns whether the address of a repository is invalid, so that it is never scanned.
fn is_invalid(repository: &ImageRepository) -> bool {
    RepositoryAddress::parse(&repository.spec.image, repository.spec.insecure).is_err()
}

/// Returns whether the known tags are those of the image that the spec names.
fn is_scanned(repository: &ImageRepository) -> bool {
    let address = RepositoryAddress::parse(&repository.spec.image, repository.spec.insecure);
    let known = repository.status.as_ref().and_then(|status| status.canonical_image_name.as_deref());
    address.is_ok_and(|address| Some(address.canonical().as_str()) == known)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn repository(image: &str, generation: i64, status: &Value) -> ImageRepository {
        serde_json::from_value(json!({
            "metadata": {"namespace": "n", "name": "r", "uid": "1", "generation": generation},
            "spec": {"image": image, "interval": "1m"},
            "status": status,
        }))
        .unwrap()
    }

    fn policy(message: Option<&str>) -> ImagePolicy {
        let condition = |message| {
            json!({
                "type": "RegressionHeld", "status": "True", "reason": "LowerWinner", "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        };
        serde_json::from_value(json!({
            "metadata": {"namespace": "n", "name": "p"},
            "spec": {"imageRepositoryRef": {"name": "r"}, "policy": {}},
            "status": {"conditions": message.map(condition).into_iter().collect::<Vec<_>>()},
        }))
        .unwrap()
    }

    fn status(image: &str, revision: &str, minute: u32) -> Value {
        json!({
            "canonicalImageName": image,
            "observedGeneration": 1,
            "lastScanResult": {
                "revision": revision,
                "tagCount": 1,
                "scanTime": format!("2026-01-01T00:{minute:02}:00Z"),
            },
        })
    }

    #[test]
    fn a_policy_is_due_if_it_may_select_another_tag() {
        let steady = status("r.io/app", "1", 0);
        let one = repository("r.io/app", 1, &steady);
        // The observed generation of a stalled repository tells nothing about its tags.
        let mut observed = steady.clone();
        observed["observedGeneration"] = json!(2);
        let stalled = repository("no image", 2, &observed);
        let mut closed = stalled.clone();
        closed.spec.access_from = serde_json::from_value(json!({"namespaceSelectors": []})).unwrap();
        for (new, expected) in [
            (repository("r.io/app", 1, &steady), false),
            // The same tags again.
            (repository("r.io/app", 1, &status("r.io/app", "1", 5)), false),
            (repository("r.io/app", 1, &status("r.io/app", "2", 5)), true),
            (repository("r.io/app", 1, &status("r.io/other", "1", 5)), true),
            // Access or a login may have changed.
            (repository("r.io/app", 2, &steady), true),
            (
                repository(
                    "r.io/app",
                    1,
                    &json!({"observedGeneration": 2, "lastScanResult": {"revision": "1", "tagCount": 1}}),
                ),
                false,
            ),
            // Another image, of which nothing is known yet.
            (repository("r.io/other", 2, &steady), false),
            (repository("no image", 2, &steady), false),
            (stalled, false),
            (closed, true),
        ] {
            assert_eq!(is_due_for_repository(&policy(None), Some(&one), Some(&new)), expected, "{new:?}");
        }
        assert!(is_due_for_repository(&policy(None), None, Some(&one)));
        assert!(is_due_for_repository(&policy(None), Some(&one), None));
        let fresh = repository("r.io/app", 1, &Value::Null);
        assert!(is_due_for_repository(&policy(None), Some(&fresh), Some(&one)));
    }

    #[test]
    fn each_scan_makes_a_policy_due_that_waits() {
        let one = repository("r.io/app", 1, &status("r.io/app", "1", 0));
        let two = repository("r.io/app", 1, &status("r.io/app", "1", 5));
        let message = "0.9 is lower than 1.0 and waits: 1 of 3 complete scans in a row have shown a lower winner, from \
                       2026-01-01T00:00:00Z to 2026-01-01T00:00:00Z, and it counts at 2026-01-01T00:15:00Z at the \
                       earliest";
        assert!(is_due_for_repository(&policy(Some(message)), Some(&one), Some(&two)));
        assert!(!is_due_for_repository(&policy(Some(message)), Some(&two), Some(&two)));
    }
}
