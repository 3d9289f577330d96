//! The floating tags that policies follow, and the subscriptions to their digests.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::settings::PolicySettings;
use tagboat_api::{ImagePolicy, ImageRef, Reason};

use super::choice::is_same_tag;
use super::digest::Polled;
use super::request::Request;
use super::run::{FollowedTag, PolicyRunResult};
use crate::objects::ObjectName;
use crate::polling::{DigestState, Group, InRegistry, Missing, Schedule, StaleReason, Subscription};
use crate::reconcile::lookup::Staleness;
use crate::reconcile::tags::RepositoryTarget;

/// The tags that policies follow, with the schedule of their lookups.
///
/// `T` is a tag with the login and route of its lookups.
#[derive(Debug)]
pub struct FollowedTags<T> {
    /// The lookups, and the digests that are known.
    pub schedule: Schedule<ObjectName, T, Staleness>,
    /// The repository of each tag.
    repositories: BTreeMap<T, RepositoryTarget>,
}

impl<T> Default for FollowedTags<T> {
    fn default() -> Self {
        Self { schedule: Schedule::default(), repositories: BTreeMap::new() }
    }
}

impl<T: InRegistry + Clone + Ord> FollowedTags<T> {
    /// Subscribes a policy to the `target` of the tag that it follows after a run.
    ///
    /// `latest` is the image that the policy reports, and `members` returns the members of a group. Returns the policies
    /// whose known digest changes by that.
    pub fn follow(
        &mut self,
        policy: &ObjectName,
        result: &PolicyRunResult,
        target: impl FnOnce(&FollowedTag) -> T,
        latest: Option<&ImageRef>,
        members: impl FnOnce(&str) -> BTreeSet<ObjectName>,
    ) -> Vec<ObjectName> {
        let Some(followed) = &result.followed else {
            self.unfollow(policy);
            return Vec::new();
        };
        let target = target(followed);
        let subscription = Subscription {
            is_fresh: result.is_fresh,
            ..followed.subscription(policy, target.clone(), latest, members)
        };
        self.repositories.insert(target, followed.target.clone());
        let changed = self.schedule.subscribe(policy, subscription, Timestamp::now());
        self.forget_unfollowed();
        changed
    }

    /// Removes the subscription of a policy.
    pub fn unfollow(&mut self, policy: &ObjectName) {
        self.schedule.unsubscribe(policy);
        self.forget_unfollowed();
    }

    /// Returns the tags whose lookups are due, and counts them as in flight.
    pub fn take_due(&mut self, now: Timestamp) -> Vec<(RepositoryTarget, T)> {
        let due = self.schedule.take_due(now).into_iter();
        due.filter_map(|target| Some((self.repositories.get(&target)?.clone(), target))).collect()
    }

    /// Returns the known digest of the tag that a policy follows.
    pub fn known(&self, policy: &ObjectName, followed: &FollowedTag, target: &T) -> Option<Polled> {
        Some(followed.polled(self.schedule.state(policy, target)?))
    }

    /// Forgets the repositories of tags that no policy follows any more.
    fn forget_unfollowed(&mut self) {
        if self.repositories.len() > self.schedule.count() {
            let schedule = &self.schedule;
            self.repositories.retain(|target, _| schedule.followers(target).next().is_some());
        }
    }
}

impl FollowedTag {
    /// Makes the subscription of a policy to a `target`.
    fn subscription<T>(
        &self,
        policy: &ObjectName,
        target: T,
        latest: Option<&ImageRef>,
        members: impl FnOnce(&str) -> BTreeSet<ObjectName>,
    ) -> Subscription<ObjectName, T> {
        let image = self.target.address.to_string();
        let same = latest.filter(|_| is_same_tag(latest, &image, &self.tag));
        // Each namespace has its own groups.
        let group = self
            .group
            .as_ref()
            .map(|name| Group { name: format!("{}/{name}", policy.namespace), members: members(name) });
        let seed = same.and_then(ImageRef::digest).map(str::to_owned);
        Subscription { target, interval: self.interval, group, seed, is_fresh: false }
    }

    /// Returns the digest of the tag for a policy, from the state of the schedule.
    fn polled(&self, known: &DigestState<ObjectName, Staleness>) -> Polled {
        let staleness = known.stale.as_ref().map(|reason| match reason {
            StaleReason::LookupFailed(staleness) => staleness.clone(),
            StaleReason::GroupIncomplete(missing) => Staleness {
                reason: Reason::GroupIncomplete,
                message: incomplete(self.group.as_deref().unwrap_or_default(), missing),
            },
        });
        Polled { digest: known.digest.clone(), staleness }
    }
}

/// Returns the message about the members of a group whose digests are missing.
fn incomplete(group: &str, missing: &Missing<ObjectName>) -> String {
    match missing {
        Missing { first, others: 0 } => {
            format!("the digest of the policy {first} of the group {group} is not known")
        }
        Missing { first, others } => {
            format!(
                "the digests of the policy {first} and of {others} more of the group {group} are not known"
            )
        }
    }
}

/// Returns the policies that belong to a group, of all policies of its namespace.
pub fn members<P: AsRef<ImagePolicy>>(
    group: &str,
    policies: impl Iterator<Item = P>,
) -> BTreeSet<ObjectName> {
    let belongs = |policy: &ImagePolicy| {
        // Most are in no group, and parsing all settings of a policy takes time.
        !policy.spec.suspend
            && PolicySettings::has_group(policy.annotations())
            && Request::of(policy).is_ok_and(|request| request.group.as_deref() == Some(group))
    };
    policies.filter(|policy| belongs(policy.as_ref())).map(|policy| ObjectName::of(policy.as_ref())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_group_names_the_missing_policies() {
        let first = ObjectName { namespace: "apps".to_owned(), name: "web".to_owned() };
        for (others, message) in [
            (0, "the digest of the policy apps/web of the group shop is not known"),
            (2, "the digests of the policy apps/web and of 2 more of the group shop are not known"),
        ] {
            assert_eq!(incomplete("shop", &Missing { first: first.clone(), others }), message);
        }
    }
}
