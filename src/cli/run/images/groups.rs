//! The release groups of the policies of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::settings::PolicySettings;
use tagboat_api::{ImagePolicy, ImageRepository};

use super::resolve::PolicyRun;
use super::selection::PolicyOverride;
use super::sources::{Repositories, Sources};
use crate::objects::ObjectName;
use crate::objects::manifests::{Manifests, StateError};
use crate::policy::downgrade::Trigger;
use crate::reconcile::policy::group::{Member, ReleaseGroup, other_members};
use crate::reconcile::policy::request::repository_of;
use crate::reconcile::policy::run::Run;

/// The policies in release groups, as they were before the run.
#[derive(Debug, Default)]
pub(super) struct Groups {
    policies: Vec<Arc<ImagePolicy>>,
    repositories: BTreeMap<ObjectName, Arc<ImageRepository>>,
    /// The reasons why policies cannot select that their objects do not show.
    obstacles: BTreeMap<ObjectName, String>,
}

impl Groups {
    /// Reads the policies with their statuses.
    pub(super) fn of(
        sources: &Sources,
        repositories: &Repositories,
        overrides: &[PolicyOverride],
    ) -> Result<Self, StateError> {
        let mut groups = Self::default();
        let manifests = &sources.registry.objects.manifests;
        for manifest in manifests.policies().filter(|policy| group_of(policy).is_some()) {
            let (name, known) = (ObjectName::of(manifest), sources.state.policy(manifest)?);
            if let Some(path) = &known.damage {
                let obstacle = format!("has a damaged state in {}", path.display());
                groups.obstacles.insert(name, obstacle);
            } else if overrides.iter().any(|given| ObjectName::of(&given.policy) == name) {
                groups.obstacles.insert(name, "has its image from --latest".to_owned());
            }
            groups.policies.push(Arc::new(known.policy));
            let repository = repository_of(manifest);
            let scanned = repositories.get(&repository).map(|scanned| scanned.object.clone());
            groups.repositories.extend(scanned.map(|scanned| (repository, scanned)));
        }
        Ok(groups)
    }

    /// Returns the release group of a policy, if it is in one.
    pub(super) fn group(&self, policy: &ImagePolicy, now: Timestamp) -> Option<ReleaseGroup> {
        let name = group_of(policy)?.to_owned();
        let member = |policy: Arc<ImagePolicy>| Member {
            repository: self.repositories.get(&repository_of(&policy)).cloned(),
            obstacle: self.obstacles.get(&ObjectName::of(policy.as_ref())).cloned(),
            run: Run::of(policy, now),
        };
        let members = other_members(policy, self.policies.iter().cloned()).into_iter().map(member);
        Some(ReleaseGroup { name, members: members.collect() })
    }
}

/// Lets a user's intent on one policy count for its release group.
pub(super) fn share_triggers(policy_runs: &mut [PolicyRun<'_>]) {
    let wanted: BTreeSet<_> = policy_runs
        .iter()
        .filter(|policy_run| policy_run.trigger == Trigger::User)
        .filter_map(|policy_run| key(&policy_run.policy))
        .collect();
    for policy_run in policy_runs {
        if key(&policy_run.policy).is_some_and(|group| wanted.contains(&group)) {
            policy_run.trigger = Trigger::User;
        }
    }
}

/// Returns the names of policies, and of the other members of their release groups.
pub(super) fn with_members(names: &BTreeSet<ObjectName>, manifests: &Manifests) -> BTreeSet<ObjectName> {
    let selected = manifests.policies().filter(|policy| names.contains(&ObjectName::of(*policy)));
    let groups: BTreeSet<_> = selected.filter_map(key).collect();
    let is_member = |policy: &&ImagePolicy| key(policy).is_some_and(|group| groups.contains(&group));
    let members = manifests.policies().filter(is_member).map(ObjectName::of);
    members.chain(names.iter().cloned()).collect()
}

/// Returns the release group of a policy, which is valid or not.
pub(super) fn group_of(policy: &ImagePolicy) -> Option<&str> {
    PolicySettings::release_group(policy.annotations())
}

/// Returns the namespace and the name of a policy's release group.
fn key(policy: &ImagePolicy) -> Option<(String, String)> {
    Some((policy.namespace().unwrap_or_default(), group_of(policy)?.to_owned()))
}
