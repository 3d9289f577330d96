//! The members of release groups: what they want, and which changes concern the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::settings::PolicySettings;
use tagboat_api::{ImagePolicy, ImageRepository};

use super::memory::UserIntent;
use crate::controller::engine::kind::Kind;
use crate::controller::engine::predicates::{have_settings_changed, request};
use crate::objects::ObjectName;
use crate::objects::cluster::Cache;
use crate::reconcile::conditions::is_ready;
use crate::reconcile::policy::group::{Member, ReleaseGroup, other_members};
use crate::reconcile::policy::request::repository_of;
use crate::reconcile::policy::run::Run;

/// The other members of a policy's release group, with their repositories.
pub(super) struct Members {
    group: String,
    members: Vec<(Arc<ImagePolicy>, Option<Arc<ImageRepository>>)>,
}

impl Members {
    /// Finds the other members, if the policy is in a group.
    pub(super) fn of(
        policy: &ImagePolicy,
        policies: &Cache<ImagePolicy>,
        repositories: &Cache<ImageRepository>,
    ) -> Option<Self> {
        let group = PolicySettings::release_group(policy.annotations())?.to_owned();
        let all = policies.in_namespace(&policy.namespace().unwrap_or_default());
        let members = other_members(policy, all).into_iter().map(|member| {
            let repository = repositories.get(&repository_of(&member));
            (member, repository)
        });
        Some(Self { group, members: members.collect() })
    }

    /// Returns the bytes of annotations that have to be read.
    pub(super) fn annotation_bytes(&self) -> usize {
        self.members.iter().map(|(policy, _)| bytes_of_annotations(policy)).sum()
    }

    /// Returns what a user wants of each member.
    pub(super) fn intents(&self) -> BTreeMap<ObjectName, UserIntent> {
        let intents = self.members.iter().map(|(policy, repository)| {
            (ObjectName::of(policy.as_ref()), UserIntent::of(policy, repository.as_deref()))
        });
        intents.collect()
    }

    /// Reads the settings of the members.
    pub(super) fn into_group(self, now: Timestamp) -> ReleaseGroup {
        let members = self.members.into_iter().map(|(policy, repository)| Member {
            run: Run::of(policy, now),
            repository,
            obstacle: None,
        });
        ReleaseGroup { name: self.group, members: members.collect() }
    }
}

/// Returns the length of all annotations of a policy.
pub(super) fn bytes_of_annotations(policy: &ImagePolicy) -> usize {
    policy.annotations().values().map(String::len).sum()
}

/// Makes the other members of a policy's release group due.
pub(crate) fn enqueue_members(policies: &Kind<ImagePolicy>, policy: &ImagePolicy) {
    if PolicySettings::release_group(policy.annotations()).is_none() {
        return;
    }
    let all = policies.cache.in_namespace(&policy.namespace().unwrap_or_default());
    for member in other_members(policy, all) {
        policies.enqueue(ObjectName::of(member.as_ref()));
    }
}

/// Returns whether a change of a policy concerns the other members of its release group.
///
/// It does if the policy may rank other tags, has another image, or can or cannot select any more.
pub(super) fn concerns_members(old: Option<&ImagePolicy>, new: Option<&ImagePolicy>) -> bool {
    let (Some(old), Some(new)) = (old, new) else { return true };
    let latest = |policy: &ImagePolicy| policy.status.as_ref()?.latest_ref.clone();
    let can_select =
        |policy: &ImagePolicy| policy.status.as_ref().is_some_and(|status| is_ready(&status.conditions));
    old.uid() != new.uid()
        || old.metadata.generation != new.metadata.generation
        || have_settings_changed(old, new)
        || request(old) != request(new)
        || latest(old) != latest(new)
        || can_select(old) != can_select(new)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn policy(metadata: &Value, latest: &str, ready: &str) -> ImagePolicy {
        let mut whole = json!({
            "metadata": {"namespace": "n", "name": "p", "uid": "1", "generation": 1},
            "spec": {"imageRepositoryRef": {"name": "r"}, "policy": {}},
            "status": {
                "latestRef": {"name": "i", "tag": latest},
                "conditions": [{
                    "type": "Ready", "status": ready, "reason": "Succeeded", "message": latest,
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }],
            },
        });
        whole["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn a_change_concerns_the_other_members_if_the_policy_may_select_differently() {
        let old = policy(&json!({}), "1", "True");
        for (new, expected) in [
            (policy(&json!({"resourceVersion": "2", "labels": {"a": "b"}}), "1", "True"), false),
            (policy(&json!({"annotations": {"other/x": "y"}}), "1", "True"), false),
            (policy(&json!({"generation": 2}), "1", "True"), true),
            (policy(&json!({"uid": "2"}), "1", "True"), true),
            (policy(&json!({"annotations": {"tagboat.dev/exclude": "2"}}), "1", "True"), true),
            (policy(&json!({"annotations": {"reconcile.fluxcd.io/requestedAt": "2"}}), "1", "True"), true),
            (policy(&json!({}), "2", "True"), true),
            (policy(&json!({}), "1", "False"), true),
        ] {
            assert_eq!(concerns_members(Some(&old), Some(&new)), expected, "{new:?}");
        }
        assert!(concerns_members(None, Some(&old)) && concerns_members(Some(&old), None));
    }
}
