//! A map of shared values that exist only while they are in use.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Shared values by key, such as locks.
/// Each value is kept as long as a caller holds it.
#[derive(Debug)]
pub struct InUseMap<K, V>(HashMap<K, Arc<V>>);

impl<K, V> Default for InUseMap<K, V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash, V: Default> InUseMap<K, V> {
    /// Returns the value of a key, a new one if no caller holds one.
    pub fn get(&mut self, key: K) -> Arc<V> {
        self.remove_unused();
        Arc::clone(self.0.entry(key).or_default())
    }

    /// Removes the values that no caller holds.
    pub fn remove_unused(&mut self) {
        self.0.retain(|_, value| Arc::strong_count(value) > 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_share_a_value_until_the_last_drops_it() {
        let mut map = InUseMap::<_, u8>::default();
        let (first, other) = (map.get("a"), map.get("b"));
        assert!(Arc::ptr_eq(&first, &map.get("a")) && !Arc::ptr_eq(&first, &other));
        drop(other);
        map.remove_unused();
        assert_eq!(map.0.len(), 1);
        drop(first);
        map.get("c");
        assert_eq!(map.0.keys().collect::<Vec<_>>(), [&"c"]);
    }
}
