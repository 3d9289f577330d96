//! The memory budget for large inputs of tenants, as a weighted semaphore.

use super::semaphore::{FairSemaphore, Permit, SlotLimits};
use crate::metrics::{Metrics, SlotResource};

/// The maximum memory in bytes of all memory-intensive work of a process.
///
/// With [`overflow`] and its base memory, the process stays below 512 MiB, half of a pod's limit in the Deployment. The
/// comparison of `--dry-run` comes on top.
const TOTAL: u64 = 320 * 1024 * 1024;

/// Reserves memory for large work before it starts.
///
/// Such work comprises large responses, tree listings, plans, templates and git processes.
///
/// A namespace never holds more than half, and at most two fifths of that for git processes, which wait for servers:
/// git servers that never respond leave the rest to the plans of their namespace. Memory for a registry's response is
/// not part of these two fifths, since it is held only briefly in any case. Two namespaces may hold everything; a third
/// one that holds nothing gets memory beyond the limit after two seconds, up to the joint limit of such namespaces.
/// Work never makes two reservations at a time, so there are no deadlocks. Clones share the budget.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    all: FairSemaphore,
    /// The part for work that lasts as long as a server takes; acquired first.
    for_servers: FairSemaphore,
}

/// Reserved memory, released when dropped.
#[derive(Debug)]
pub struct MemoryReservation {
    _all: Permit,
    _for_servers: Option<Permit>,
}

impl MemoryBudget {
    /// Creates a budget of `bytes` bytes.
    pub fn new(bytes: u64) -> Self {
        Self::of(bytes, FairSemaphore::new(limits(bytes)))
    }

    /// Creates the default budget, with waits measured by namespace.
    pub fn measured(metrics: &Metrics) -> Self {
        Self::of(TOTAL, FairSemaphore::measured(limits(TOTAL), SlotResource::memory, metrics))
    }

    fn of(bytes: u64, all: FairSemaphore) -> Self {
        let for_servers = SlotLimits::halved(bytes / 5 * 2);
        Self { all, for_servers: FairSemaphore::new(for_servers.with_overflow(for_servers.total)) }
    }

    /// Waits until memory is free for a namespace, and reserves it.
    ///
    /// More than a namespace may hold counts as all that it may hold.
    pub async fn reserve(&self, namespace: &str, bytes: u64) -> MemoryReservation {
        MemoryReservation { _all: self.all.acquire(namespace, bytes).await, _for_servers: None }
    }

    /// Reserves memory if that needs no wait.
    pub fn try_reserve(&self, namespace: &str, bytes: u64) -> Option<MemoryReservation> {
        Some(MemoryReservation { _all: self.all.try_acquire(namespace, bytes)?, _for_servers: None })
    }

    /// Like [`reserve`](Self::reserve), for work that waits for a server, such as a fetch.
    pub async fn reserve_for_server(&self, namespace: &str, bytes: u64) -> MemoryReservation {
        let for_servers = self.for_servers.acquire(namespace, bytes).await;
        MemoryReservation { _all: self.all.acquire(namespace, bytes).await, _for_servers: Some(for_servers) }
    }
}

fn limits(bytes: u64) -> SlotLimits {
    SlotLimits::halved(bytes).with_overflow(overflow(bytes))
}

/// The bytes beyond a budget for namespaces that hold nothing.
///
/// With the default budget these are 96 MiB, enough for a plan with its commit, or for a few transfers.
fn overflow(bytes: u64) -> u64 {
    bytes / 10 * 3
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self::new(TOTAL)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;
    use tokio::time::{Instant, timeout};

    use super::*;

    const PATIENCE: Duration = SlotLimits::OVERFLOW_AFTER;

    #[tokio::test]
    async fn one_namespace_leaves_half_of_the_memory_to_others() {
        let budget = MemoryBudget::new(100);
        let _all = budget.reserve("attacker", 1000).await;
        assert!(budget.reserve("attacker", 1).now_or_never().is_none());
        assert!(budget.reserve("victim", 50).now_or_never().is_some());
    }

    #[tokio::test]
    async fn servers_that_never_answer_leave_memory_to_the_plans_of_their_namespace() {
        let budget = MemoryBudget::new(100);
        let _silent = [budget.reserve_for_server("a", 10).await, budget.reserve_for_server("a", 10).await];
        assert!(budget.reserve_for_server("a", 10).now_or_never().is_none());
        assert!(budget.reserve("a", 30).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn servers_that_never_answer_hold_up_no_third_namespace() {
        let budget = MemoryBudget::new(100);
        let _silent = [budget.reserve_for_server("a", 20).await, budget.reserve_for_server("b", 20).await];
        let victim = budget.reserve_for_server("c", 20);
        assert!(timeout(PATIENCE * 2, victim).await.is_ok());
    }

    /// Two namespaces with all memory used to block a third one for minutes.
    #[tokio::test(start_paused = true)]
    async fn a_namespace_that_holds_nothing_waits_two_seconds_at_most_for_the_memory_of_a_plan() {
        let budget = MemoryBudget::default();
        let all = [budget.reserve("a", u64::MAX).await, budget.reserve("b", u64::MAX).await];
        let plan = 96 * 1024 * 1024;
        let begin = Instant::now();
        let third =
            timeout(PATIENCE * 10, budget.reserve("c", plan)).await.expect("it is granted beyond the limit");
        assert_eq!(begin.elapsed(), PATIENCE);
        // This is the maximum for any number of waiting namespaces: the process must not grow without limit.
        assert!(timeout(PATIENCE * 10, budget.reserve("d", 1)).await.is_err());
        assert!(timeout(PATIENCE * 10, budget.reserve("c", 1)).await.is_err());
        assert_eq!(budget.all.held(), TOTAL + overflow(TOTAL));
        drop(third);
        assert!(timeout(PATIENCE * 10, budget.reserve("d", plan)).await.is_ok());
        drop(all);
        assert_eq!(budget.all.held(), 0);
    }
}
