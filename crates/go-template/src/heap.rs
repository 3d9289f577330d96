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
    bytes: usize,
}

/// Shared content, with its charge once a rendering has counted it.
///
/// It holds the bytes itself instead of a [`Charge`]: most content belongs to the data and is charged zero bytes, which
/// then costs one write of an integer.
pub(crate) struct Held<T> {
    content: T,
    /// The bytes of the charge; [`UNCOUNTED`] before there is one.
    bytes: AtomicUsize,
    /// The heap that the bytes count on; empty while there are none.
    heap: OnceLock<Heap>,
}

/// Marks content that no rendering has counted.
const UNCOUNTED: usize = usize::MAX;

impl Heap {
    /// Returns the number of bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts bytes until the charge is dropped.
    pub(crate) fn charge(&self, bytes: usize) -> Charge {
        self.grow(bytes);
        Charge { heap: self.clone(), bytes }
    }

    fn grow(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn shrink(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.heap.shrink(self.bytes);
    }
}

impl<T> Held<T> {
    /// Wraps content that no rendering has counted yet.
    pub(crate) fn new(content: T) -> Self {
        Self { content, bytes: AtomicUsize::new(UNCOUNTED), heap: OnceLock::new() }
    }

    /// Counts the content as a number of bytes; returns false if it was counted before.
    pub(crate) fn count(&self, heap: &Heap, bytes: usize) -> bool {
        let is_new = self.bytes.load(Ordering::Relaxed) == UNCOUNTED
            && self.bytes.compare_exchange(UNCOUNTED, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_new {
            self.grow(heap, bytes);
        }
        is_new
    }

    /// Returns `true` if the content has no charge, or one of zero bytes.
    pub(crate) fn is_free(&self) -> bool {
        matches!(self.bytes.load(Ordering::Relaxed), 0 | UNCOUNTED)
    }

    /// Counts bytes that were added to charged content.
    pub(crate) fn grow(&self, heap: &Heap, bytes: usize) {
        if bytes > 0 && self.bytes.load(Ordering::Relaxed) != UNCOUNTED {
            self.heap.get_or_init(|| heap.clone()).grow(bytes);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Subtracts bytes that were removed from the content, at most the bytes of the charge.
    pub(crate) fn shrink(&self, bytes: usize) {
        if let Some(heap) = self.heap.get() {
            let bytes = bytes.min(self.bytes.load(Ordering::Relaxed));
            heap.shrink(bytes);
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        self.shrink(UNCOUNTED);
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
