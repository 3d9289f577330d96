//! The memory that large inputs of tenants may take, as one weighted semaphore.

use super::semaphore::{FairSemaphore, Permit, SlotLimits};
use crate::metrics::{Metrics, SlotResource};

/// The bytes that all memory-hungry work of a process may take at once.
///
/// With [`overflow`] of it and what the process needs anyway, the process stays below 512 MiB, half of what the Deployment
/// allows a pod. The comparison of `--dry-run` comes on top.
const TOTAL: u64 = 320 * 1024 * 1024;

/// Reserves memory for large responses, tree listings, plans, templates and git processes before they are begun.
///
/// No namespace ever holds more than half, and of that at most two fifths for git, which waits for servers: git servers
/// that never answer leave the rest to the plans of their namespace. Memory for an answer of a registry is no part of these
/// two fifths; it is held for a short time only, whatever the registry does. Two namespaces may hold everything; a third
/// one that holds nothing gets its memory beyond the limit after two seconds, within what such namespaces may have
/// together. Work never reserves twice at a time, so that two pieces of work cannot wait for each other. Clones are one and
/// the same budget.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    all: FairSemaphore,
    /// The part that may be held for as long as a server takes; taken first.
    for_servers: FairSemaphore,
}

/// Memory that is reserved until this is dropped.
#[derive(Debug)]
pub struct MemoryReservation {
    _all: Permit,
    _for_servers: Option<Permit>,
}

impl MemoryBudget {
    /// A budget of so many bytes.
    pub fn new(bytes: u64) -> Self {
        Self::of(bytes, FairSemaphore::new(limits(bytes)))
    }

    /// The default budget, with waits measured by namespace.
    pub fn measured(metrics: &Metrics) -> Self {
        Self::of(TOTAL, FairSemaphore::measured(limits(TOTAL), SlotResource::memory, metrics))
    }

    fn of(bytes: u64, all: FairSemaphore) -> Self {
        let for_servers = SlotLimits::halved(bytes / 5 * 2);
        Self { all, for_servers: FairSemaphore::new(for_servers.with_overflow(for_servers.total)) }
    }

    /// Waits until so many bytes are free for a namespace and reserves them. More than a namespace may hold counts as
    /// all of that.
    pub async fn reserve(&self, namespace: &str, bytes: u64) -> MemoryReservation {
        MemoryReservation { _all: self.all.acquire(namespace, bytes).await, _for_servers: None }
    }

    /// Reserves so many bytes if that needs no wait.
    pub fn try_reserve(&self, namespace: &str, bytes: u64) -> Option<MemoryReservation> {
        Some(MemoryReservation { _all: self.all.try_acquire(namespace, bytes)?, _for_servers: None })
    }

    /// The same as [`reserve`](Self::reserve) for work that takes as long as a server does,
    /// such as a fetch.
    pub async fn reserve_for_server(&self, namespace: &str, bytes: u64) -> MemoryReservation {
        let for_servers = self.for_servers.acquire(namespace, bytes).await;
        MemoryReservation { _all: self.all.acquire(namespace, bytes).await, _for_servers: Some(for_servers) }
    }
}

fn limits(bytes: u64) -> SlotLimits {
    SlotLimits::halved(bytes).with_overflow(overflow(bytes))
}

/// The bytes beyond a budget for namespaces that hold nothing: of the default budget 96 MiB, which is a plan with its
/// commit, or a few transfers.
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

    /// Two namespaces whose plans or lists take all memory for minutes kept a third one waiting until one of them ended.
    #[tokio::test(start_paused = true)]
    async fn a_namespace_that_holds_nothing_waits_two_seconds_at_most_for_the_memory_of_a_plan() {
        let budget = MemoryBudget::default();
        let all = [budget.reserve("a", u64::MAX).await, budget.reserve("b", u64::MAX).await];
        let plan = 96 * 1024 * 1024;
        let begin = Instant::now();
        let third =
            timeout(PATIENCE * 10, budget.reserve("c", plan)).await.expect("it is granted beyond the limit");
        assert_eq!(begin.elapsed(), PATIENCE);
        // There is no more than that, however many namespaces wait: the process must not grow without bound.
        assert!(timeout(PATIENCE * 10, budget.reserve("d", 1)).await.is_err());
        assert!(timeout(PATIENCE * 10, budget.reserve("c", 1)).await.is_err());
        assert_eq!(budget.all.held(), TOTAL + overflow(TOTAL));
        drop(third);
        assert!(timeout(PATIENCE * 10, budget.reserve("d", plan)).await.is_ok());
        drop(all);
        assert_eq!(budget.all.held(), 0);
    }
}
