//! The memory that large inputs of tenants may take, as one weighted semaphore.

use super::semaphore::{FairSemaphore, Permit, SlotLimits};
use crate::metrics::{Metrics, SlotResource};

/// The bytes that all memory-hungry work of a process may take at once.
///
/// With what the process needs anyway it stays below 512 MiB, half of what the Deployment allows a pod.
pub const MEMORY_BUDGET: u64 = 256 * 1024 * 1024;

/// Reserves memory for large responses, tree listings, plans, templates and git processes before they are begun.
///
/// No namespace ever holds more than half. Work never reserves twice at a time, so that two pieces of work cannot
/// wait for each other. Clones are one and the same budget.
#[derive(Clone, Debug)]
pub struct MemoryBudget(FairSemaphore);

/// Memory that is reserved until this is dropped.
#[derive(Debug)]
pub struct MemoryReservation(#[expect(dead_code, reason = "returns its bytes when dropped")] Permit);

impl MemoryBudget {
    /// A budget of so many bytes.
    pub fn new(bytes: u64) -> Self {
        Self(FairSemaphore::new(SlotLimits::halved(bytes)))
    }

    /// The default budget, with waits measured by namespace.
    pub fn measured(metrics: &Metrics) -> Self {
        Self(FairSemaphore::measured(SlotLimits::halved(MEMORY_BUDGET), SlotResource::memory, metrics))
    }

    /// Waits until so many bytes are free for a namespace and reserves them. More than a namespace may hold counts as
    /// all of that.
    pub async fn reserve(&self, namespace: &str, bytes: u64) -> MemoryReservation {
        MemoryReservation(self.0.acquire(namespace, bytes).await)
    }
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self::new(MEMORY_BUDGET)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn one_namespace_leaves_half_of_the_memory_to_others() {
        let budget = MemoryBudget::new(100);
        let _all = budget.reserve("attacker", 1000).await;
        assert!(budget.reserve("attacker", 1).now_or_never().is_none());
        assert!(budget.reserve("victim", 50).now_or_never().is_some());
    }
}
