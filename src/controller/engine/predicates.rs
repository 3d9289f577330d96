//! The predicates of all kinds: changes that make objects due or cancel reconciles.
//!
//! `docs/flux-behaviour.md`, Triggers, has the rules.

use kube::ResourceExt;
use tagboat_api::RECONCILE_REQUEST_ANNOTATION;
use tagboat_api::settings::own_annotations;

/// Returns whether a change of an object makes it due.
///
/// That is so if the object is new or about to be deleted, or if its spec, our settings or its request for a reconcile
/// have changed. The removal of a request makes nothing due.
pub(super) fn is_due<K: ResourceExt>(old: Option<&K>, new: &K) -> bool {
    let Some(old) = old else { return true };
    old.uid() != new.uid()
        || old.meta().generation != new.meta().generation
        || old.meta().deletion_timestamp != new.meta().deletion_timestamp
        || have_settings_changed(old, new)
        || request(new).is_some_and(|request_now| request(old) != Some(request_now))
}

/// Returns whether a change of an object cancels its reconcile in flight.
///
/// That is so if the object is deleted, suspended or no longer selected, or is another one of the same name.
pub(super) fn is_unwanted<K: ResourceExt>(
    old: Option<&K>,
    new: Option<&K>,
    is_suspended: fn(&K) -> bool,
) -> bool {
    new.is_none_or(|new| {
        new.meta().deletion_timestamp.is_some()
            || is_suspended(new)
            || old.is_none_or(|old| old.uid() != new.uid())
    })
}

/// Returns whether the annotations of an object that are settings of ours have changed.
pub(crate) fn have_settings_changed<K: ResourceExt>(old: &K, new: &K) -> bool {
    own_annotations(old.annotations()).ne(own_annotations(new.annotations()))
}

/// Returns the request for a reconcile that an object carries.
pub(crate) fn request(object: &impl ResourceExt) -> Option<&String> {
    object.annotations().get(RECONCILE_REQUEST_ANNOTATION)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tagboat_api::ImageUpdateAutomation;

    use super::*;

    fn automation(metadata: &Value) -> ImageUpdateAutomation {
        let mut whole = json!({
            "metadata": {"namespace": "n", "name": "a", "uid": "1", "generation": 1},
            "spec": {"interval": "1m", "sourceRef": {"kind": "GitRepository", "name": "r"}},
        });
        whole["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn an_object_is_due_if_its_spec_settings_or_request_change() {
        const REQUEST: &str = RECONCILE_REQUEST_ANNOTATION;
        for (old, new, expected) in [
            (json!({}), json!({}), false),
            (json!({}), json!({"labels": {"x": "y"}, "resourceVersion": "2"}), false),
            (json!({}), json!({"annotations": {"other/x": "y"}}), false),
            (json!({}), json!({"generation": 2}), true),
            (json!({}), json!({"uid": "2"}), true),
            (json!({}), json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), true),
            (json!({}), json!({"annotations": {"tagboat.dev/x": "y"}}), true),
            (json!({"annotations": {"tagboat.dev/x": "y"}}), json!({}), true),
            (json!({}), json!({"annotations": {REQUEST: "1"}}), true),
            (json!({"annotations": {REQUEST: "1"}}), json!({"annotations": {REQUEST: "1"}}), false),
            (json!({"annotations": {REQUEST: "1"}}), json!({"annotations": {REQUEST: "2"}}), true),
            (json!({"annotations": {REQUEST: "1"}}), json!({}), false),
        ] {
            let objects = [&old, &new].map(automation);
            assert_eq!(is_due(Some(&objects[0]), &objects[1]), expected, "{old} {new}");
        }
        assert!(is_due(None, &automation(&json!({}))));
    }

    #[test]
    fn a_reconcile_is_unwanted_after_a_deletion_a_suspension_or_a_replacement_of_its_object() {
        let old = automation(&json!({}));
        let suspended = |suspend| {
            let mut automation = automation(&json!({"generation": 2}));
            automation.spec.suspend = suspend;
            automation
        };
        for (new, expected) in [
            (Some(old.clone()), false),
            (Some(automation(&json!({"generation": 2, "labels": {"x": "y"}}))), false),
            (Some(automation(&json!({"annotations": {"tagboat.dev/x": "y"}}))), false),
            (Some(suspended(false)), false),
            (Some(suspended(true)), true),
            (Some(automation(&json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}))), true),
            // It was deleted and created again while the watch was down.
            (Some(automation(&json!({"uid": "2"}))), true),
            // It was deleted, or its labels do not match the selector any more.
            (None, true),
        ] {
            let is_unwanted = |old| is_unwanted(old, new.as_ref(), |automation| automation.spec.suspend);
            assert_eq!(is_unwanted(Some(&old)), expected, "{new:?}");
            // Without an earlier state, a reconcile in flight is one of another object.
            assert!(is_unwanted(None), "{new:?}");
        }
    }
}
