//! The automations that a change of an object triggers (`docs/flux-behaviour.md`, Triggers, with the gaps closed).

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::core::SelectorExt;
use tagboat_api::settings::PREFIX;
use tagboat_api::{
    GitRepository, ImagePolicy, ImageRef, ImageUpdateAutomation, RECONCILE_REQUEST_ANNOTATION,
};

use crate::objects::ObjectName;
use crate::reconcile::automation::selector;

/// Whether a change of an automation makes it due: it is new, or its spec, our settings or the request for a run are
/// others, or it is to go.
pub(super) fn concerns_itself(old: Option<&ImageUpdateAutomation>, new: &ImageUpdateAutomation) -> bool {
    let Some(old) = old else { return true };
    let requested =
        |object: &ImageUpdateAutomation| object.annotations().get(RECONCILE_REQUEST_ANNOTATION).cloned();
    old.uid() != new.uid()
        || old.metadata.generation != new.metadata.generation
        || old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        || settings(old) != settings(new)
        // That a request is taken back asks for nothing.
        || requested(new).is_some_and(|request| requested(old) != Some(request))
}

/// The annotations of an automation that are settings of ours.
pub(super) fn settings(automation: &ImageUpdateAutomation) -> BTreeMap<String, String> {
    let own = automation.annotations().iter().filter(|(name, _)| name.starts_with(PREFIX));
    own.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Whether a change of a policy concerns an automation: what it gets from the policy is something else now.
pub(super) fn concerns_policy(
    automation: &ImageUpdateAutomation,
    old: Option<&ImagePolicy>,
    new: Option<&ImagePolicy>,
) -> bool {
    // What most changes leave as it was needs no selector.
    if old.map(visible) == new.map(visible) {
        return false;
    }
    // A selector that makes no sense selects nothing, whatever becomes of policies.
    let Ok(selector) = automation.spec.policy_selector.as_ref().map(selector::parse).transpose() else {
        return false;
    };
    let namespace = automation.namespace();
    let is_selected = |policy: &&ImagePolicy| {
        policy.namespace() == namespace
            && selector.as_ref().is_none_or(|selector| selector.matches(policy.labels()))
    };
    let gets =
        |policy: Option<&ImagePolicy>| policy.filter(is_selected).map(image).map(Option::<&ImageRef>::cloned);
    gets(old) != gets(new)
}

/// The parts of a policy on which a selection of its namespace depends.
fn visible(policy: &ImagePolicy) -> (Option<&ImageRef>, &BTreeMap<String, String>) {
    (image(policy), policy.labels())
}

fn image(policy: &ImagePolicy) -> Option<&ImageRef> {
    policy.status.as_ref()?.latest_ref.as_ref()
}

/// The git repository that an automation names.
pub(super) fn source_of(automation: &ImageUpdateAutomation) -> ObjectName {
    let own = automation.namespace().unwrap_or_default();
    let reference = &automation.spec.source_ref;
    let namespace = reference.effective_namespace(&own).to_owned();
    ObjectName { namespace, name: reference.name.clone() }
}

/// Whether a change of a git repository concerns the automations that name it: it is new, or its spec is another. That
/// one has gone is noticed by the next run, for it is often made anew at once.
pub(super) fn concerns_source(old: Option<&GitRepository>, new: Option<&GitRepository>) -> bool {
    match (old, new) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(old), Some(new)) => {
            old.uid() != new.uid() || old.metadata.generation != new.metadata.generation
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn automation(metadata: &Value, spec: &Value) -> ImageUpdateAutomation {
        let mut whole = json!({
            "metadata": {"namespace": "n", "name": "a", "uid": "1", "generation": 1},
            "spec": {"interval": "1m", "sourceRef": {"kind": "GitRepository", "name": "r"}},
        });
        for (place, members) in [("metadata", metadata), ("spec", spec)] {
            whole[place].as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        }
        serde_json::from_value(whole).unwrap()
    }

    fn policy(namespace: &str, team: &str, tag: &str) -> ImagePolicy {
        let latest = if tag.is_empty() { Value::Null } else { json!({"name": "img", "tag": tag}) };
        serde_json::from_value(json!({
            "metadata": {"namespace": namespace, "name": "p", "labels": {"team": team}},
            "spec": {"imageRepositoryRef": {"name": "r"}, "policy": {}},
            "status": {"latestRef": latest},
        }))
        .unwrap()
    }

    #[test]
    fn an_automation_is_due_when_somebody_changed_what_it_is_to_do() {
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
            let objects = [&old, &new].map(|metadata| automation(metadata, &json!({})));
            assert_eq!(concerns_itself(Some(&objects[0]), &objects[1]), expected, "{old} {new}");
        }
        assert!(concerns_itself(None, &automation(&json!({}), &json!({}))));
    }

    #[test]
    fn a_policy_concerns_those_who_get_something_else_from_it() {
        let all = automation(&json!({}), &json!({}));
        let of_x = automation(&json!({}), &json!({"policySelector": {"matchLabels": {"team": "x"}}}));
        let bad = json!({"policySelector": {"matchExpressions": [{"key": "a", "operator": "Bogus"}]}});
        let bad = automation(&json!({}), &bad);
        let policy = |text: &str| match text.split('/').collect::<Vec<_>>()[..] {
            [namespace, team, tag] => Some(policy(namespace, team, tag)),
            _ => None,
        };
        for (old, new, expected) in [
            ("", "n/x/", (true, true)),
            ("", "n/y/1", (true, false)),
            ("n/x/", "n/x/1", (true, true)),
            ("n/x/1", "n/x/1", (false, false)),
            ("n/x/1", "n/x/2", (true, true)),
            ("n/x/1", "n/x/", (true, true)),
            ("n/y/1", "n/y/2", (true, false)),
            // It is given another label.
            ("n/x/1", "n/y/1", (false, true)),
            ("n/y/1", "n/x/1", (false, true)),
            ("n/y/1", "n/z/1", (false, false)),
            ("n/x/1", "", (true, true)),
            ("n/y/1", "", (true, false)),
            ("other/x/1", "other/x/2", (false, false)),
            ("other/x/1", "", (false, false)),
        ] {
            let (before, after) = (policy(old), policy(new));
            let found = |automation| concerns_policy(automation, before.as_ref(), after.as_ref());
            assert_eq!((found(&all), found(&of_x)), expected, "{old} > {new}");
            assert!(!found(&bad), "{old} > {new}");
        }
    }

    #[test]
    fn a_source_concerns_others_when_it_comes_or_its_spec_changes() {
        let repository = |uid: &str, generation: i64| -> GitRepository {
            serde_json::from_value(json!({
                "metadata": {"namespace": "n", "name": "r", "uid": uid, "generation": generation},
                "spec": {"url": "https://git.example/r", "interval": "1m"},
            }))
            .unwrap()
        };
        let (one, two, other) = (repository("1", 1), repository("1", 2), repository("2", 1));
        for (old, new, expected) in [
            (None, Some(&one), true),
            (Some(&one), Some(&one), false),
            (Some(&one), Some(&two), true),
            (Some(&one), Some(&other), true),
            (Some(&one), None, false),
        ] {
            assert_eq!(concerns_source(old, new), expected);
        }
    }
}
