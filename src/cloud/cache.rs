//! Credential cache: entries are refreshed shortly before they expire.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::error::LoginError;
use crate::secrets::Fingerprint;
use crate::tenancy::FairCache;

/// The time before its end at which a credential is refreshed; less for short lifetimes.
const MARGIN: SignedDuration = SignedDuration::from_secs(300);

/// The time for which a failed login is cached.
///
/// Otherwise a thousand objects would repeat it one after the other.
const FAILURE_TTL: SignedDuration = SignedDuration::from_secs(5);

/// The minimum number of entries of a cache for git.
pub(super) const MIN_GIT_ENTRIES: usize = 4096;

/// The refresh time of a value that a server refused.
const REFUSED: Timestamp = Timestamp::MIN;

/// The limits of a credential cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialCacheOptions {
    /// The maximum number of entries; `0` disables the cache.
    pub max_entries: usize,
    /// The maximum time for which an entry is used.
    pub max_ttl: Duration,
}

impl CredentialCacheOptions {
    /// Returns the options of caches that hold credentials for git.
    ///
    /// They have room for repositories in use, with any `--token-cache-max-size`: an entry goes when its token expires.
    pub(super) fn of_git(self) -> Self {
        let max_entries = if self.max_entries == 0 { 0 } else { self.max_entries.max(MIN_GIT_ENTRIES) };
        Self { max_entries, ..self }
    }
}

impl Default for CredentialCacheOptions {
    /// The defaults of Flux.
    fn default() -> Self {
        Self { max_entries: 100, max_ttl: Duration::from_secs(60 * 60) }
    }
}

/// A value that expires, if its end is known.
#[derive(Debug, Clone)]
pub(super) struct Expiring<T> {
    pub(super) value: T,
    pub(super) expires_at: Option<Timestamp>,
}

/// Caches credentials until shortly before they expire.
#[derive(Debug)]
pub(super) struct CredentialCache<T> {
    options: CredentialCacheOptions,
    slots: Mutex<FairCache<Fingerprint, Arc<Slot<T>>>>,
}

/// Locked while the credential is fetched, so that concurrent callers wait for it.
type Slot<T> = tokio::sync::Mutex<Option<CachedOutcome<T>>>;

#[derive(Debug)]
struct CachedOutcome<T> {
    outcome: Result<Expiring<T>, LoginError>,
    /// The time until which the outcome is reused.
    refresh_at: Timestamp,
    /// Set if it replaces a value that a server refused.
    is_replacement: bool,
}

impl<T: Clone> CredentialCache<T> {
    pub(super) fn new(options: CredentialCacheOptions) -> Self {
        Self { options, slots: Mutex::new(FairCache::new(options.max_entries)) }
    }

    /// Returns the cached value of a key, or else fetches it for a namespace.
    pub(super) async fn get(
        &self,
        namespace: &str,
        key: Fingerprint,
        now: Timestamp,
        fetch: impl Future<Output = Result<Expiring<T>, LoginError>>,
    ) -> Result<Expiring<T>, LoginError> {
        if self.options.max_entries == 0 {
            return fetch.await;
        }
        let slot = self.slot(namespace, key, now);
        let mut cached = slot.lock().await;
        let is_replacement = cached.as_ref().is_some_and(|cached| cached.refresh_at == REFUSED);
        if let Some(cached) = cached.as_ref().filter(|cached| now < cached.refresh_at) {
            return cached.outcome.clone();
        }
        let outcome = fetch.await;
        let refresh_at = match &outcome {
            Ok(expiring) => self.refresh_at(expiring.expires_at, now),
            Err(_) => now + FAILURE_TTL,
        };
        *cached = Some(CachedOutcome { outcome: outcome.clone(), refresh_at, is_replacement });
        outcome
    }

    /// Has the value of a key fetched again, because a server refused it.
    ///
    /// A value that replaces a refused one is kept: a server that refuses it too has another reason.
    /// So is one that was fetched since: `is_refused` tells the value that was sent.
    pub(super) fn refuse(&self, key: Fingerprint, is_refused: impl Fn(&T) -> bool) {
        let slot = self.slots.lock().get(&key).cloned();
        let Some(slot) = slot else { return };
        // While the slot is locked, the value is fetched already.
        let Ok(mut cached) = slot.try_lock() else { return };
        let Some(cached) = cached.as_mut().filter(|cached| !cached.is_replacement) else { return };
        if cached.outcome.as_ref().is_ok_and(|known| is_refused(&known.value)) {
            cached.refresh_at = REFUSED;
        }
    }

    /// Forgets a value that is no longer right.
    pub(super) fn forget(&self, key: Fingerprint, is_wrong: impl Fn(&T) -> bool) {
        let slot = self.slots.lock().get(&key).cloned();
        let Some(slot) = slot else { return };
        let Ok(mut cached) = slot.try_lock() else { return };
        let is_known =
            |outcome: &CachedOutcome<T>| outcome.outcome.as_ref().is_ok_and(|known| is_wrong(&known.value));
        if cached.as_ref().is_some_and(is_known) {
            *cached = None;
        }
    }

    /// Returns the time until which a value is reused that expires at `expires_at`.
    fn refresh_at(&self, expires_at: Option<Timestamp>, now: Timestamp) -> Timestamp {
        let max_ttl = SignedDuration::try_from(self.options.max_ttl).unwrap_or(SignedDuration::MAX);
        let max_ttl = now.checked_add(max_ttl).unwrap_or(Timestamp::MAX);
        let Some(expires_at) = expires_at else { return now };
        let life = expires_at.duration_since(now);
        (expires_at - MARGIN.min(life / 5).max(SignedDuration::ZERO)).min(max_ttl)
    }

    fn slot(&self, namespace: &str, key: Fingerprint, now: Timestamp) -> Arc<Slot<T>> {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get(&key) {
            return Arc::clone(slot);
        }
        // Expired entries are evicted whenever another is added.
        slots.retain(|_, slot| {
            let cached = slot.try_lock();
            Arc::strong_count(slot) > 1
                || cached.is_ok_and(|cached| {
                    cached
                        .as_ref()
                        .is_some_and(|cached| now < cached.refresh_at || cached.refresh_at == REFUSED)
                })
        });
        let slot = Arc::<Slot<T>>::default();
        slots.insert(namespace, key, Arc::clone(&slot));
        slot
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    /// Requests values that hold for some seconds, and counts how often one was fetched.
    struct Source(CredentialCache<u32>, AtomicU32);

    impl Source {
        fn new(max_entries: usize, max_ttl: u64) -> Self {
            let options = CredentialCacheOptions { max_entries, max_ttl: Duration::from_secs(max_ttl) };
            Self(CredentialCache::new(options), AtomicU32::new(0))
        }

        async fn get(&self, key: &str, second: i64, life: i64) -> u32 {
            let fetch = async {
                let value = self.1.fetch_add(1, Ordering::SeqCst) + 1;
                Ok(Expiring { value, expires_at: Some(at(second + life)) })
            };
            self.0.get("apps", Fingerprint::of([key.as_bytes()]), at(second), fetch).await.unwrap().value
        }
    }

    #[tokio::test]
    async fn a_credential_is_used_until_shortly_before_it_expires() {
        for (life, max_ttl, last) in
            [(3600, 36000, 3299), (100, 3600, 79), (43200, 3600, 3599), (-10, 3600, -1)]
        {
            let source = Source::new(10, max_ttl);
            assert_eq!(source.get("a", 0, life).await, 1);
            if last >= 0 {
                assert_eq!(source.get("a", last, life).await, 1, "{life}");
            }
            assert_eq!(source.get("a", last + 1, life).await, 2, "{life}");
        }
    }

    #[tokio::test]
    async fn entries_are_separate_by_key_and_bounded() {
        let source = Source::new(2, 3600);
        assert_eq!((source.get("a", 0, 3600).await, source.get("b", 0, 3600).await), (1, 2));
        assert_eq!((source.get("a", 1, 3600).await, source.get("b", 1, 3600).await), (1, 2));
        assert_eq!(source.get("c", 2, 3600).await, 3);
        assert_eq!(source.0.slots.lock().len(), 2);
        let none = Source::new(0, 3600);
        assert_eq!((none.get("a", 0, 3600).await, none.get("a", 0, 3600).await), (1, 2));
    }

    #[tokio::test]
    async fn a_refused_credential_is_replaced_once() {
        let source = Source::new(10, 3600);
        let key = Fingerprint::of([&b"a"[..]]);
        assert_eq!(source.get("a", 0, 3600).await, 1);
        source.0.refuse(key, |value| *value == 1);
        assert_eq!((source.get("b", 1, 3600).await, source.get("a", 1, 3600).await), (2, 3));
        // The replacement stays, and so does a value when an earlier one is refused.
        source.0.refuse(key, |value| *value == 3);
        assert_eq!(source.get("a", 2, 3600).await, 3);
        // An expired replacement is followed by an ordinary value.
        assert_eq!(source.get("a", 4000, 3600).await, 4);
        source.0.refuse(key, |value| *value == 3);
        assert_eq!(source.get("a", 4001, 3600).await, 4, "one that was fetched since stays");
        source.0.refuse(key, |value| *value == 4);
        assert_eq!(source.get("a", 4002, 3600).await, 5);
        source.0.forget(key, |value| *value == 4);
        assert_eq!(source.get("a", 4003, 3600).await, 5);
        source.0.forget(key, |value| *value == 5);
        assert_eq!(source.get("a", 4003, 3600).await, 6);
    }

    #[tokio::test]
    async fn failed_logins_are_cached_for_a_moment() {
        let cache: CredentialCache<u32> = CredentialCache::new(CredentialCacheOptions::default());
        let key = Fingerprint::of([&b"a"[..]]);
        let failing = || async {
            let defect = "says nothing";
            Err(LoginError::Malformed { cloud: "AWS", item: "a token", defect })
        };
        assert!(cache.get("apps", key, at(0), failing()).await.is_err());
        let good = || async { Ok(Expiring { value: 1, expires_at: Some(at(100)) }) };
        assert!(cache.get("apps", key, at(4), good()).await.is_err());
        assert_eq!(cache.get("apps", key, at(5), good()).await.unwrap().value, 1);
    }
}
