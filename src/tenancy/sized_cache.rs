//! A cache bounded by the total size of its entries.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// A cache with a maximum total size of its entries, shared by tenants.
///
/// Beyond the maximum, the least recently used entry of the namespace with most bytes is evicted, so that a tenant
/// evicts its own entries. The last entry stays at any size.
#[derive(Debug)]
pub struct SizedCache<K, V> {
    entries: HashMap<K, Entry<V>>,
    by_namespace: HashMap<String, u64>,
    total: u64,
    max: u64,
    /// The number of uses so far, which serves as time.
    clock: u64,
}

#[derive(Debug)]
struct Entry<V> {
    namespace: String,
    bytes: u64,
    used: u64,
    value: V,
}

impl<K: Clone + Eq + Hash, V> SizedCache<K, V> {
    /// Creates an empty cache of at most `max` bytes.
    pub fn new(max: u64) -> Self {
        Self { entries: HashMap::new(), by_namespace: HashMap::new(), total: 0, max, clock: 0 }
    }

    /// Returns the value of a key, and marks it as used.
    pub fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.clock += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.clock;
        Some(&entry.value)
    }

    /// Inserts a value on behalf of a namespace, and returns the keys of evicted entries.
    pub fn insert(&mut self, namespace: &str, key: K, bytes: u64, value: V) -> Vec<K> {
        self.insert_beyond_limit(namespace, key, bytes, value);
        let mut evicted = Vec::new();
        while self.total > self.max && self.entries.len() > 1 {
            let Some(oldest) = self.oldest() else { break };
            self.remove(&oldest);
            evicted.push(oldest);
        }
        evicted
    }

    /// Inserts a value without evicting any other.
    pub fn insert_beyond_limit(&mut self, namespace: &str, key: K, bytes: u64, value: V) {
        self.remove(&key);
        self.clock += 1;
        self.total += bytes;
        *self.by_namespace.entry(namespace.to_owned()).or_default() += bytes;
        self.entries.insert(key, Entry { namespace: namespace.to_owned(), bytes, used: self.clock, value });
    }

    /// Removes the entry of a key.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        let Some(Entry { namespace, bytes, .. }) = self.entries.remove(key) else { return };
        self.total -= bytes;
        if let Some(held) = self.by_namespace.get_mut(&namespace) {
            *held -= bytes;
            if *held == 0 {
                self.by_namespace.remove(&namespace);
            }
        }
    }

    /// Removes the entries whose keys `is_kept` rejects.
    pub fn retain(&mut self, is_kept: impl Fn(&K) -> bool) {
        let gone: Vec<K> = self.entries.keys().filter(|key| !is_kept(key)).cloned().collect();
        for key in gone {
            self.remove(&key);
        }
    }

    /// The least recently used key of the namespace with most bytes.
    fn oldest(&self) -> Option<K> {
        let largest = self.by_namespace.iter().max_by_key(|(_, bytes)| **bytes)?.0;
        let of_largest = self.entries.iter().filter(|(_, entry)| entry.namespace == *largest);
        Some(of_largest.min_by_key(|(_, entry)| entry.used)?.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_displaces_its_own_entries() {
        let mut cache = SizedCache::new(100);
        assert!(cache.insert("victim", "old", 30, 1).is_empty());
        assert!(cache.insert("attacker", "a", 40, 2).is_empty());
        assert!(cache.insert("attacker", "b", 30, 3).is_empty());
        assert_eq!(cache.get("a"), Some(&2));
        assert_eq!(cache.insert("attacker", "c", 1, 4), ["b"]);
        // An entry that exceeds the maximum alone is evicted itself, and no entry of other namespaces.
        assert_eq!(cache.insert("attacker", "a", 100, 5), ["c", "a"]);
        assert_eq!(cache.get("old"), Some(&1));
        assert_eq!(cache.total, 30);
        cache.retain(|key| *key != "old");
        assert_eq!((cache.total, cache.by_namespace.len()), (0, 0));
        assert!(cache.insert("attacker", "a", 1000, 6).is_empty());
        assert_eq!(cache.get("a"), Some(&6));
    }
}
