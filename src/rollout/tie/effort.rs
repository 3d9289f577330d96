//! The bound of the work for one policy.
//!
//! Markers and objects are those of tenants, and each marker may lead to each object.

use std::cell::Cell;
use std::fmt;

/// The maximum number of ties of a policy.
pub const MAX_TIES: usize = 20_000;

/// The maximum number of comparisons of a place with a text of an object.
pub const MAX_COMPARISONS: usize = 200_000;

/// Tells if the result of a computation is not needed any more.
#[derive(Clone, Copy)]
pub struct Stop<'i>(pub &'i dyn Fn() -> bool);

impl Stop<'_> {
    /// Returns `true` if the computation may end with any result.
    #[must_use]
    pub fn is_requested(self) -> bool {
        (self.0)()
    }
}

impl fmt::Debug for Stop<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Stop").field(&self.is_requested()).finish()
    }
}

/// The work that a matching has done.
pub(in crate::rollout) struct Effort<'i> {
    comparisons: Cell<usize>,
    ties: Cell<usize>,
    stop: Stop<'i>,
}

impl<'i> Effort<'i> {
    pub(in crate::rollout) fn new(stop: Stop<'i>) -> Self {
        Self { comparisons: Cell::new(0), ties: Cell::new(0), stop }
    }

    /// Counts comparisons of places with objects.
    pub(in crate::rollout) fn compare(&self, comparisons: usize) {
        self.comparisons.set(self.comparisons.get().saturating_add(comparisons));
    }

    /// Counts ties.
    pub(in crate::rollout) fn tie(&self, ties: usize) {
        self.ties.set(self.ties.get().saturating_add(ties));
    }

    /// Returns `true` if no further place is matched.
    pub(in crate::rollout) fn is_spent(&self) -> bool {
        self.comparisons.get() >= MAX_COMPARISONS || self.ties.get() >= MAX_TIES || self.stop.is_requested()
    }
}
