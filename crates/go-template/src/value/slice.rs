//! Slices: windows on a shared array.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use super::{Type, UintKind, Value};
use crate::heap::{Heap, Held};

/// The size of a slice in bytes without its elements.
const OVERHEAD: usize = 96;

/// A Go slice.
/// It is a part of an array, with room behind it up to its capacity.
#[derive(Clone)]
pub struct Slice {
    of: &'static Type,
    row: Option<Rc<Held<RefCell<Vec<Value>>>>>,
    start: usize,
    length: usize,
    capacity: usize,
    depth: usize,
}

impl Slice {
    /// Makes a slice of elements of a type.
    #[must_use]
    pub fn new(of: &'static Type, mut items: Vec<Value>) -> Self {
        items.shrink_to_fit();
        let depth = items.iter().map(Value::depth).max().unwrap_or(0) + 1;
        let length = items.len();
        Self {
            of,
            row: Some(Rc::new(Held::new(RefCell::new(items)))),
            start: 0,
            length,
            capacity: length,
            depth,
        }
    }

    /// Returns the nil slice, which prints as an empty one.
    #[must_use]
    pub fn nil(of: &'static Type) -> Self {
        Self { of, row: None, start: 0, length: 0, capacity: 0, depth: 1 }
    }

    /// Returns the type of the elements.
    #[must_use]
    pub fn of(&self) -> &'static Type {
        self.of
    }

    /// Returns whether it is the nil slice.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        self.row.is_none()
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the capacity: the length up to which it can be resliced.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns an element.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Value> {
        if index >= self.length {
            return None;
        }
        self.row.as_ref()?.borrow().get(self.start + index).cloned()
    }

    /// Returns all elements.
    #[must_use]
    pub fn to_vec(&self) -> Vec<Value> {
        self.row
            .as_ref()
            .map_or_else(Vec::new, |row| row.borrow()[self.start..self.start + self.length].to_vec())
    }

    /// Calls `look` with each element of the array, the elements outside the slice included.
    ///
    /// They must not change meanwhile.
    pub(crate) fn each(&self, look: &mut dyn FnMut(&Value)) {
        if let Some(row) = &self.row {
            row.borrow().iter().for_each(look);
        }
    }

    /// Calls `look` with each element in order, up to the first error.
    ///
    /// The elements must not change meanwhile.
    pub(crate) fn try_each<E>(&self, mut look: impl FnMut(usize, &Value) -> Result<(), E>) -> Result<(), E> {
        let Some(row) = &self.row else { return Ok(()) };
        let row = row.borrow();
        row[self.start..self.start + self.length].iter().enumerate().try_for_each(|(i, item)| look(i, item))
    }

    /// Counts the array with `factor` times its bytes; returns false if it was counted before.
    pub(crate) fn count(&self, heap: &Heap, factor: usize) -> bool {
        let Some(row) = &self.row else { return false };
        let bytes = OVERHEAD + row.borrow().len() * size_of::<Value>();
        row.count(heap, factor * bytes)
    }

    /// Returns the approximate size of a copy, in bytes.
    pub(crate) fn footprint(&self) -> usize {
        OVERHEAD + self.length * size_of::<Value>()
    }

    /// Takes all elements of the array out, unless it is shared.
    pub(super) fn take_unshared(&self) -> Vec<Value> {
        match &self.row {
            Some(row) if Rc::strong_count(row) == 1 => std::mem::take(&mut *row.borrow_mut()),
            _ => Vec::new(),
        }
    }

    /// Returns whether its elements are bytes.
    pub(crate) fn has_bytes(&self) -> bool {
        *self.of == Type::Uint(UintKind::Uint8)
    }

    /// Returns the bytes, if its elements are bytes.
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        let byte = |value: Value| {
            if let Value::Uint(byte, _) = value { u8::try_from(byte).unwrap_or(0) } else { 0 }
        };
        self.has_bytes().then(|| self.to_vec().into_iter().map(byte).collect())
    }

    /// Reslices: returns a part of the slice with a capacity.
    ///
    /// Returns `None` if that exceeds the slice's own capacity.
    #[must_use]
    pub fn part(&self, range: Range<usize>, capacity: usize) -> Option<Self> {
        if range.start > range.end || range.end > capacity || capacity > self.capacity {
            return None;
        }
        Some(Self {
            start: self.start + range.start,
            length: range.end - range.start,
            capacity: capacity - range.start,
            ..self.clone()
        })
    }

    /// Replaces the elements, visible to all that share the array.
    pub(crate) fn overwrite(&self, items: Vec<Value>) {
        if let Some(row) = &self.row {
            for (place, item) in row.borrow_mut()[self.start..self.start + self.length].iter_mut().zip(items)
            {
                *place = item;
            }
        }
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "[]{}; {} elements", self.of, self.length)
    }
}
