//! Memory that the values of a rendering hold.
//!
//! Text, slices, maps, structs and pointers share their content, which stands in a [`Held`]. The executor counts each
//! value that a function or method returns: content that is new gets a [`Charge`] on the [`Heap`] of the rendering, and
//! gives it back when it is dropped. Content of the data has a charge of no bytes, for it was there before.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Counts the bytes that the values of one rendering hold; a clone counts for the same rendering.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heap(Arc<AtomicUsize>);

/// Bytes of a heap, given back when the charge is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    heap: Heap,
    bytes: AtomicUsize,
}

/// Content that values share, with its charge once a rendering has counted it.
pub(crate) struct Held<T> {
    content: T,
    charge: OnceLock<Charge>,
}

impl Heap {
    /// The bytes that are held.
    pub(crate) fn used(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts bytes for as long as the charge is there.
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

    /// Counts fewer bytes, at most those that it has.
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
    /// Content that no rendering has counted.
    pub(crate) fn new(content: T) -> Self {
        Self { content, charge: OnceLock::new() }
    }

    /// Counts the content as so many bytes; false when it was counted before.
    pub(crate) fn count(&self, heap: &Heap, bytes: usize) -> bool {
        let mut is_new = false;
        self.charge.get_or_init(|| {
            is_new = true;
            heap.charge(bytes)
        });
        is_new
    }

    /// Whether it has no charge, or one of no bytes.
    pub(crate) fn is_free(&self) -> bool {
        self.charge.get().is_none_or(|charge| charge.bytes.load(Ordering::Relaxed) == 0)
    }

    /// Counts bytes that were added to content that has a charge.
    pub(crate) fn grow(&self, bytes: usize) {
        if let Some(charge) = self.charge.get() {
            charge.grow(bytes);
        }
    }

    /// Counts fewer bytes, which were taken out of the content.
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
