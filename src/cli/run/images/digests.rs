//! Digests of floating tags.
//!
//! Each is looked up once per run, and those of a group take effect together or not at all.

use futures::future::join_all;
use jiff::Timestamp;
use tagboat_api::policy::ImagePolicyStatus;

use super::sources::Policies;
use crate::objects::ObjectName;
use crate::polling::{FailureScope, InRegistry, PollFailure};
use crate::reconcile::policy::digest::Polled;
use crate::reconcile::policy::following::{FollowedTags, members};
use crate::reconcile::policy::run::{FollowedTag, PolicyRunResult};
use crate::reconcile::tags::Registry;

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
pub(super) struct Digests(FollowedTags<Target>);

impl Digests {
    /// Subscribes a policy to the tag that it follows; its status before was `previous`.
    pub(super) fn follow(
        &mut self,
        policy: &ObjectName,
        result: &PolicyRunResult,
        previous: &ImagePolicyStatus,
        policies: &Policies,
    ) {
        let own = policies.iter().filter(|(name, _)| name.namespace == policy.namespace);
        let members = |group: &str| members(group, own.map(|(_, policy)| policy));
        self.0.follow(policy, result, target, previous.latest_ref.as_ref(), members);
    }

    /// Looks up the digests of all tags.
    pub(super) async fn look_up(&mut self, registry: &impl Registry) {
        let now = Timestamp::now();
        let lookups = self.0.take_due(now).into_iter().map(async |(repository, target)| {
            let answer = registry.digest(&repository, &target.1).await;
            let reference = format!("{}:{}", repository.address, target.1);
            let answer = answer.map_err(|failure| PollFailure {
                reason: failure.staleness(&reference),
                scope: FailureScope::Tag,
                retry_after: failure.retry_after,
            });
            (target, answer)
        });
        for (target, answer) in join_all(lookups).await {
            self.0.schedule.record(&target, answer, now, 0.5);
        }
    }

    /// Returns the digest of the tag that a policy follows.
    pub(super) fn known(&self, policy: &ObjectName, followed: &FollowedTag) -> Option<Polled> {
        self.0.known(policy, followed, &target(followed))
    }
}

fn target(followed: &FollowedTag) -> Target {
    (ObjectName::of(followed.target.repository.as_ref()), followed.tag.clone())
}
