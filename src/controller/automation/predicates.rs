//! The predicates of automations: which changes of other objects make one due (`docs/flux-behaviour.md`, Triggers).

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::core::SelectorExt;
use tagboat_api::policy::TagFilter;
use tagboat_api::selector;
use tagboat_api::settings::{AutomationSettings, Delivery, PolicySettings, own_annotations};
use tagboat_api::{GitRepository, ImagePolicy, ImageRef, ImageUpdateAutomation};

use crate::reconcile::branch_references::BranchReferences;

/// Returns whether a change of a policy makes an automation due.
///
/// It does if the automation gets another image from the policy, or none. A policy of a release group counts even if it is
/// not selected, because the other members wait for it.
pub(super) fn is_due_for_policy(
    automation: &ImageUpdateAutomation,
    old: Option<&ImagePolicy>,
    new: Option<&ImagePolicy>,
) -> bool {
    // Most changes need no selector.
    if old.map(visible) == new.map(visible) {
        return false;
    }
    // An invalid selector selects nothing.
    let Ok(selector) = automation.spec.policy_selector.as_ref().map(selector::parse).transpose() else {
        return false;
    };
    let namespace = automation.namespace();
    let is_selected =
        |policy: &ImagePolicy| selector.as_ref().is_none_or(|selector| selector.matches(policy.labels()));
    let parts = |policy: &ImagePolicy| {
        let is_selected = is_selected(policy);
        let concerns = policy.namespace() == namespace && (is_selected || group(policy).is_some());
        concerns.then(|| (is_selected, image(policy).cloned(), group(policy).map(of_group)))
    };
    let gets = |policy: Option<&ImagePolicy>| policy.and_then(parts);
    gets(old) != gets(new)
}

/// The parts of a policy on which a selection of its namespace depends.
fn visible(policy: &ImagePolicy) -> (Option<&ImageRef>, &BTreeMap<String, String>, Option<GroupParts<'_>>) {
    (image(policy), policy.labels(), group(policy))
}

/// The release group of a policy, and the filter that decides about its value.
type GroupParts<'p> = (&'p str, Option<&'p TagFilter>);

fn group(policy: &ImagePolicy) -> Option<GroupParts<'_>> {
    let group = PolicySettings::release_group(policy.annotations())?;
    Some((group, policy.spec.filter_tags.as_ref()))
}

fn of_group((group, filter): GroupParts<'_>) -> (String, Option<TagFilter>) {
    (group.to_owned(), filter.cloned())
}

fn image(policy: &ImagePolicy) -> Option<&ImageRef> {
    policy.status.as_ref()?.latest_ref.as_ref()
}

/// Returns whether a change of a git repository makes its automations due.
///
/// These are the automations that name it. They are due if it is new, or its spec or a setting of its forge has changed. A deleted one
/// is noticed by the next reconcile, since it is often created again at once.
pub(super) fn is_due_for_source(old: Option<&GitRepository>, new: Option<&GitRepository>) -> bool {
    match (old, new) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(old), Some(new)) => {
            old.uid() != new.uid()
                || old.metadata.generation != new.metadata.generation
                || !own_annotations(old.annotations()).eq(own_annotations(new.annotations()))
        }
    }
}

/// Returns true if an automation's commits may go to branches of its own.
///
/// With fresh push branches, that depends on its source, which is not read here. With invalid settings it has no commits.
pub(super) fn may_have_own_branches(
    automation: &ImageUpdateAutomation,
    references: BranchReferences,
) -> bool {
    let settings = AutomationSettings::from_annotations(automation.annotations());
    settings
        .is_ok_and(|settings| settings.delivery != Delivery::Push || references == BranchReferences::Fresh)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn automation(spec: &Value) -> ImageUpdateAutomation {
        let mut whole = json!({
            "metadata": {"namespace": "n", "name": "a", "uid": "1", "generation": 1},
            "spec": {"interval": "1m", "sourceRef": {"kind": "GitRepository", "name": "r"}},
        });
        whole["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
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
    fn a_policy_makes_the_automations_due_that_get_another_image_from_it() {
        let all = automation(&json!({}));
        let of_x = automation(&json!({"policySelector": {"matchLabels": {"team": "x"}}}));
        let bad = json!({"policySelector": {"matchExpressions": [{"key": "a", "operator": "Bogus"}]}});
        let bad = automation(&bad);
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
            // Its label changes.
            ("n/x/1", "n/y/1", (false, true)),
            ("n/y/1", "n/x/1", (false, true)),
            ("n/y/1", "n/z/1", (false, false)),
            ("n/x/1", "", (true, true)),
            ("n/y/1", "", (true, false)),
            ("other/x/1", "other/x/2", (false, false)),
            ("other/x/1", "", (false, false)),
        ] {
            let (before, after) = (policy(old), policy(new));
            let found = |automation| is_due_for_policy(automation, before.as_ref(), after.as_ref());
            assert_eq!((found(&all), found(&of_x)), expected, "{old} > {new}");
            assert!(!found(&bad), "{old} > {new}");
        }
    }

    #[test]
    fn a_source_makes_automations_due_when_it_is_new_or_its_spec_changes() {
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
            assert_eq!(is_due_for_source(old, new), expected);
        }
    }
}
