//! A map from keys to values that several holders share.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// A map from keys to values, which counts the holders of each value.
///
/// A value stays as long as it was added more often than removed.
#[derive(Clone, Debug)]
pub(super) struct Counted<K, V> {
    values: HashMap<K, BTreeMap<V, usize>>,
}

impl<K, V> Default for Counted<K, V> {
    fn default() -> Self {
        Self { values: HashMap::new() }
    }
}

impl<K: Hash + Eq, V: Ord> Counted<K, V> {
    pub(super) fn add(&mut self, key: K, value: V) {
        *self.values.entry(key).or_default().entry(value).or_default() += 1;
    }

    pub(super) fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q, value: &V)
    where
        K: Borrow<Q>,
    {
        let Some(values) = self.values.get_mut(key) else { return };
        if let Some(count) = values.get_mut(value) {
            *count -= 1;
            if *count == 0 {
                values.remove(value);
            }
        }
        if values.is_empty() {
            self.values.remove(key);
        }
    }

    /// Returns `true` if a key has a value.
    pub(super) fn has<Q: Hash + Eq + ?Sized>(&self, key: &Q, value: &V) -> bool
    where
        K: Borrow<Q>,
    {
        self.values.get(key).is_some_and(|values| values.contains_key(value))
    }

    /// Returns the values of a key, in order.
    pub(super) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> impl Iterator<Item = &V>
    where
        K: Borrow<Q>,
    {
        self.values.get(key).into_iter().flat_map(BTreeMap::keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_until_its_last_holder_removes_it() {
        let mut map: Counted<&str, u8> = Counted::default();
        map.add("a", 2);
        map.add("a", 1);
        map.add("a", 2);
        map.remove("a", &2);
        assert_eq!(map.get("a").copied().collect::<Vec<_>>(), [1, 2]);
        map.remove("a", &2);
        map.remove("a", &3);
        map.remove("b", &1);
        assert_eq!(map.get("a").copied().collect::<Vec<_>>(), [1]);
        map.remove("a", &1);
        assert!(map.values.is_empty());
    }
}
