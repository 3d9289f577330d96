//! Maps, in the order of their keys.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use super::{DICT_MAP, MapType, Value, compare};
use crate::text::Text;

/// A map of Go, with its entries always in the order in which templates see them.
#[derive(Clone)]
pub struct Map {
    kind: &'static MapType,
    entries: Option<Rc<RefCell<Entries>>>,
}

type Entries = BTreeMap<Key, Value>;

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
        Self { kind, entries: Some(Rc::new(RefCell::new(entries))) }
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
        self.entries.as_ref().map_or(0, |entries| entries.borrow().len())
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at a key.
    #[must_use]
    pub fn get(&self, key: &Value) -> Option<Value> {
        self.entries.as_ref()?.borrow().get(&Key(key.clone())).cloned()
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
        entries.borrow().iter().map(|(key, value)| (key.0.clone(), value.clone())).collect()
    }

    /// Sets the value at a key, for all who share the map; false when it is the nil map.
    pub(crate) fn insert(&self, key: Value, value: Value) -> bool {
        let Some(entries) = &self.entries else { return false };
        // What stood there goes only after the borrow: it may hold this very map.
        let before = entries.borrow_mut().insert(Key(key), value);
        drop(before);
        true
    }

    /// Removes the value at a key, for all who share the map.
    pub(crate) fn remove(&self, key: &Value) {
        if let Some(entries) = &self.entries {
            let before = entries.borrow_mut().remove(&Key(key.clone()));
            drop(before);
        }
    }

    /// Takes all entries out.
    pub(crate) fn clear(&self) {
        if let Some(entries) = &self.entries {
            let before = std::mem::take(&mut *entries.borrow_mut());
            drop(before);
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

impl fmt::Debug for Map {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "map[{}]{}; {} entries", self.kind.key, self.kind.value, self.len())
    }
}
