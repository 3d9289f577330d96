//! Maps, in the order of their keys.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::{Rc, Weak};

use super::{ANY, DICT_MAP, MapType, Value, compare};
use crate::heap::{Heap, Held};
use crate::text::Text;

/// How many bytes an entry takes: the nodes of the tree are half empty at worst.
const BYTES_OF_ENTRY: usize = 4 * size_of::<Value>();

/// How many bytes a map takes beside that: the first node has room for eleven entries.
const OVERHEAD: usize = 96 + 11 * 2 * size_of::<Value>();

/// A map of Go, with its entries always in the order in which templates see them.
#[derive(Clone)]
pub struct Map {
    kind: &'static MapType,
    entries: Option<Rc<Held<Entries>>>,
}

/// A map that a rendering will empty, if it is still there.
#[derive(Clone)]
pub(crate) struct WeakMap(Weak<Held<Entries>>);

/// The entries of a map.
struct Entries(RefCell<BTreeMap<Key, Value>>);

/// Dicts may stand in one another to any depth, so what they hold is not dropped by recursion.
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

/// A key by the order of keys.
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
    /// A map of these entries.
    #[must_use]
    pub fn new(kind: &'static MapType, entries: impl IntoIterator<Item = (Value, Value)>) -> Self {
        let entries = entries.into_iter().map(|(key, value)| (Key(key), value)).collect();
        Self { kind, entries: Some(Rc::new(Held::new(Entries(RefCell::new(entries))))) }
    }

    /// A `map[string]interface {}`.
    #[must_use]
    pub fn dict(entries: impl IntoIterator<Item = (Text, Value)>) -> Self {
        Self::new(&DICT_MAP, entries.into_iter().map(|(key, value)| (Value::String(key), value)))
    }

    /// The nil map, which prints as an empty one.
    #[must_use]
    pub fn nil(kind: &'static MapType) -> Self {
        Self { kind, entries: None }
    }

    /// The type.
    #[must_use]
    pub fn kind(&self) -> &'static MapType {
        self.kind
    }

    /// Whether it is the nil map.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        self.entries.is_none()
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.as_ref().map_or(0, |entries| entries.0.borrow().len())
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at a key.
    #[must_use]
    pub fn get(&self, key: &Value) -> Option<Value> {
        self.entries.as_ref()?.0.borrow().get(&Key(key.clone())).cloned()
    }

    /// The value at a key of type string.
    #[must_use]
    pub fn at(&self, key: &Text) -> Option<Value> {
        self.get(&Value::String(key.clone()))
    }

    /// The entries in the order of their keys.
    #[must_use]
    pub fn entries(&self) -> Vec<(Value, Value)> {
        let Some(entries) = &self.entries else { return Vec::new() };
        entries.0.borrow().iter().map(|(key, value)| (key.0.clone(), value.clone())).collect()
    }

    /// Does something with each entry in the order of the keys. The map must not change meanwhile.
    pub(crate) fn each(&self, look: &mut dyn FnMut(&Value, &Value)) {
        if let Some(entries) = &self.entries {
            entries.0.borrow().iter().for_each(|(key, value)| look(&key.0, value));
        }
    }

    /// The same, with the place of each entry and up to the first error.
    pub(crate) fn try_each<E>(
        &self,
        mut look: impl FnMut(usize, &Value, &Value) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(entries) = &self.entries else { return Ok(()) };
        let entries = entries.0.borrow();
        entries.iter().enumerate().try_for_each(|(i, (key, value))| look(i, &key.0, value))
    }

    /// Sets the value at a key, for all who share the map; false when it is the nil map.
    pub(crate) fn insert(&self, key: Value, value: Value) -> bool {
        let Some(entries) = &self.entries else { return false };
        // What stood there goes only after the borrow: it may hold this very map.
        let before = entries.0.borrow_mut().insert(Key(key), value);
        if before.is_none() {
            entries.grow(BYTES_OF_ENTRY);
        }
        true
    }

    /// Removes the value at a key, for all who share the map.
    pub(crate) fn remove(&self, key: &Value) {
        if let Some(entries) = &self.entries {
            let before = entries.0.borrow_mut().remove(&Key(key.clone()));
            if before.is_some() {
                entries.shrink(BYTES_OF_ENTRY);
            }
        }
    }

    /// Counts the entries, with `factor` times their bytes; false when they were counted before.
    pub(crate) fn count(&self, heap: &Heap, factor: usize) -> bool {
        let Some(entries) = &self.entries else { return false };
        entries.count(heap, factor * self.footprint())
    }

    /// How many bytes a copy of it takes about.
    pub(crate) fn footprint(&self) -> usize {
        OVERHEAD + self.len() * BYTES_OF_ENTRY
    }

    /// Makes a map of the data count from now on, with the change that comes; false when it counts already.
    pub(crate) fn count_changes(&self) -> bool {
        let Some(entries) = self.entries.as_ref().filter(|entries| entries.is_free()) else { return false };
        entries.grow(OVERHEAD);
        true
    }

    /// Whether it can hold values of any type, and so itself.
    pub(crate) fn can_hold_itself(&self) -> bool {
        self.kind.value == ANY
    }

    /// The map for as long as others share it; none for the nil map.
    pub(crate) fn downgrade(&self) -> Option<WeakMap> {
        self.entries.as_ref().map(|entries| WeakMap(Rc::downgrade(entries)))
    }

    /// Takes all entries out, if no other shares them.
    fn take_unshared(&self) -> BTreeMap<Key, Value> {
        match &self.entries {
            Some(entries) if Rc::strong_count(entries) == 1 => std::mem::take(&mut *entries.0.borrow_mut()),
            _ => BTreeMap::new(),
        }
    }

    /// Whether both are one and the same map.
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
    /// Whether the map is still there.
    pub(crate) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Takes all entries out.
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
