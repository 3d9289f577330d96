//! Limits concurrent transactions, fairly by namespace and by route.
//!
//! A transaction that waits for its server does next to no work. If its server has been silent for a while, it releases
//! its slot, and takes it back without waiting when the server has answered.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::url::RemoteUrl;
use crate::metrics::{Metrics, SlotResource};
use crate::net::Proxy;
use crate::secrets::{Fingerprint, Secret};
use crate::tenancy::{FairSemaphore, Permit, SlotLimits};

/// The time that a transaction waits for its server before it releases its slot.
const RELEASE_AFTER: Duration = Duration::from_secs(5);

/// The limits on released slots in long waits: in total, and for one namespace.
const WAITING: SlotLimits = SlotLimits { total: 32, per_namespace: 16, overflow: None };

/// The number of routes from which on those without transactions are dropped.
const MANY_ROUTES: usize = 64;

/// Limits concurrent transactions, in total and by route. Clones share the slots.
#[derive(Clone, Debug)]
pub struct TransactionSlots(Arc<Limited>);

/// The server of a remote and the connection to it.
///
/// Two objects share a route only if they reach the same server through the same proxy and trust the same
/// certificate authority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouteKey {
    /// Scheme, host and port.
    pub origin: String,
    /// The object's own proxy and certificate authority; `None` if it has neither.
    pub own: Option<Fingerprint>,
}

impl RouteKey {
    /// Returns the route through an object's own proxy and certificate authority, if any.
    pub fn new(url: &RemoteUrl, proxy: Option<&Proxy>, authority: Option<&Secret>) -> Self {
        let proxy = proxy.map(Proxy::to_url);
        let own = [proxy.as_ref(), authority].map(|part| part.map(Secret::expose));
        let has_own = own.iter().any(Option::is_some);
        let own = has_own.then(|| Fingerprint::of(own.map(Option::unwrap_or_default)));
        Self { origin: url.to_origin().unwrap_or_default(), own }
    }
}

#[derive(Debug)]
struct Limited {
    limits: SlotLimits,
    release_after: Duration,
    running: FairSemaphore,
    waiting: FairSemaphore,
    routes: Mutex<HashMap<RouteKey, FairSemaphore>>,
}

/// A slot, released on drop.
#[derive(Debug)]
pub(super) struct Slot {
    limited: Arc<Limited>,
    namespace: String,
    running: Mutex<Option<Permit>>,
    _route: Permit,
}

/// A wait for a server, which ends on drop.
#[derive(Debug)]
pub(super) struct ServerWait<'s> {
    slot: &'s Slot,
    begin: Instant,
    /// Held instead of the slot.
    waiting: Option<Permit>,
}

impl TransactionSlots {
    /// Creates the given number of slots in total and for each route, at least one.
    pub fn limited(count: usize, metrics: &Metrics) -> Self {
        let limits = SlotLimits::shared(count);
        let running = FairSemaphore::measured(limits, SlotResource::transaction, metrics);
        Self::new(limits, running, RELEASE_AFTER)
    }

    fn new(limits: SlotLimits, running: FairSemaphore, release_after: Duration) -> Self {
        let waiting = FairSemaphore::new(WAITING);
        Self(Arc::new(Limited { limits, release_after, running, waiting, routes: Mutex::default() }))
    }

    /// Waits for a slot of a namespace for a transaction by `route`.
    /// Dropping the future cancels the wait.
    pub(super) async fn acquire(&self, namespace: &str, route: &RouteKey) -> Slot {
        // In this order, so that a transaction that waits for a busy route holds no slot of others.
        let by_route = self.0.route(route).acquire(namespace, 1).await;
        let running = self.0.running.acquire(namespace, 1).await;
        Slot {
            limited: Arc::clone(&self.0),
            namespace: namespace.to_owned(),
            running: Mutex::new(Some(running)),
            _route: by_route,
        }
    }
}

impl Limited {
    fn route(&self, key: &RouteKey) -> FairSemaphore {
        let mut routes = self.routes.lock();
        if routes.len() >= MANY_ROUTES && !routes.contains_key(key) {
            routes.retain(|_, semaphore| !semaphore.is_idle());
        }
        routes.entry(key.clone()).or_insert_with(|| FairSemaphore::new(self.limits)).clone()
    }
}

impl Slot {
    /// Returns the namespace for which the transaction runs.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Starts a wait for the server.
    pub(super) fn wait(&self) -> ServerWait<'_> {
        ServerWait { slot: self, begin: Instant::now(), waiting: None }
    }
}

impl ServerWait<'_> {
    /// Releases the slot after a long wait, unless too many transactions wait already.
    pub(super) fn go_on(&mut self) {
        let limited = &self.slot.limited;
        if self.waiting.is_none() && self.begin.elapsed() >= limited.release_after {
            self.waiting = limited.waiting.try_acquire(&self.slot.namespace, 1);
            if self.waiting.is_some() {
                self.slot.running.lock().take();
            }
        }
    }
}

impl Drop for ServerWait<'_> {
    fn drop(&mut self) {
        if self.waiting.is_some() {
            // Waiting for a slot would use up the time that is left for the push.
            let permit = self.slot.limited.running.acquire_beyond_limits(&self.slot.namespace, 1);
            *self.slot.running.lock() = Some(permit);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn releasing_after(count: usize, release_after: Duration) -> TransactionSlots {
        let limits = SlotLimits::shared(count);
        TransactionSlots::new(limits, FairSemaphore::new(limits), release_after)
    }

    fn route(origin: &str) -> RouteKey {
        RouteKey { origin: origin.to_owned(), own: None }
    }

    fn acquire(slots: &TransactionSlots, namespace: &str, origin: &str) -> Option<Slot> {
        slots.acquire(namespace, &route(origin)).now_or_never()
    }

    fn running(slots: &TransactionSlots) -> u64 {
        slots.0.running.held()
    }

    #[tokio::test]
    async fn no_more_transactions_run_than_there_are_slots() {
        let slots = releasing_after(2, RELEASE_AFTER);
        let held = [acquire(&slots, "a", "x"), acquire(&slots, "a", "y")];
        assert!(held.iter().all(Option::is_some));
        assert!(acquire(&slots, "b", "z").is_none());
        drop(held);
        assert!(acquire(&slots, "b", "z").is_some());
        assert!(acquire(&releasing_after(0, RELEASE_AFTER), "a", "x").is_some());
    }

    #[tokio::test]
    async fn a_long_wait_releases_the_slot_and_takes_it_back_at_once() {
        let slots = releasing_after(1, Duration::ZERO);
        let slow = acquire(&slots, "a", "slow").unwrap();
        let mut wait = slow.wait();
        assert_eq!(running(&slots), 1);
        wait.go_on();
        wait.go_on();
        assert_eq!(running(&slots), 0);
        let other = acquire(&slots, "a", "other").unwrap();
        drop(wait);
        // It does not wait for the other one, and a third starts only after both have ended.
        assert_eq!(running(&slots), 2);
        drop(other);
        assert!(acquire(&slots, "a", "third").is_none());
        drop(slow);
        assert!(acquire(&slots, "a", "third").is_some());
    }

    #[tokio::test]
    async fn a_short_wait_keeps_the_slot() {
        let slots = releasing_after(1, RELEASE_AFTER);
        let slot = acquire(&slots, "a", "x").unwrap();
        slot.wait().go_on();
        assert_eq!(running(&slots), 1);
    }

    #[tokio::test]
    async fn a_silent_server_gets_no_more_transactions_than_there_are_slots() {
        let slots = releasing_after(1, Duration::ZERO);
        let slow = acquire(&slots, "a", "slow").unwrap();
        let mut wait = slow.wait();
        wait.go_on();
        assert!(acquire(&slots, "a", "slow").is_none());
    }

    #[tokio::test]
    async fn a_transaction_through_its_own_proxy_takes_no_slot_of_the_direct_route() {
        let slots = releasing_after(1, Duration::ZERO);
        let own = RouteKey { own: Some(Fingerprint::of(["proxy"])), ..route("forge") };
        let attacker = slots.acquire("attacker", &own).now_or_never().unwrap();
        let mut wait = attacker.wait();
        wait.go_on();
        assert!(acquire(&slots, "victim", "forge").is_some());
    }

    #[tokio::test]
    async fn transactions_that_released_their_slot_are_bounded() {
        let slots = releasing_after(100, Duration::ZERO);
        let held: Vec<Slot> = (0..20).map(|_| acquire(&slots, "a", "x").unwrap()).collect();
        let mut waits: Vec<ServerWait<'_>> = held.iter().map(Slot::wait).collect();
        waits.iter_mut().for_each(ServerWait::go_on);
        assert_eq!(running(&slots), 4);
        let other = acquire(&slots, "b", "x").unwrap();
        other.wait().go_on();
        assert_eq!(running(&slots), 5);
        drop(waits);
        assert_eq!(running(&slots), 21);
    }
}
