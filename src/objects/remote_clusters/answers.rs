//! The answers of a cluster to probes, by their number.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the answers of a cluster to probes. Clones share the number.
///
/// A failure between two answers is one of the failed request, and not of the whole cluster.
#[derive(Clone, Debug, Default)]
pub struct Answers(Arc<AtomicU64>);

impl Answers {
    /// Returns the number of answers so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds an answer.
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
