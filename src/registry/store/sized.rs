//! A table whose entries have sizes, and together a maximum.

use std::collections::HashMap;

use super::StoreKey;

/// Entries by object, bounded by the sum of their sizes.
///
/// Beyond the maximum, the least recently used entry of the namespace with most bytes is evicted, so that a tenant
/// displaces its own. The last entry stays, however large it is.
#[derive(Debug)]
pub(super) struct SizedTable<V> {
    entries: HashMap<StoreKey, Entry<V>>,
    by_namespace: HashMap<String, u64>,
    total: u64,
    max: u64,
    /// Counts uses; the time of a use is its count.
    clock: u64,
}

#[derive(Debug)]
struct Entry<V> {
    bytes: u64,
    used: u64,
    value: V,
}

impl<V> SizedTable<V> {
    /// An empty table for so many bytes.
    pub(super) fn new(max: u64) -> Self {
        Self { entries: HashMap::new(), by_namespace: HashMap::new(), total: 0, max, clock: 0 }
    }

    /// The value of an object, which counts as used now.
    pub(super) fn get(&mut self, key: &StoreKey) -> Option<&V> {
        self.clock += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.clock;
        Some(&entry.value)
    }

    /// Puts a value in, and gives the objects whose entries were evicted.
    pub(super) fn put(&mut self, key: &StoreKey, bytes: u64, value: V) -> Vec<StoreKey> {
        self.put_beyond_limit(key, bytes, value);
        let mut evicted = Vec::new();
        while self.total > self.max && self.entries.len() > 1 {
            let Some(oldest) = self.oldest() else { break };
            self.take(&oldest);
            evicted.push(oldest);
        }
        evicted
    }

    /// Puts a value in, whatever the size of the table is then.
    pub(super) fn put_beyond_limit(&mut self, key: &StoreKey, bytes: u64, value: V) {
        self.take(key);
        self.clock += 1;
        self.total += bytes;
        *self.by_namespace.entry(key.namespace.clone()).or_default() += bytes;
        self.entries.insert(key.clone(), Entry { bytes, used: self.clock, value });
    }

    /// Removes the entry of an object.
    pub(super) fn take(&mut self, key: &StoreKey) {
        let Some(entry) = self.entries.remove(key) else { return };
        self.total -= entry.bytes;
        if let Some(bytes) = self.by_namespace.get_mut(&key.namespace) {
            *bytes -= entry.bytes;
            if *bytes == 0 {
                self.by_namespace.remove(&key.namespace);
            }
        }
    }

    /// Removes the entries of objects that do not match.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&StoreKey) -> bool) {
        let gone: Vec<StoreKey> = self.entries.keys().filter(|key| !is_kept(key)).cloned().collect();
        for key in gone {
            self.take(&key);
        }
    }

    /// The least recently used object of the namespace with most bytes.
    fn oldest(&self) -> Option<StoreKey> {
        let largest = self.by_namespace.iter().max_by_key(|(_, bytes)| **bytes)?.0;
        let of_largest = self.entries.iter().filter(|(key, _)| key.namespace == *largest);
        Some(of_largest.min_by_key(|(_, entry)| entry.used)?.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: &str, name: &str) -> StoreKey {
        StoreKey { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    #[test]
    fn a_namespace_displaces_its_own_entries() {
        let mut table = SizedTable::new(100);
        assert_eq!(table.put(&key("victim", "old"), 30, 1), []);
        assert_eq!(table.put(&key("attacker", "a"), 40, 2), []);
        assert_eq!(table.put(&key("attacker", "b"), 30, 3), []);
        assert_eq!(table.get(&key("attacker", "a")), Some(&2));
        assert_eq!(table.put(&key("attacker", "c"), 1, 4), [key("attacker", "b")]);
        // What is too large alone goes itself, and nothing of others.
        assert_eq!(table.put(&key("attacker", "a"), 100, 5), [key("attacker", "c"), key("attacker", "a")]);
        assert_eq!(table.get(&key("victim", "old")), Some(&1));
        assert_eq!(table.total, 30);
        table.retain(|key| key.name != "old");
        assert_eq!((table.total, table.by_namespace.len()), (0, 0));
        assert_eq!(table.put(&key("attacker", "a"), 1000, 6), []);
        assert_eq!(table.get(&key("attacker", "a")), Some(&6));
    }
}
