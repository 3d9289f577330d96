//! Credential cache: entries are refreshed shortly before they expire.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::error::LoginError;
use super::fingerprint::Fingerprint;
use crate::tenancy::FairCache;

/// The time before its end at which a credential is refreshed; less for short lifetimes.
const MARGIN: SignedDuration = SignedDuration::from_secs(300);

/// The time for which a failed login is cached.
///
/// Otherwise a thousand objects would repeat it one after the other.
const PAUSE: SignedDuration = SignedDuration::from_secs(5);

/// The limits of a credential cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepOptions {
    /// The maximum number of entries; `0` disables the cache.
    pub most: usize,
    /// The maximum time for which an entry is used.
    pub longest: Duration,
}

impl Default for KeepOptions {
    /// The defaults of Flux.
    fn default() -> Self {
        Self { most: 100, longest: Duration::from_secs(60 * 60) }
    }
}

/// A value that expires, if its end is known.
#[derive(Debug, Clone)]
pub(super) struct Lasting<T> {
    pub(super) value: T,
    pub(super) ends: Option<Timestamp>,
}

/// Caches credentials until shortly before they expire.
#[derive(Debug)]
pub(super) struct Kept<T> {
    options: KeepOptions,
    places: Mutex<FairCache<Fingerprint, Arc<Place<T>>>>,
}

/// Locked while the credential is fetched, so that concurrent callers wait for it.
type Place<T> = tokio::sync::Mutex<Option<Known<T>>>;

#[derive(Debug)]
struct Known<T> {
    outcome: Result<Lasting<T>, LoginError>,
    /// The time until which the outcome is reused.
    until: Timestamp,
}

impl<T: Clone> Kept<T> {
    pub(super) fn new(options: KeepOptions) -> Self {
        Self { options, places: Mutex::new(FairCache::new(options.most)) }
    }

    /// Returns the cached value of a key, or else fetches it for a namespace.
    pub(super) async fn get(
        &self,
        namespace: &str,
        key: Fingerprint,
        now: Timestamp,
        fetch: impl Future<Output = Result<Lasting<T>, LoginError>>,
    ) -> Result<Lasting<T>, LoginError> {
        if self.options.most == 0 {
            return fetch.await;
        }
        let place = self.place(namespace, key, now);
        let mut known = place.lock().await;
        if let Some(known) = known.as_ref().filter(|known| now < known.until) {
            return known.outcome.clone();
        }
        let outcome = fetch.await;
        let until = match &outcome {
            Ok(lasting) => self.until(lasting.ends, now),
            Err(_) => now + PAUSE,
        };
        *known = Some(Known { outcome: outcome.clone(), until });
        outcome
    }

    /// Returns the time until which a value is reused that expires at `ends`.
    fn until(&self, ends: Option<Timestamp>, now: Timestamp) -> Timestamp {
        let longest = SignedDuration::try_from(self.options.longest).unwrap_or(SignedDuration::MAX);
        let longest = now.checked_add(longest).unwrap_or(Timestamp::MAX);
        let Some(ends) = ends else { return now };
        let life = ends.duration_since(now);
        (ends - MARGIN.min(life / 5).max(SignedDuration::ZERO)).min(longest)
    }

    fn place(&self, namespace: &str, key: Fingerprint, now: Timestamp) -> Arc<Place<T>> {
        let mut places = self.places.lock();
        if let Some(place) = places.get(&key) {
            return Arc::clone(place);
        }
        // Expired entries are evicted whenever another is added.
        places.retain(|_, place| {
            let known = place.try_lock();
            Arc::strong_count(place) > 1
                || known.is_ok_and(|known| known.as_ref().is_some_and(|known| now < known.until))
        });
        let place = Arc::<Place<T>>::default();
        places.insert(namespace, key, Arc::clone(&place));
        place
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
    struct Source(Kept<u32>, AtomicU32);

    impl Source {
        fn new(most: usize, longest: u64) -> Self {
            let options = KeepOptions { most, longest: Duration::from_secs(longest) };
            Self(Kept::new(options), AtomicU32::new(0))
        }

        async fn ask(&self, key: &str, second: i64, life: i64) -> u32 {
            let fetch = async {
                let value = self.1.fetch_add(1, Ordering::SeqCst) + 1;
                Ok(Lasting { value, ends: Some(at(second + life)) })
            };
            self.0.get("apps", Fingerprint::of([key.as_bytes()]), at(second), fetch).await.unwrap().value
        }
    }

    #[tokio::test]
    async fn a_login_is_used_until_shortly_before_its_end() {
        for (life, longest, last) in
            [(3600, 36000, 3299), (100, 3600, 79), (43200, 3600, 3599), (-10, 3600, -1)]
        {
            let source = Source::new(10, longest);
            assert_eq!(source.ask("a", 0, life).await, 1);
            if last >= 0 {
                assert_eq!(source.ask("a", last, life).await, 1, "{life}");
            }
            assert_eq!(source.ask("a", last + 1, life).await, 2, "{life}");
        }
    }

    #[tokio::test]
    async fn each_key_has_its_own_and_not_too_many_are_kept() {
        let source = Source::new(2, 3600);
        assert_eq!((source.ask("a", 0, 3600).await, source.ask("b", 0, 3600).await), (1, 2));
        assert_eq!((source.ask("a", 1, 3600).await, source.ask("b", 1, 3600).await), (1, 2));
        assert_eq!(source.ask("c", 2, 3600).await, 3);
        assert_eq!(source.0.places.lock().len(), 2);
        let none = Source::new(0, 3600);
        assert_eq!((none.ask("a", 0, 3600).await, none.ask("a", 0, 3600).await), (1, 2));
    }

    #[tokio::test]
    async fn a_failure_is_not_asked_for_again_at_once() {
        let kept: Kept<u32> = Kept::new(KeepOptions::default());
        let key = Fingerprint::of([&b"a"[..]]);
        let failing = || async {
            let defect = "says nothing";
            Err(LoginError::Malformed { cloud: "AWS", what: "a token", defect })
        };
        assert!(kept.get("apps", key, at(0), failing()).await.is_err());
        let good = || async { Ok(Lasting { value: 1, ends: Some(at(100)) }) };
        assert!(kept.get("apps", key, at(4), good()).await.is_err());
        assert_eq!(kept.get("apps", key, at(5), good()).await.unwrap().value, 1);
    }
}
