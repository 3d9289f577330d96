//! Looking at the digests of tags that float. Nothing is written here: what is known changes, and policies are woken.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use parking_lot::Mutex;
use tagboat_api::settings::PolicySettings;
use tagboat_api::{GoDuration, ImagePolicy, ImageRef};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::shared::{Kind, Shared};
use crate::backoff::random_fraction;
use crate::objects::ObjectName;
use crate::objects::cluster::Cache;
use crate::polling::{FailureScope, InRegistry, LookupFailure, PollingInterval, Schedule, Subscription};
use crate::reconcile::lookup::{LookFailure, LookFailureKind, Staleness};
use crate::reconcile::policy::digest::Polled;
use crate::reconcile::policy::following::belongs_to;
use crate::reconcile::policy::run::{Ended, Followed};
use crate::reconcile::tags::{Place, Registry};
use crate::tenancy::{FairCache, FairSemaphore, Permit, SlotLimits};

/// How long a registry may take to say a digest.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many digests of one registry are looked up at the same time. After a restart all are due at once, and one that
/// stood in the line for its budget would have lost its time there.
const AT_ONCE: usize = 8;

/// The number of registries, each counted once per route, whose slots are remembered.
const MAX_LINES: usize = 1024;

/// A tag as one login sees it: requests of one namespace with the same secrets see the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    namespace: String,
    /// The namespace of the policies that follow the tag: the lookup is done for it.
    tenant: String,
    canonical: String,
    scheme: &'static str,
    /// The provider, and the names of what logins are made of.
    login: [Option<String>; 5],
    tag: String,
    /// The registry by its route: slots are shared by all that reach it so.
    route: String,
    /// The same for one login of one namespace, whose failures are those of no other.
    registry: String,
}

impl InRegistry for Target {
    fn registry(&self) -> &str {
        &self.registry
    }
}

impl Target {
    fn of(followed: &Followed) -> Self {
        let Place { repository, address, .. } = &followed.place;
        let spec = &repository.spec;
        let name = |reference: &Option<tagboat_api::reference::LocalObjectReference>| {
            reference.as_ref().map(|reference| reference.name.clone())
        };
        let namespace = repository.namespace().unwrap_or_default();
        let own_way = [&spec.proxy_secret_ref, &spec.cert_secret_ref].map(name);
        let route = if own_way.iter().all(Option::is_none) {
            address.registry().to_owned()
        } else {
            format!("{} of {namespace} by {own_way:?}", address.registry())
        };
        let login = [
            Some(spec.provider.as_str().to_owned()),
            name(&spec.secret_ref),
            name(&spec.cert_secret_ref),
            name(&spec.proxy_secret_ref),
            spec.service_account_name.clone(),
        ];
        let tenant = followed.place.referred_from.clone().unwrap_or_else(|| namespace.clone());
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

/// Who follows which tag, and what is known of their digests.
pub(super) struct Poller {
    state: Mutex<State>,
    changed: Notify,
    /// The slots for lookups, by registry and route.
    lines: Mutex<FairCache<String, FairSemaphore>>,
}

impl Default for Poller {
    fn default() -> Self {
        Self { state: Mutex::default(), changed: Notify::new(), lines: Mutex::new(FairCache::new(MAX_LINES)) }
    }
}

#[derive(Default)]
struct State {
    schedule: Schedule<ObjectName, Target, Staleness>,
    /// Where to ask.
    places: BTreeMap<Target, Place>,
}

impl Poller {
    /// Says how often digests are looked up.
    pub(super) fn say_how(&self, interval: &PollingInterval) {
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

    /// What is known of a tag that a policy follows.
    pub(super) fn known(&self, policy: &ObjectName, followed: &Followed) -> Option<Polled> {
        let state = self.state.lock();
        Some(followed.polled(state.schedule.state(policy, &Target::of(followed))?))
    }

    /// Takes note of what a policy follows after a run, and gives those for whom something else is known by that.
    pub(super) fn follow(
        &self,
        policy: &ObjectName,
        ended: &Ended,
        latest: Option<&ImageRef>,
        policies: &Cache<ImagePolicy>,
    ) -> Vec<ObjectName> {
        let Some(followed) = &ended.followed else {
            self.unsubscribe(policy);
            return Vec::new();
        };
        let target = Target::of(followed);
        let members = |group: &str| members(group, &policy.namespace, policies);
        let subscription = Subscription {
            is_fresh: ended.is_fresh,
            ..followed.subscription(policy, target.clone(), latest, members)
        };
        let mut state = self.state.lock();
        state.places.insert(target, followed.place.clone());
        let woken = state.schedule.subscribe(policy, subscription, Timestamp::now());
        state.let_go();
        drop(state);
        self.changed.notify_one();
        woken
    }

    /// Takes note that a policy follows nothing any more.
    pub(super) fn unsubscribe(&self, policy: &ObjectName) {
        let mut state = self.state.lock();
        state.schedule.unsubscribe(policy);
        state.let_go();
    }

    /// When the digest of a policy is looked up next; nothing while that is done, or where it is not.
    pub(super) fn next_of(&self, policy: &ObjectName) -> Option<Timestamp> {
        self.state.lock().schedule.next_of(policy)
    }

    /// The slots for lookups at the registry of a target.
    fn line(&self, target: &Target) -> FairSemaphore {
        let mut lines = self.lines.lock();
        if let Some(line) = lines.get(&target.route) {
            return line.clone();
        }
        lines.retain_if_full(|_, line| !line.is_idle());
        let line = FairSemaphore::new(SlotLimits::shared(AT_ONCE));
        lines.insert(&target.tenant, target.route.clone(), line.clone());
        line
    }
}

impl State {
    /// Forgets where to ask for what nobody follows any more.
    fn let_go(&mut self) {
        if self.places.len() > self.schedule.count() {
            let schedule = &self.schedule;
            self.places.retain(|target, _| schedule.followers(target).next().is_some());
        }
    }
}

/// The policies of a namespace that belong to a group.
fn members(group: &str, namespace: &str, policies: &Cache<ImagePolicy>) -> BTreeSet<ObjectName> {
    let all = policies.in_namespace(namespace).into_iter();
    all.filter(|policy| !policy.spec.suspend)
        // Most are in none, and reading all that a policy asks for takes its time.
        .filter(|policy| PolicySettings::name_a_group(policy.annotations()))
        .filter(|policy| belongs_to(policy, group))
        .map(|policy| ObjectName::of(policy.as_ref()))
        .collect()
}

/// Looks at what is due, until the future is dropped.
pub(super) async fn poll<R: Registry>(shared: Arc<Shared<R>>) {
    let mut looks = JoinSet::new();
    loop {
        let due = {
            let mut state = shared.poller.state.lock();
            let due = state.schedule.take_due(Timestamp::now());
            due.into_iter()
                .filter_map(|target| Some((state.places.get(&target)?.clone(), target)))
                .collect::<Vec<_>>()
        };
        for (place, target) in due {
            looks.spawn(look(shared.clone(), place, target));
        }
        let next = shared.poller.state.lock().schedule.next();
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
            () = shared.poller.changed.notified() => {}
            Some(_) = looks.join_next() => {}
        }
    }
}

/// Does some work, and returns a slot when it is done or after `time`.
async fn release_after<T>(time: Duration, slot: Permit, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        ended = &mut work => return ended,
        () = sleep(time) => drop(slot),
    }
    work.await
}

/// Asks for one digest, and tells those who follow the tag.
async fn look<R: Registry>(shared: Arc<Shared<R>>, place: Place, target: Target) {
    let reference = format!("{}:{}", place.address, target.tag);
    let place = Place { timeout: place.timeout.min(PATIENCE), ..place };
    let turn = shared.poller.line(&target).acquire(&target.tenant, 1).await;
    let overtaken = shared.poller.state.lock().schedule.blocked_since_taken(&target);
    let answer = match overtaken {
        // Its timeout leaves waits for memory out, so that a lookup which takes longer waits for memory.
        None => release_after(place.timeout, turn, shared.registry.digest(&place, &target.tag)).await,
        // While this one stood in the line, others found out that nobody answers.
        Some(until) => Err(LookFailure {
            kind: LookFailureKind::Unavailable,
            words: format!(
                "{} is left alone until {until:.0}, for it did not answer others",
                place.address.registry()
            ),
            retry_after: None,
        }),
    };
    if let Err(failure) = &answer {
        tracing::warn!(image = reference, error = failure.words, "cannot look up the digest, trying again");
    }
    // Who gives a registry less time than others do knows nothing of it for them.
    let is_patient = place.timeout >= PATIENCE;
    let answer = answer.map_err(|failure| LookupFailure {
        reason: failure.staleness(&reference),
        scope: match failure.kind {
            LookFailureKind::Unavailable if is_patient => FailureScope::Registry,
            LookFailureKind::Missing | LookFailureKind::Unreadable => FailureScope::Tag,
            // Who is not let in may not have come as far as the registry.
            LookFailureKind::Unavailable | LookFailureKind::Denied => FailureScope::Caller,
        },
        retry_after: failure.retry_after,
    });
    let now = Timestamp::now();
    let jitter = random_fraction();
    let (woken, followers) = {
        let mut state = shared.poller.state.lock();
        let woken = state.schedule.record(&target, answer, now, jitter);
        (woken, state.schedule.followers(&target).cloned().collect::<Vec<_>>())
    };
    for policy in woken {
        shared.wake(Kind::Policy, policy);
    }
    for policy in followers {
        shared.measure_next_poll(&policy);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures::FutureExt;
    use tokio::time::timeout;

    use super::*;

    /// A manifest that waited for memory kept a slot for up to ten minutes, and eight of them kept all of a registry.
    #[tokio::test(start_paused = true)]
    async fn a_lookup_that_waits_for_memory_releases_its_slot() {
        let line = FairSemaphore::new(SlotLimits { total: 1, per_namespace: 1, overflow: None });
        let slot = line.acquire("attacker", 1).await;
        let waiting = release_after(PATIENCE, slot, pending::<()>());
        let next = async { line.acquire("victim", 1).await };
        tokio::select! {
            () = waiting => unreachable!("it waits for ever"),
            slot = timeout(PATIENCE * 2, next) => drop(slot.expect("the slot is released")),
        }
        // Work that ends in time returns it at once.
        let slot = line.acquire("attacker", 1).await;
        assert_eq!(release_after(PATIENCE, slot, async { 7 }).now_or_never(), Some(7));
        assert!(line.is_idle());
    }
}
