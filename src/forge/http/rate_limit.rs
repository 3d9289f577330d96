//! Rate limiters per origin and token.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use super::quota::{LimitedResponse, Quota};
use crate::forge::address::is_public_github;
use crate::forge::exchange::Cost;
use crate::secrets::Fingerprint;
use crate::tenancy::{FairCache, FairSemaphore, Permit, Rate, SlotLimits, TokenBucket};

/// The maximum number of limiters that are kept.
const MAX_LIMITERS: usize = 2048;

/// The longest time that a call waits for its turn. Beyond that it is limited.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// The writing calls a minute at a public forge, and at all others.
const PUBLIC_WRITES: u32 = 60;
const OTHER_WRITES: u32 = 600;

/// The creating calls an hour at github.com, where 500 are allowed.
const CREATES: u32 = 450;

/// The API of github.com.
const GITHUB: &str = "api.github.com";

/// The hosts of the public forges' APIs.
const PUBLIC: [&str; 6] =
    [GITHUB, "gitlab.com", "gitea.com", "codeberg.org", "api.bitbucket.org", "dev.azure.com"];

/// The rate limits of one token at one forge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForgeRateLimits {
    /// The maximum number of calls in flight.
    pub concurrency: usize,
    /// The maximum number of writing calls a minute; none for the default of the host.
    pub writes_per_minute: Option<u32>,
}

impl Default for ForgeRateLimits {
    fn default() -> Self {
        Self { concurrency: 4, writes_per_minute: None }
    }
}

/// A rate of at most so many events in any window.
///
/// A sixth of them may come at once.
fn rate(events: u32, window: Duration) -> Rate {
    let burst = (events / 6).max(1);
    Rate { burst, refill: window / events.saturating_sub(burst).max(1) }
}

/// A login at a server, as reached over one route.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LimiterKey {
    /// The namespace whose login it is.
    pub(super) namespace: String,
    /// Scheme, host and port.
    pub(super) origin: String,
    /// The fingerprint of the route.
    pub(super) route: Fingerprint,
    /// The fingerprint of the login.
    pub(super) login: Fingerprint,
}

/// The limiters of all logins.
#[derive(Debug)]
pub(super) struct RateLimiters {
    limits: ForgeRateLimits,
    limiters: Mutex<FairCache<LimiterKey, Arc<RateLimiter>>>,
}

/// The rate limiter of one login at one server.
#[derive(Debug)]
pub(super) struct RateLimiter {
    slots: FairSemaphore,
    writes: Rate,
    creates: Option<Rate>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    writes: TokenBucket,
    creates: TokenBucket,
    quota: Quota,
    /// The end of the time that is counted as rest.
    rested_until: Option<Timestamp>,
}

/// The permission to have one call in flight, until it is dropped.
#[derive(Debug)]
pub(super) struct Admitted {
    _slot: Permit,
    /// The time that the rate limits took.
    pub(super) waited: Duration,
}

impl RateLimiters {
    pub(super) fn new(limits: ForgeRateLimits) -> Self {
        Self { limits, limiters: Mutex::new(FairCache::new(MAX_LIMITERS)) }
    }

    /// Returns the limiter of a login at a host.
    pub(super) fn of(&self, key: &LimiterKey, host: &str) -> Arc<RateLimiter> {
        let mut limiters = self.limiters.lock();
        if let Some(limiter) = limiters.get(key) {
            return Arc::clone(limiter);
        }
        limiters.retain_if_full(|_, limiter| Arc::strong_count(limiter) > 1 || !limiter.is_idle());
        let limiter = Arc::new(RateLimiter::new(self.limits, host));
        limiters.insert(&key.namespace, key.clone(), Arc::clone(&limiter));
        limiter
    }
}

impl RateLimiter {
    fn new(limits: ForgeRateLimits, host: &str) -> Self {
        let is_public =
            PUBLIC.contains(&host) || host.ends_with(".visualstudio.com") || is_public_github(host);
        let writes = limits.writes_per_minute.unwrap_or(if is_public { PUBLIC_WRITES } else { OTHER_WRITES });
        let total = limits.concurrency.max(1) as u64;
        Self {
            // One login is one tenant's.
            slots: FairSemaphore::new(SlotLimits { total, per_namespace: total, overflow: None }),
            writes: rate(writes, Duration::from_secs(60)),
            creates: (host == GITHUB).then(|| rate(CREATES, Duration::from_secs(3600))),
            state: Mutex::default(),
        }
    }

    /// Waits until a call may be sent, and counts it.
    ///
    /// # Errors
    ///
    /// The time that is left, if the wait would be too long.
    pub(super) async fn admit(&self, cost: Cost, resource: &str) -> Result<Admitted, Duration> {
        let slot = self.slots.acquire("", 1).await;
        let begin = Instant::now();
        loop {
            let next = {
                let mut state = self.state.lock();
                if let Some(pause) = state.quota.pause(cost, resource, Timestamp::now()) {
                    return Err(pause);
                }
                let State { writes, creates, .. } = &mut *state;
                let is_write = !matches!(cost, Cost::Read | Cost::EssentialRead);
                let creates = self.creates.filter(|_| cost == Cost::Create).map(|rate| (creates, rate));
                let mut buckets: Vec<_> =
                    is_write.then_some((writes, self.writes)).into_iter().chain(creates).collect();
                let now = Instant::now().into_std();
                let next = buckets.iter().filter_map(|(bucket, rate)| bucket.next(*rate)).max();
                match next.filter(|next| *next > now) {
                    Some(next) => next,
                    None => {
                        for (bucket, rate) in &mut buckets {
                            bucket.take(*rate, now);
                        }
                        return Ok(Admitted { _slot: slot, waited: begin.elapsed() });
                    }
                }
            };
            let wait = next.saturating_duration_since(Instant::now().into_std());
            if wait > MAX_WAIT {
                return Err(wait);
            }
            sleep_until(next.into()).await;
        }
    }

    /// Notes what a response says; returns the pause if it refuses because of a limit.
    pub(super) fn note(&self, response: LimitedResponse<'_>) -> Option<Duration> {
        self.state.lock().quota.note(response, Timestamp::now())
    }

    /// Returns the part of a time that no earlier call has counted as rest.
    pub(super) fn count_rest(&self, from: Timestamp, rest: Duration) -> Duration {
        let mut state = self.state.lock();
        let until = from.checked_add(rest).unwrap_or(from);
        let begin = state.rested_until.map_or(from, |counted| counted.max(from));
        state.rested_until = Some(begin.max(until));
        Duration::try_from(until.duration_since(begin)).unwrap_or_default()
    }

    /// Returns the number of calls that are left by the last responses.
    pub(super) fn remaining(&self) -> Option<u64> {
        self.state.lock().quota.remaining()
    }

    /// Returns true if a new limiter admits the same calls.
    fn is_idle(&self) -> bool {
        let (state, now) = (self.state.lock(), Instant::now().into_std());
        let buckets = [&state.writes, &state.creates];
        self.slots.is_idle()
            && buckets.iter().all(|bucket| bucket.is_full(now))
            && state.quota.is_over(Timestamp::now())
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn limiter(host: &str) -> RateLimiter {
        RateLimiter::new(ForgeRateLimits::default(), host)
    }

    fn key(namespace: &str, login: &str) -> LimiterKey {
        let (route, login) = (Fingerprint::of([b"route"]), Fingerprint::of([login]));
        LimiterKey { namespace: namespace.to_owned(), origin: "https://h".to_owned(), route, login }
    }

    /// The number of calls that are admitted within a time.
    async fn admitted(host: &str, cost: Cost, time: Duration) -> usize {
        let (limiter, begin, mut count) = (limiter(host), Instant::now(), 0);
        while begin.elapsed() < time {
            if limiter.admit(cost, "").await.is_ok() {
                count += 1;
            } else {
                sleep_until(Instant::now() + Duration::from_secs(1)).await;
            }
        }
        count
    }

    #[tokio::test(start_paused = true)]
    async fn no_window_has_more_calls_than_its_limit() {
        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
        for (host, cost, window, limit) in [
            ("api.github.com", Cost::Write, minute, 60),
            ("api.octo.ghe.com", Cost::Write, minute, 60),
            ("ghe.com", Cost::Write, minute, 600),
            ("git.example", Cost::Write, minute, 600),
            ("api.github.com", Cost::Create, hour, 450),
        ] {
            let count = admitted(host, cost, window).await;
            // The last one is sent at the end of the window.
            assert!((limit * 9 / 10..=limit + 1).contains(&count), "{host} {cost:?}: {count}");
        }
        assert!(limiter("api.github.com").creates.is_some() && limiter("git.example").creates.is_none());
    }

    /// Each call that was refused during a pause counted the whole rest of it.
    #[test]
    fn a_pause_is_counted_once() {
        let limiter = limiter("git.example");
        let at = |second: i64| Timestamp::from_second(1_700_000_000 + second).unwrap();
        for (from, rest, counted) in
            [(0, 60, 60), (1, 59, 0), (30, 60, 30), (10, 5, 0), (90, 10, 10), (200, 1, 1)]
        {
            let found = limiter.count_rest(at(from), Duration::from_secs(rest));
            assert_eq!(found.as_secs(), counted, "{from} {rest}");
        }
    }

    #[tokio::test]
    async fn four_calls_are_in_flight() {
        let limiter = limiter("git.example");
        let mut held = Vec::new();
        while let Some(admitted) = limiter.admit(Cost::Read, "").now_or_never() {
            held.push(admitted.unwrap());
        }
        assert_eq!(held.len(), 4);
        held.pop();
        assert!(limiter.admit(Cost::Read, "").now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_pause_concerns_its_login_only() {
        let limiters = RateLimiters::new(ForgeRateLimits::default());
        let limited = LimitedResponse { status: 429, headers: &[], message: "", resource: "" };
        assert!(limiters.of(&key("a", "x"), "h").note(limited).is_some());
        assert!(limiters.of(&key("a", "x"), "h").admit(Cost::Read, "").await.is_err());
        for other in [key("a", "y"), key("b", "x")] {
            assert!(limiters.of(&other, "h").admit(Cost::Read, "").await.is_ok());
        }
    }
}
