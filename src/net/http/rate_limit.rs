//! Rate limiter per server: concurrency and requests per second, fair by namespace.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::secrets::Fingerprint;
use crate::tenancy::{FairCache, FairSemaphore, Permit, Rate, SlotLimits, TokenBucket};

/// The maximum number of servers whose limiters are kept, counted once per route.
const MAX_SERVERS: usize = 2048;

/// The maximum number of requests in flight to all servers.
/// Each request needs memory for its connection.
const MAX_IN_FLIGHT: usize = 256;

/// The steady rate of requests per server and route.
/// It is the 3,000 reads a minute of Azure's Standard registries.
const REQUESTS_PER_SECOND: u32 = 50;

/// The burst per server and route after a quiet time.
///
/// It is enough to scan 1,000 repositories right after a start.
const BURST: u32 = 1000;

/// The rate limits of one server over one route, for all objects together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimitOptions {
    /// The maximum number of requests in flight.
    pub concurrency: usize,
    /// The steady rate, in requests per second.
    pub per_second: u32,
    /// The maximum number of requests at once after a quiet time.
    pub burst: u32,
}

impl Default for RateLimitOptions {
    fn default() -> Self {
        Self { concurrency: 16, per_second: REQUESTS_PER_SECOND, burst: BURST }
    }
}

impl RateLimitOptions {
    fn rate(self) -> Rate {
        Rate { burst: self.burst, refill: Duration::from_secs(1) / self.per_second.max(1) }
    }
}

/// A server as reached over one route.
///
/// A tenant's own proxy or certificate authority may lead to any other server under the same name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ServerRoute {
    /// Host and port.
    pub(crate) server: Arc<str>,
    /// The fingerprint of the proxy and the certificate authority.
    pub(crate) route: Fingerprint,
}

/// The limiters of all servers.
#[derive(Debug)]
pub(crate) struct RateLimiters {
    options: RateLimitOptions,
    in_flight: FairSemaphore,
    servers: Mutex<FairCache<ServerRoute, Arc<RateLimiter>>>,
}

/// Permission to have one request in flight, until it is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    _of_server: Permit,
    _of_all: Permit,
}

/// The rate limiter of one server over one route, fair by namespace.
#[derive(Debug)]
struct RateLimiter {
    slots: FairSemaphore,
    /// Held by the request that is admitted next.
    ///
    /// It is granted round robin, so the queue of one namespace delays a request of another by one turn at most.
    turn: FairSemaphore,
    bucket: Mutex<TokenBucket>,
    rate: Rate,
}

impl RateLimiters {
    /// Makes limiters with the same limits for each server.
    pub(crate) fn new(options: RateLimitOptions) -> Self {
        let limits = SlotLimits::shared(MAX_IN_FLIGHT);
        let in_flight = FairSemaphore::new(SlotLimits { per_namespace: limits.total / 2, ..limits });
        Self { options, in_flight, servers: Mutex::new(FairCache::new(MAX_SERVERS)) }
    }

    /// Waits until a request may be sent to a server for a namespace.
    pub(crate) async fn acquire(&self, target: &ServerRoute, namespace: &str) -> Slot {
        let limiter = self.of(target, namespace);
        let of_server = limiter.acquire(namespace).await;
        // Acquired last, so that a wait for one server takes nothing from others.
        let of_all = self.in_flight.acquire(namespace, 1).await;
        Slot { _of_server: of_server, _of_all: of_all }
    }

    fn of(&self, target: &ServerRoute, namespace: &str) -> Arc<RateLimiter> {
        let mut servers = self.servers.lock();
        if let Some(limiter) = servers.get(target) {
            return Arc::clone(limiter);
        }
        let now = Instant::now();
        servers.retain_if_full(|_, limiter| Arc::strong_count(limiter) > 1 || !limiter.is_idle(now));
        let limiter = Arc::new(RateLimiter::new(self.options));
        servers.insert(namespace, target.clone(), Arc::clone(&limiter));
        limiter
    }
}

impl RateLimiter {
    fn new(options: RateLimitOptions) -> Self {
        let one = SlotLimits { total: 1, per_namespace: 1, overflow: None };
        Self {
            slots: FairSemaphore::new(SlotLimits::shared(options.concurrency)),
            turn: FairSemaphore::new(one),
            bucket: Mutex::default(),
            rate: options.rate(),
        }
    }

    /// Waits until a request of a namespace may be sent, and counts it.
    ///
    /// A cancelled wait is not counted.
    async fn acquire(&self, namespace: &str) -> Permit {
        let slot = self.slots.acquire(namespace, 1).await;
        let _turn = self.turn.acquire(namespace, 1).await;
        let next = self.bucket.lock().next(self.rate);
        if let Some(at) = next {
            sleep_until(at.into()).await;
        }
        self.bucket.lock().take(self.rate, Instant::now().into_std());
        slot
    }

    /// Returns `true` if a new limiter would admit the same requests.
    fn is_idle(&self, now: Instant) -> bool {
        self.slots.is_idle() && self.bucket.lock().is_full(now.into_std())
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::{join_all, select_all};

    use super::*;

    fn target(server: &str) -> ServerRoute {
        ServerRoute { server: server.into(), route: Fingerprint::of([&b"route"[..]]) }
    }

    #[test]
    fn a_burst_is_followed_by_a_steady_rate() {
        let rate = RateLimitOptions { concurrency: 1, per_second: 10, burst: 3 }.rate();
        let mut bucket = TokenBucket::default();
        let now = Instant::now().into_std() + Duration::from_secs(1000);
        let waits = |bucket: &mut TokenBucket, now: std::time::Instant, number: usize| -> Vec<u128> {
            let waits = (0..number).map(|_| {
                let next = bucket.next(rate);
                bucket.take(rate, now);
                next.map_or(0, |next| next.saturating_duration_since(now).as_millis())
            });
            waits.collect()
        };
        assert_eq!(waits(&mut bucket, now, 5), [0, 0, 0, 100, 200]);
        let later = now + Duration::from_secs(60);
        assert!(bucket.is_full(later));
        assert_eq!(waits(&mut bucket, later, 4), [0, 0, 0, 100]);
        assert!(!bucket.is_full(later));
    }

    #[tokio::test(start_paused = true)]
    async fn thousands_of_queued_requests_delay_another_namespace_by_one_turn() {
        let limiters = RateLimiters::new(RateLimitOptions { concurrency: 4, per_second: 10, burst: 1 });
        let server = target("r.example:443");
        let flood: Vec<_> =
            (0..5000).map(|_| limiters.acquire(&server, "attacker").map(drop).boxed()).collect();
        let flood = join_all(flood);
        let victim = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let begin = Instant::now();
            let slot = limiters.acquire(&server, "victim").await;
            drop(slot);
            begin.elapsed()
        };
        tokio::select! {
            waited = victim => {
                // Each queue has the turn in progress, one of the attacker, and the victim's own.
                assert!(waited <= Duration::from_millis(600), "{waited:?}");
            }
            _ = flood => panic!("the flood is over before the victim had its turn"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_without_a_slot_gets_one_beyond_the_limit() {
        let limiters = RateLimiters::new(RateLimitOptions { concurrency: 2, ..RateLimitOptions::default() });
        let server = target("r.example:443");
        let held = [limiters.acquire(&server, "attacker").await, limiters.acquire(&server, "attacker").await];
        assert!(limiters.acquire(&server, "attacker").now_or_never().is_none());
        let begin = Instant::now();
        let first = limiters.acquire(&server, "victim").await;
        assert_eq!(begin.elapsed(), SlotLimits::OVERFLOW_AFTER);
        let second = limiters.acquire(&server, "other").await;
        // Four in all are twice the limit.
        let more = [limiters.acquire(&server, "third").boxed(), limiters.acquire(&server, "victim").boxed()];
        let more = select_all(more);
        assert!(tokio::time::timeout(Duration::from_secs(60), more).await.is_err());
        drop((held, first, second));
        // Another route to the same host has slots of its own.
        let route = ServerRoute { route: Fingerprint::of([&b"other"[..]]), ..server.clone() };
        assert!(limiters.acquire(&route, "victim").now_or_never().is_some());
    }

    #[tokio::test]
    async fn idle_limiters_are_evicted_and_busy_ones_are_not() {
        let limiters = RateLimiters::new(RateLimitOptions { burst: 1, ..RateLimitOptions::default() });
        let busy = target("busy:443");
        let slot = limiters.acquire(&busy, "victim").await;
        let before = limiters.of(&busy, "victim");
        for number in 0..2 * MAX_SERVERS {
            limiters.of(&target(&number.to_string()), "attacker");
        }
        assert!(limiters.servers.lock().len() <= MAX_SERVERS);
        assert!(Arc::ptr_eq(&before, &limiters.of(&busy, "victim")));
        drop(slot);
    }
}
