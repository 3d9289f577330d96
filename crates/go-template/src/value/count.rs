//! Counts the memory of a value and of its content.

use super::{Map, Value};
use crate::heap::Heap;

/// A walk that counts values which are new to a rendering.
pub(crate) struct Count<'c> {
    /// The heap that they are counted on.
    pub(crate) heap: &'c Heap,
    /// 1, or 0 for the data of the template.
    pub(crate) factor: usize,
    /// Called with each new map.
    pub(crate) on_map: &'c mut dyn FnMut(&Map),
}

impl Count<'_> {
    /// Counts everything that a value holds and that was not counted before.
    ///
    /// Content that was counted is not visited.
    pub(crate) fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => text.count(self.heap, self.factor),
            Value::Slice(slice) if slice.count(self.heap, self.factor) => {
                slice.each(&mut |item| self.value(item));
            }
            Value::Map(map) if map.count(self.heap, self.factor) => {
                (self.on_map)(map);
                map.each(&mut |key, value| {
                    self.value(key);
                    self.value(value);
                });
            }
            Value::Struct(object) if object.count(self.heap, self.factor) => {
                object.fields().iter().for_each(|field| self.value(field));
            }
            Value::Pointer(pointer) if pointer.count(self.heap, self.factor) => {
                pointer.target().into_iter().for_each(|target| self.value(target));
            }
            _ => {}
        }
    }
}

impl Value {
    /// Returns the approximate size of a copy in bytes, without the content of its elements.
    pub(crate) fn footprint(&self) -> usize {
        match self {
            Self::String(text) => text.footprint(),
            Self::Slice(slice) => slice.footprint(),
            Self::Map(map) => map.footprint(),
            _ => 0,
        }
    }
}
