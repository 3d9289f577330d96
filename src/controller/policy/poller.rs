//! Looks up the digests of tags that policies follow.
//!
//! It writes nothing: policies are made due when a digest has changed.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use parking_lot::Mutex;
use tagboat_api::{GoDuration, ImagePolicy, ImageRef};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::state::Policies;
use crate::backoff::random_fraction;
use crate::objects::ObjectName;
use crate::objects::cluster::Cache;
use crate::polling::{FailureScope, InRegistry, PollFailure, PollingInterval};
use crate::reconcile::lookup::{LookupFailure, LookupFailureKind};
use crate::reconcile::policy::digest::Polled;
use crate::reconcile::policy::following::{FollowedTags, members};
use crate::reconcile::policy::run::{FollowedTag, PolicyRunResult};
use crate::reconcile::tags::{Registry, RepositoryTarget};
use crate::tenancy::{FairCache, FairSemaphore, Permit, SlotLimits};

/// The time that a registry may take for a digest.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum number of lookups in flight per registry.
///
/// After a restart all are due at once, and a lookup that waited for the rate limiter would lose its time
/// there.
const MAX_LOOKUPS: usize = 8;

/// The number of registries, each counted once per route, whose slots are remembered.
const MAX_REGISTRIES: usize = 1024;

/// A tag as it is seen with one login.
///
/// Requests of one namespace with the same secrets get the same answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    namespace: String,
    /// The namespace of the policies that follow the tag: the lookup is done for it.
    tenant: String,
    canonical: String,
    scheme: &'static str,
    /// The provider, and the names of the objects that logins are made of.
    login: [Option<String>; 5],
    tag: String,
    /// The registry and the route to it, which share slots.
    route: String,
    /// The registry for one login of one namespace, whose failures are those of no other.
    registry: String,
}

impl InRegistry for Target {
    fn registry(&self) -> &str {
        &self.registry
    }
}

impl Target {
    fn of(followed: &FollowedTag) -> Self {
        let RepositoryTarget { repository, address, .. } = &followed.target;
        let spec = &repository.spec;
        let name = |reference: &Option<tagboat_api::reference::LocalObjectReference>| {
            reference.as_ref().map(|reference| reference.name.clone())
        };
        let namespace = repository.namespace().unwrap_or_default();
        let own_route = [&spec.proxy_secret_ref, &spec.cert_secret_ref].map(name);
        let route = if own_route.iter().all(Option::is_none) {
            address.registry().to_owned()
        } else {
            format!("{} of {namespace} by {own_route:?}", address.registry())
        };
        let login = [
            Some(spec.provider.as_str().to_owned()),
            name(&spec.secret_ref),
            name(&spec.cert_secret_ref),
            name(&spec.proxy_secret_ref),
            spec.service_account_name.clone(),
        ];
        let tenant = followed.target.referred_from.clone().unwrap_or_else(|| namespace.clone());
        Self {
            registry: format!("{route} for {tenant} of {namespace} as {login:?}"),
            namespace,
            tenant,
            route,
            canonical: address.canonical(),
            scheme: address.scheme().as_str(),
            login,
            tag: followed.tag.clone(),
        }
    }
}

/// The tags that policies follow, with the digests that are known.
pub(crate) struct Poller {
    tags: Mutex<FollowedTags<Target>>,
    changed: Notify,
    /// The slots for lookups, by registry and route.
    slots: Mutex<FairCache<String, FairSemaphore>>,
}

impl Default for Poller {
    fn default() -> Self {
        Self {
            tags: Mutex::default(),
            changed: Notify::new(),
            slots: Mutex::new(FairCache::new(MAX_REGISTRIES)),
        }
    }
}

impl Poller {
    /// Logs the default interval of lookups.
    pub(crate) fn log_interval(&self, interval: &PollingInterval) {
        match interval {
            PollingInterval::Disabled => {
                tracing::info!("the digests of floating tags are not looked up: polling is disabled");
            }
            PollingInterval::Every(interval) => {
                let interval = GoDuration::from(*interval);
                tracing::info!(%interval, "the digests of floating tags are looked up");
            }
        }
    }

    /// Returns the digest that is known of a tag which a policy follows.
    pub(super) fn known(&self, policy: &ObjectName, followed: &FollowedTag) -> Option<Polled> {
        self.tags.lock().known(policy, followed, &Target::of(followed))
    }

    /// Sets the tag that a policy follows after a run.
    ///
    /// Returns the policies whose known digest changes by that.
    pub(super) fn follow(
        &self,
        policy: &ObjectName,
        result: &PolicyRunResult,
        latest: Option<&ImageRef>,
        policies: &Cache<ImagePolicy>,
    ) -> Vec<ObjectName> {
        // Outside the lock: it reads the settings of all policies of the namespace.
        let group = result.followed.as_ref().and_then(|followed| followed.group.as_ref());
        let members = group.map(|group| members(group, policies.in_namespace(&policy.namespace).into_iter()));
        let members = |_: &str| members.unwrap_or_default();
        let changed = self.tags.lock().follow(policy, result, Target::of, latest, members);
        self.changed.notify_one();
        changed
    }

    /// Removes the tag that a policy follows.
    pub(super) fn unsubscribe(&self, policy: &ObjectName) {
        self.tags.lock().unfollow(policy);
    }

    /// Returns the time of the next lookup for a policy.
    ///
    /// Returns `None` during a lookup, or if there is none.
    pub(super) fn next_of(&self, policy: &ObjectName) -> Option<Timestamp> {
        self.tags.lock().schedule.next_of(policy)
    }

    /// Returns the slots for lookups at the registry of a target.
    fn slots(&self, target: &Target) -> FairSemaphore {
        let mut all = self.slots.lock();
        if let Some(slots) = all.get(&target.route) {
            return slots.clone();
        }
        all.retain_if_full(|_, slots| !slots.is_idle());
        let slots = FairSemaphore::new(SlotLimits::shared(MAX_LOOKUPS));
        all.insert(&target.tenant, target.route.clone(), slots.clone());
        slots
    }
}

/// Looks up the digests that are due, until the future is dropped.
pub(crate) async fn poll<R: Registry>(policies: Arc<Policies<R>>) {
    let mut lookups = JoinSet::new();
    loop {
        let due = policies.poller.tags.lock().take_due(Timestamp::now());
        for (repository, target) in due {
            lookups.spawn(look_up(policies.clone(), repository, target));
        }
        let next = policies.poller.tags.lock().schedule.next();
        let wait = async {
            match next {
                Some(next) => {
                    let wait = Duration::try_from(next.duration_since(Timestamp::now())).unwrap_or_default();
                    sleep(wait).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = wait => {}
            () = policies.poller.changed.notified() => {}
            Some(_) = lookups.join_next() => {}
        }
    }
}

/// Does some work, and releases a slot when it is done or after `time`.
async fn release_after<T>(time: Duration, slot: Permit, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        result = &mut work => return result,
        () = sleep(time) => drop(slot),
    }
    work.await
}

/// Looks up one digest, and makes the policies due that follow the tag.
async fn look_up<R: Registry>(policies: Arc<Policies<R>>, repository: RepositoryTarget, target: Target) {
    let reference = format!("{}:{}", repository.address, target.tag);
    let repository = RepositoryTarget { timeout: repository.timeout.min(LOOKUP_TIMEOUT), ..repository };
    let slot = policies.poller.slots(&target).acquire(&target.tenant, 1).await;
    let overtaken = policies.poller.tags.lock().schedule.blocked_since_taken(&target);
    let answer = match overtaken {
        // The timeout leaves waits for memory out, so that a lookup which takes longer waits for memory.
        None => {
            release_after(
                repository.timeout,
                slot,
                policies.repositories.registry.digest(&repository, &target.tag),
            )
            .await
        }
        // While this lookup waited for a slot, others found that the registry does not answer.
        Some(until) => Err(LookupFailure {
            kind: LookupFailureKind::Unavailable,
            message: format!(
                "{} is not requested until {until:.0}: it did not respond to other lookups",
                repository.address.registry()
            ),
            retry_after: None,
        }),
    };
    if let Err(failure) = &answer {
        tracing::warn!(image = reference, error = failure.message, "cannot look up the digest, retrying");
    }
    // A policy that gives a registry less time than others cannot tell its state for them.
    let is_patient = repository.timeout >= LOOKUP_TIMEOUT;
    let answer = answer.map_err(|failure| PollFailure {
        reason: failure.staleness(&reference),
        scope: match failure.kind {
            LookupFailureKind::Unavailable if is_patient => FailureScope::Registry,
            LookupFailureKind::Missing | LookupFailureKind::Unreadable => FailureScope::Tag,
            // A lookup that is denied may not have reached the registry.
            LookupFailureKind::Unavailable | LookupFailureKind::Denied => FailureScope::Caller,
        },
        retry_after: failure.retry_after,
    });
    let now = Timestamp::now();
    let jitter = random_fraction();
    let (changed, followers) = {
        let schedule = &mut policies.poller.tags.lock().schedule;
        let changed = schedule.record(&target, answer, now, jitter);
        (changed, schedule.followers(&target).cloned().collect::<Vec<_>>())
    };
    for policy in changed {
        policies.kind.enqueue(policy);
    }
    for policy in followers {
        policies.measure_next_poll(&policy);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures::FutureExt;
    use tokio::time::timeout;

    use super::*;

    /// A lookup that waited for memory kept its slot for up to ten minutes.
    ///
    /// Eight of them kept all slots of a registry.
    #[tokio::test(start_paused = true)]
    async fn a_lookup_that_waits_for_memory_releases_its_slot() {
        let slots = FairSemaphore::new(SlotLimits { total: 1, per_namespace: 1, overflow: None });
        let slot = slots.acquire("attacker", 1).await;
        let waiting = release_after(LOOKUP_TIMEOUT, slot, pending::<()>());
        let next = async { slots.acquire("victim", 1).await };
        tokio::select! {
            () = waiting => unreachable!("it waits for ever"),
            slot = timeout(LOOKUP_TIMEOUT * 2, next) => drop(slot.expect("the slot is released")),
        }
        // Work that ends in time returns it at once.
        let slot = slots.acquire("attacker", 1).await;
        assert_eq!(release_after(LOOKUP_TIMEOUT, slot, async { 7 }).now_or_never(), Some(7));
        assert!(slots.is_idle());
    }
}
