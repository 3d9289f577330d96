//! Digests of floating tags.
//!
//! Each is looked up once per run, and those of a group take effect together or not at all.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use jiff::Timestamp;
use tagboat_api::policy::ImagePolicyStatus;

use super::sources::Policies;
use crate::objects::ObjectName;
use crate::polling::{FailureScope, InRegistry, PollFailure, Schedule};
use crate::reconcile::lookup::Staleness;
use crate::reconcile::policy::digest::Polled;
use crate::reconcile::policy::following::belongs_to;
use crate::reconcile::policy::run::{Ended, FollowedTag};
use crate::reconcile::tags::{Registry, RepositoryTarget};

/// A tag of an ImageRepository, which implies the login.
type Target = (ObjectName, String);

/// A run looks up each tag once, so there is no circuit breaker for registries.
impl InRegistry for Target {
    fn registry(&self) -> &str {
        ""
    }
}

/// The tags that policies follow, and their digests.
#[derive(Debug, Default)]
pub(super) struct Digests {
    schedule: Schedule<ObjectName, Target, Staleness>,
    places: BTreeMap<Target, RepositoryTarget>,
}

impl Digests {
    /// Subscribes a policy to the tag that it follows; its status before was `previous`.
    pub(super) fn follow(
        &mut self,
        policy: &ObjectName,
        ended: &Ended,
        previous: &ImagePolicyStatus,
        policies: &Policies,
    ) {
        let Some(followed) = &ended.followed else { return };
        let target = target(followed);
        self.places.insert(target.clone(), followed.place.clone());
        let members = |group: &str| members(group, &policy.namespace, policies);
        let subscription = followed.subscription(policy, target, previous.latest_ref.as_ref(), members);
        self.schedule.subscribe(policy, subscription, Timestamp::now());
    }

    /// Looks up the digests of all tags.
    pub(super) async fn look_up(&mut self, registry: &impl Registry) {
        let now = Timestamp::now();
        let due = self.schedule.take_due(now);
        let places = &self.places;
        let lookups = due.into_iter().filter_map(|target| Some((places.get(&target)?, target)));
        let lookups = lookups.map(async |(place, target)| {
            let answer = registry.digest(place, &target.1).await;
            let reference = format!("{}:{}", place.address, target.1);
            let answer = answer.map_err(|failure| PollFailure {
                reason: failure.staleness(&reference),
                scope: FailureScope::Tag,
                retry_after: failure.retry_after,
            });
            (target, answer)
        });
        for (target, answer) in join_all(lookups).await {
            self.schedule.record(&target, answer, now, 0.5);
        }
    }

    /// Returns the digest of the tag that a policy follows.
    pub(super) fn known(&self, policy: &ObjectName, followed: &FollowedTag) -> Option<Polled> {
        Some(followed.polled(self.schedule.state(policy, &target(followed))?))
    }
}

fn target(followed: &FollowedTag) -> Target {
    (ObjectName::of(followed.place.repository.as_ref()), followed.tag.clone())
}

/// Returns the policies of a namespace that belong to a group.
fn members(group: &str, namespace: &str, policies: &Policies) -> BTreeSet<ObjectName> {
    let own = policies.iter().filter(|(name, _)| name.namespace == namespace);
    own.filter(|(_, policy)| belongs_to(policy, group)).map(|(name, _)| name.clone()).collect()
}
