//! A bounded cache that also evicts entries after a time without use.

use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use super::cache::FairCache;

/// The number of sweeps for unused entries within the maximum idle time.
/// An entry is evicted after that time without use.
const SWEEPS: u32 = 60;

/// A [`FairCache`] whose entries are also evicted after a time without use.
#[derive(Debug)]
pub struct IdleCache<K, V> {
    entries: FairCache<K, (V, Instant)>,
    max_idle: Duration,
    swept_at: Instant,
}

impl<K: Clone + Eq + Hash, V: Clone> IdleCache<K, V> {
    /// Creates an empty cache of at most `max_entries` entries.
    /// Each entry is evicted after `max_idle` without use.
    pub fn new(max_entries: usize, max_idle: Duration) -> Self {
        Self { entries: FairCache::new(max_entries), max_idle, swept_at: Instant::now() }
    }

    /// Returns the value of a key, and marks it as used.
    pub fn get(&mut self, key: &K) -> Option<V> {
        let now = self.sweep();
        let (value, used_at) = self.entries.get(key)?;
        *used_at = now;
        Some(value.clone())
    }

    /// Inserts a value on behalf of a namespace.
    pub fn insert(&mut self, namespace: &str, key: K, value: V) {
        let now = self.sweep();
        self.entries.insert(namespace, key, (value, now));
    }

    /// Evicts unused entries if the last sweep was long ago. Returns the current time.
    fn sweep(&mut self) -> Instant {
        let (now, max_idle) = (Instant::now(), self.max_idle);
        if now.duration_since(self.swept_at) >= max_idle / SWEEPS {
            self.swept_at = now;
            self.entries.retain(|_, (_, used_at)| now.duration_since(*used_at) < max_idle);
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_unused_entry_goes() {
        let mut cache = IdleCache::new(10, Duration::from_secs(5 * 60));
        cache.insert("a", "used", 1);
        cache.insert("a", "unused", 2);
        for _ in 0..10 {
            tokio::time::advance(Duration::from_secs(60)).await;
            assert_eq!(cache.get(&"used"), Some(1));
        }
        assert_eq!((cache.get(&"unused"), cache.entries.len()), (None, 1));
    }
}
