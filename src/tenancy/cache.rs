//! A bounded cache that evicts first from the namespace with the largest share.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// A cache with a maximum number of entries, or of their bytes, shared by tenants.
///
/// Beyond the maximum it evicts the least recently used entry of the namespace with most entries or bytes, so a tenant
/// with endless entries evicts only its own. The last entry stays at any size.
#[derive(Debug)]
pub struct FairCache<K, V> {
    entries: HashMap<K, Entry<V>>,
    by_namespace: HashMap<String, u64>,
    /// The weight of all entries: their number, or their bytes.
    total: u64,
    max: u64,
    /// The number of uses so far, which serves as time.
    clock: u64,
}

#[derive(Debug)]
struct Entry<V> {
    namespace: String,
    weight: u64,
    used: u64,
    value: V,
}

impl<K: Clone + Eq + Hash, V> FairCache<K, V> {
    /// Creates an empty cache of at most `max_entries` entries, and at least one.
    pub fn new(max_entries: usize) -> Self {
        Self::sized(max_entries as u64)
    }

    /// Creates an empty cache of at most `max_bytes` bytes, for [`insert_sized`](Self::insert_sized).
    pub fn sized(max_bytes: u64) -> Self {
        Self { entries: HashMap::new(), by_namespace: HashMap::new(), total: 0, max: max_bytes, clock: 0 }
    }

    /// Returns the value of a key, and marks it as used.
    pub fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.clock += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.clock;
        Some(&mut entry.value)
    }

    /// Inserts a value on behalf of a namespace, and returns the keys of evicted entries.
    pub fn insert(&mut self, namespace: &str, key: K, value: V) -> Vec<K> {
        self.insert_sized(namespace, key, 1, value)
    }

    /// Inserts a value of this size, and returns the keys of evicted entries.
    pub fn insert_sized(&mut self, namespace: &str, key: K, bytes: u64, value: V) -> Vec<K> {
        self.insert_beyond_limit(namespace, key, bytes, value);
        let mut evicted = Vec::new();
        while self.total > self.max && self.entries.len() > 1 {
            let Some(oldest) = self.oldest(namespace) else { break };
            self.remove(&oldest);
            evicted.push(oldest);
        }
        evicted
    }

    /// Inserts a value of this size without evicting any other.
    pub fn insert_beyond_limit(&mut self, namespace: &str, key: K, bytes: u64, value: V) {
        self.remove(&key);
        self.clock += 1;
        self.total += bytes;
        *self.by_namespace.entry(namespace.to_owned()).or_default() += bytes;
        let namespace = namespace.to_owned();
        self.entries.insert(key, Entry { namespace, weight: bytes, used: self.clock, value });
    }

    /// Removes a key, and returns its value.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let Entry { namespace, weight, value, .. } = self.entries.remove(key)?;
        self.total -= weight;
        if let Some(share) = self.by_namespace.get_mut(&namespace) {
            *share -= weight;
            if *share == 0 {
                self.by_namespace.remove(&namespace);
            }
        }
        Some(value)
    }

    /// Removes the entries that `is_kept` rejects.
    pub fn retain(&mut self, is_kept: impl Fn(&K, &V) -> bool) {
        let rejected = self.entries.iter().filter(|(key, entry)| !is_kept(key, &entry.value));
        for key in rejected.map(|(key, _)| key.clone()).collect::<Vec<K>>() {
            self.remove(&key);
        }
    }

    /// Removes the entries that do not match, if there is no room for another.
    pub fn retain_if_full(&mut self, is_kept: impl Fn(&K, &V) -> bool) {
        if self.total >= self.max {
            self.retain(is_kept);
        }
    }

    /// All keys and values, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, entry)| (key, &entry.value))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the least recently used key of the namespace with the largest share.
    ///
    /// `newest` is last among equals.
    fn oldest(&self, newest: &str) -> Option<K> {
        let shares = self.by_namespace.iter();
        let largest = shares.max_by_key(|(namespace, share)| (**share, namespace.as_str() != newest))?.0;
        let of_largest = self.entries.iter().filter(|(_, entry)| entry.namespace == *largest);
        Some(of_largest.min_by_key(|(_, entry)| entry.used)?.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_displaces_the_entries_of_its_own_namespace() {
        let mut cache = FairCache::new(4);
        cache.insert("victim", "v", 0);
        for (key, value) in [("a", 1), ("b", 2), ("c", 3)] {
            assert!(cache.insert("attacker", key, value).is_empty());
        }
        assert_eq!(cache.get("a"), Some(&mut 1));
        // The attacker's least recently used entry is evicted.
        assert_eq!(cache.insert("attacker", "d", 4), ["b"]);
        assert_eq!(cache.insert("victim", "w", 5), ["c"]);
        assert_eq!(cache.get("v"), Some(&mut 0));
        assert_eq!(cache.len(), 4);
    }

    #[test]
    fn a_replaced_entry_displaces_no_other() {
        let mut cache = FairCache::new(2);
        cache.insert("a", 1, "one");
        cache.insert("b", 2, "two");
        assert!(cache.insert("b", 1, "new").is_empty());
        assert_eq!(cache.len(), 2);
        cache.retain(|key, _| *key == 2);
        assert_eq!((cache.remove(&2), cache.remove(&1), cache.is_empty()), (Some("two"), None, true));
        assert!(cache.by_namespace.is_empty());
    }

    #[test]
    fn a_new_namespace_displaces_an_entry_of_another() {
        let mut cache = FairCache::new(2);
        cache.insert("a", 1, ());
        cache.insert("b", 2, ());
        assert_eq!(cache.insert("c", 3, ()).len(), 1);
        assert!(cache.get(&3).is_some());
    }

    #[test]
    fn a_namespace_displaces_its_own_bytes() {
        let mut cache = FairCache::sized(100);
        assert!(cache.insert_sized("victim", "old", 30, 1).is_empty());
        assert!(cache.insert_sized("attacker", "a", 40, 2).is_empty());
        assert!(cache.insert_sized("attacker", "b", 30, 3).is_empty());
        assert_eq!(cache.get("a"), Some(&mut 2));
        assert_eq!(cache.insert_sized("attacker", "c", 1, 4), ["b"]);
        // An entry that exceeds the maximum alone is evicted itself, and no entry of other namespaces.
        assert_eq!(cache.insert_sized("attacker", "a", 100, 5), ["c", "a"]);
        assert_eq!(cache.get("old"), Some(&mut 1));
        assert_eq!(cache.total, 30);
        cache.retain(|key, _| *key != "old");
        assert_eq!((cache.total, cache.by_namespace.len()), (0, 0));
        assert!(cache.insert_sized("attacker", "a", 1000, 6).is_empty());
        assert_eq!(cache.get("a"), Some(&mut 6));
    }
}
