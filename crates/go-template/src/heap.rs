//! Accounting of the memory that the values of a rendering hold.
//!
//! Strings, slices, maps, structs and pointers share their content, which is stored in a [`Held`]. The executor
//! counts each value that a function or method returns: new content gets a [`Charge`] on the [`Heap`] of the
//! rendering, and releases it when it is dropped. Content of the data has a charge of zero bytes, because it existed
//! before the rendering.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Counts the bytes that the values of one rendering hold; clones share the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heap(Arc<AtomicUsize>);

/// A number of bytes on a heap, released when the charge is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    heap: Heap,
    bytes: AtomicUsize,
}

/// Shared content, with its charge once a rendering has counted it.
pub(crate) struct Held<T> {
    content: T,
    charge: OnceLock<Charge>,
}

impl Heap {
    /// Returns the number of bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts bytes until the charge is dropped.
    pub(crate) fn charge(&self, bytes: usize) -> Charge {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Charge { heap: self.clone(), bytes: AtomicUsize::new(bytes) }
    }
}

impl Charge {
    /// Counts more bytes.
    fn grow(&self, bytes: usize) {
        self.heap.0.fetch_add(bytes, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Subtracts bytes, at most the bytes of the charge.
    fn shrink(&self, bytes: usize) {
        let bytes = bytes.min(self.bytes.load(Ordering::Relaxed));
        self.heap.0.fetch_sub(bytes, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.heap.0.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

impl<T> Held<T> {
    /// Wraps content that no rendering has counted yet.
    pub(crate) fn new(content: T) -> Self {
        Self { content, charge: OnceLock::new() }
    }

    /// Counts the content as a number of bytes; returns false if it was counted before.
    pub(crate) fn count(&self, heap: &Heap, bytes: usize) -> bool {
        let mut is_new = false;
        self.charge.get_or_init(|| {
            is_new = true;
            heap.charge(bytes)
        });
        is_new
    }

    /// Returns whether the content has no charge, or one of zero bytes.
    pub(crate) fn is_free(&self) -> bool {
        self.charge.get().is_none_or(|charge| charge.bytes.load(Ordering::Relaxed) == 0)
    }

    /// Counts bytes that were added to charged content.
    pub(crate) fn grow(&self, bytes: usize) {
        if let Some(charge) = self.charge.get() {
            charge.grow(bytes);
        }
    }

    /// Subtracts bytes that were removed from the content.
    pub(crate) fn shrink(&self, bytes: usize) {
        if let Some(charge) = self.charge.get() {
            charge.shrink(bytes);
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Held<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.content.fmt(formatter)
    }
}

impl<T> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.content
    }
}
