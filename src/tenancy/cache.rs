//! A bounded cache that evicts first from the namespace with most entries.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// A cache with a maximum number of entries, shared by tenants.
///
/// A full cache evicts the least recently used entry of the namespace with most entries, so a tenant with endless
/// entries evicts only its own.
#[derive(Debug)]
pub struct FairCache<K, V> {
    max_entries: usize,
    entries: HashMap<K, Entry<V>>,
    by_namespace: HashMap<String, usize>,
    /// The number of uses so far, which serves as time.
    clock: u64,
}

#[derive(Debug)]
struct Entry<V> {
    namespace: String,
    used: u64,
    value: V,
}

impl<K: Clone + Eq + Hash, V> FairCache<K, V> {
    /// Creates an empty cache of at most `max_entries` entries, and at least one.
    pub fn new(max_entries: usize) -> Self {
        Self {
            max_entries: max_entries.max(1),
            entries: HashMap::new(),
            by_namespace: HashMap::new(),
            clock: 0,
        }
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

    /// Inserts a value on behalf of a namespace, and returns a replaced or evicted value.
    pub fn insert(&mut self, namespace: &str, key: K, value: V) -> Option<V> {
        let replaced = self.remove(&key);
        let evicted = if self.entries.len() >= self.max_entries { self.evict(namespace) } else { None };
        self.clock += 1;
        self.entries.insert(key, Entry { namespace: namespace.to_owned(), used: self.clock, value });
        *self.by_namespace.entry(namespace.to_owned()).or_default() += 1;
        replaced.or(evicted)
    }

    /// Removes a key, and returns its value.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let entry = self.entries.remove(key)?;
        self.decrement(&entry.namespace);
        Some(entry.value)
    }

    /// Removes the entries that `is_kept` rejects.
    pub fn retain(&mut self, is_kept: impl Fn(&K, &V) -> bool) {
        let Self { entries, by_namespace, .. } = self;
        entries.retain(|key, entry| is_kept(key, &entry.value));
        by_namespace.clear();
        for entry in entries.values() {
            *by_namespace.entry(entry.namespace.clone()).or_default() += 1;
        }
    }

    /// Removes the entries that do not match, if there is no room for another.
    pub fn retain_if_full(&mut self, is_kept: impl Fn(&K, &V) -> bool) {
        if self.entries.len() >= self.max_entries {
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

    /// Evicts an entry for a new one of `newest`, the namespace preferred among equals.
    fn evict(&mut self, newest: &str) -> Option<V> {
        let counts = self.by_namespace.iter();
        let largest =
            counts.max_by_key(|(namespace, count)| (**count, namespace.as_str() == newest))?.0.clone();
        let of_largest = self.entries.iter().filter(|(_, entry)| entry.namespace == largest);
        let oldest = of_largest.min_by_key(|(_, entry)| entry.used)?.0.clone();
        self.remove(&oldest)
    }

    fn decrement(&mut self, namespace: &str) {
        if let Some(count) = self.by_namespace.get_mut(namespace) {
            *count -= 1;
            if *count == 0 {
                self.by_namespace.remove(namespace);
            }
        }
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
            assert_eq!(cache.insert("attacker", key, value), None);
        }
        assert_eq!(cache.get("a"), Some(&mut 1));
        // The attacker's least recently used entry is evicted.
        assert_eq!(cache.insert("attacker", "d", 4), Some(2));
        assert_eq!(cache.insert("victim", "w", 5), Some(3));
        assert_eq!(cache.get("v"), Some(&mut 0));
        assert_eq!(cache.len(), 4);
    }

    #[test]
    fn a_replaced_entry_displaces_no_other() {
        let mut cache = FairCache::new(2);
        cache.insert("a", 1, "one");
        cache.insert("b", 2, "two");
        assert_eq!(cache.insert("b", 1, "new"), Some("one"));
        assert_eq!(cache.len(), 2);
        cache.retain(|key, _| *key == 2);
        assert_eq!((cache.remove(&2), cache.remove(&1), cache.is_empty()), (Some("two"), None, true));
        assert!(cache.by_namespace.is_empty());
    }
}
