//! Maps, sorted by their keys.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::{Rc, Weak};

use super::{ANY, DICT_MAP, MapType, Value, compare};
use crate::heap::{Heap, Held};
use crate::text::Text;

/// The size of an entry in bytes.
/// Tree nodes are half empty in the worst case.
const BYTES_OF_ENTRY: usize = 4 * size_of::<Value>();

/// The size of a map in bytes without its entries.
/// The first node has room for eleven.
const OVERHEAD: usize = 96 + 11 * 2 * size_of::<Value>();

/// A Go map; its entries are always in the order in which templates see them.
#[derive(Clone)]
pub struct Map {
    kind: &'static MapType,
    entries: Option<Rc<Held<Entries>>>,
}

/// A weak reference to a map that the rendering must clear at its end.
#[derive(Clone)]
pub(crate) struct WeakMap(Weak<Held<Entries>>);

/// The entries of a map.
struct Entries(RefCell<BTreeMap<Key, Value>>);

/// Dicts can be nested to any depth, so their content is dropped without recursion.
impl Drop for Entries {
    fn drop(&mut self) {
        drop_one_by_one(std::mem::take(self.0.get_mut()));
    }
}

#[allow(
    clippy::mutable_key_type,
    reason = "keys are of types that Go can compare, which hold no slices and maps"
)]
fn drop_one_by_one(entries: BTreeMap<Key, Value>) {
    let can_hold = |value: &Value| matches!(value, Value::Map(_) | Value::Slice(_));
    let mut left: Vec<Value> = entries.into_values().filter(can_hold).collect();
    while let Some(value) = left.pop() {
        match &value {
            Value::Map(map) => left.extend(map.take_unshared().into_values().filter(can_hold)),
            Value::Slice(slice) => left.extend(slice.take_unshared().into_iter().filter(can_hold)),
            _ => {}
        }
    }
}

/// A key with the order of keys.
struct Key(Value);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

#[allow(
    clippy::mutable_key_type,
    reason = "keys are of types that Go can compare, which hold no slices and maps"
)]
impl Map {
    /// Makes a map of these entries.
    #[must_use]
    pub fn new(kind: &'static MapType, entries: impl IntoIterator<Item = (Value, Value)>) -> Self {
        let entries = entries.into_iter().map(|(key, value)| (Key(key), value)).collect();
        Self { kind, entries: Some(Rc::new(Held::new(Entries(RefCell::new(entries))))) }
    }

    /// Makes a `map[string]interface {}`.
    #[must_use]
    pub fn dict(entries: impl IntoIterator<Item = (Text, Value)>) -> Self {
        Self::new(&DICT_MAP, entries.into_iter().map(|(key, value)| (Value::String(key), value)))
    }

    /// Returns the nil map, which prints as an empty one.
    #[must_use]
    pub fn nil(kind: &'static MapType) -> Self {
        Self { kind, entries: None }
    }

    /// Returns the type.
    #[must_use]
    pub fn kind(&self) -> &'static MapType {
        self.kind
    }

    /// Returns whether it is the nil map.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        self.entries.is_none()
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.as_ref().map_or(0, |entries| entries.0.borrow().len())
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of a key.
    #[must_use]
    pub fn get(&self, key: &Value) -> Option<Value> {
        self.entries.as_ref()?.0.borrow().get(&Key(key.clone())).cloned()
    }

    /// Returns the value of a string key.
    #[must_use]
    pub fn at(&self, key: &Text) -> Option<Value> {
        self.get(&Value::String(key.clone()))
    }

    /// Returns the entries in the order of their keys.
    #[must_use]
    pub fn entries(&self) -> Vec<(Value, Value)> {
        let Some(entries) = &self.entries else { return Vec::new() };
        entries.0.borrow().iter().map(|(key, value)| (key.0.clone(), value.clone())).collect()
    }

    /// Calls `look` with each entry in the order of the keys.
    ///
    /// The map must not change meanwhile.
    pub(crate) fn each(&self, look: &mut dyn FnMut(&Value, &Value)) {
        if let Some(entries) = &self.entries {
            entries.0.borrow().iter().for_each(|(key, value)| look(&key.0, value));
        }
    }

    /// Calls a function with each index and entry, up to the first error.
    pub(crate) fn try_each<E>(
        &self,
        mut look: impl FnMut(usize, &Value, &Value) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(entries) = &self.entries else { return Ok(()) };
        let entries = entries.0.borrow();
        entries.iter().enumerate().try_for_each(|(i, (key, value))| look(i, &key.0, value))
    }

    /// Sets the value of a key, visible to all that share the map.
    /// A new entry is counted on the heap.
    ///
    /// Returns false for the nil map.
    pub(crate) fn insert(&self, heap: &Heap, key: Value, value: Value) -> bool {
        let Some(entries) = &self.entries else { return false };
        // The old value is dropped only after the borrow: it may hold this very map.
        let before = entries.0.borrow_mut().insert(Key(key), value);
        if before.is_none() {
            entries.grow(heap, BYTES_OF_ENTRY);
        }
        true
    }

    /// Removes a key, visible to all that share the map.
    pub(crate) fn remove(&self, key: &Value) {
        if let Some(entries) = &self.entries {
            let before = entries.0.borrow_mut().remove(&Key(key.clone()));
            if before.is_some() {
                entries.shrink(BYTES_OF_ENTRY);
            }
        }
    }

    /// Counts the entries with `factor` times their bytes; returns false if they were counted before.
    pub(crate) fn count(&self, heap: &Heap, factor: usize) -> bool {
        let Some(entries) = &self.entries else { return false };
        entries.count(heap, factor * self.footprint())
    }

    /// Returns the approximate size of a copy, in bytes.
    pub(crate) fn footprint(&self) -> usize {
        OVERHEAD + self.len() * BYTES_OF_ENTRY
    }

    /// Makes a map of the data count from now on, with the coming change.
    /// Returns false if it counts already.
    pub(crate) fn count_changes(&self, heap: &Heap) -> bool {
        let Some(entries) = self.entries.as_ref().filter(|entries| entries.is_free()) else { return false };
        entries.grow(heap, OVERHEAD);
        true
    }

    /// Returns whether it can hold values of any type, and so itself.
    pub(crate) fn can_hold_itself(&self) -> bool {
        self.kind.value == ANY
    }

    /// Returns a weak reference; `None` for the nil map.
    pub(crate) fn downgrade(&self) -> Option<WeakMap> {
        self.entries.as_ref().map(|entries| WeakMap(Rc::downgrade(entries)))
    }

    /// Takes all entries out, unless the map is shared.
    fn take_unshared(&self) -> BTreeMap<Key, Value> {
        match &self.entries {
            Some(entries) if Rc::strong_count(entries) == 1 => std::mem::take(&mut *entries.0.borrow_mut()),
            _ => BTreeMap::new(),
        }
    }

    /// Returns whether both are the same map.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.entries, &other.entries) {
            (Some(entries), Some(others)) => Rc::ptr_eq(entries, others),
            _ => false,
        }
    }
}

#[allow(
    clippy::mutable_key_type,
    reason = "keys are of types that Go can compare, which hold no slices and maps"
)]
impl WeakMap {
    /// Returns whether the map still exists.
    pub(crate) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Removes all entries.
    pub(crate) fn clear(&self) {
        if let Some(entries) = self.0.upgrade() {
            let before = std::mem::take(&mut *entries.0.borrow_mut());
            drop_one_by_one(before);
            entries.shrink(usize::MAX);
        }
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "map[{}]{}; {} entries", self.kind.key, self.kind.value, self.len())
    }
}
