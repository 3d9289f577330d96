//! The digest subscription of a policy that follows a tag.

use std::collections::BTreeSet;

use tagboat_api::{ImagePolicy, ImageRef, Reason};

use super::choice::is_same_tag;
use super::digest::Polled;
use super::request::Request;
use super::run::FollowedTag;
use crate::objects::ObjectName;
use crate::polling::{DigestState, Group, Missing, StaleReason, Subscription};
use crate::reconcile::lookup::Staleness;

impl FollowedTag {
    /// Makes the subscription of a policy to a `target`. `latest` is the image that the policy reports, and `members`
    /// returns the members of a group.
    pub fn subscription<T>(
        &self,
        policy: &ObjectName,
        target: T,
        latest: Option<&ImageRef>,
        members: impl FnOnce(&str) -> BTreeSet<ObjectName>,
    ) -> Subscription<ObjectName, T> {
        let image = self.place.address.to_string();
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
    pub fn polled(&self, known: &DigestState<ObjectName, Staleness>) -> Polled {
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

/// Returns whether a policy belongs to a group of its namespace.
pub fn belongs_to(policy: &ImagePolicy, group: &str) -> bool {
    Request::of(policy).is_ok_and(|request| request.group.as_deref() == Some(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_waits_says_for_whom() {
        let first = ObjectName { namespace: "apps".to_owned(), name: "web".to_owned() };
        for (others, words) in [
            (0, "the digest of the policy apps/web of the group shop is not known"),
            (2, "the digests of the policy apps/web and of 2 more of the group shop are not known"),
        ] {
            assert_eq!(incomplete("shop", &Missing { first: first.clone(), others }), words);
        }
    }
}
