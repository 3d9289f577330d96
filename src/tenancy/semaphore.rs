//! A weighted semaphore that grants its units round robin by namespace.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::waiters::Waiters;
use crate::metrics::{Metrics, SlotResource};

/// The limits of a semaphore, in units: slots, threads or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotLimits {
    /// The maximum number of units of all namespaces together, at least one.
    pub total: u64,
    /// The maximum number of units of one namespace.
    pub per_namespace: u64,
    /// Units beyond `total` for namespaces that hold none. `None`: they wait like all others.
    pub overflow: Option<Overflow>,
}

/// Units beyond the limit, granted to waiters whose namespaces hold none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// The wait after which they are granted.
    pub after: Duration,
    /// The maximum for all such namespaces together.
    pub units: u64,
}

impl SlotLimits {
    /// The wait after which a namespace without a slot gets one beyond the limit.
    pub const OVERFLOW_AFTER: Duration = Duration::from_secs(2);

    /// Limits of slots that one namespace may hold entirely while no other waits.
    ///
    /// A namespace without a slot gets one within [`Self::OVERFLOW_AFTER`].
    pub fn shared(total: usize) -> Self {
        let total = u64::try_from(total).unwrap_or(u64::MAX).max(1);
        Self { total, per_namespace: total, overflow: None }.with_overflow(total)
    }

    /// Limits under which no namespace ever holds more than half.
    pub fn halved(total: u64) -> Self {
        Self { total: total.max(1), per_namespace: (total / 2).max(1), overflow: None }
    }

    /// Adds units beyond the limits for namespaces that hold none.
    ///
    /// They are granted after [`Self::OVERFLOW_AFTER`].
    pub const fn with_overflow(self, units: u64) -> Self {
        Self { overflow: Some(Overflow { after: Self::OVERFLOW_AFTER, units }), ..self }
    }
}

/// A weighted semaphore that is fair by namespace. Clones share its units.
///
/// Waiters of one namespace are served in the order of their arrival, and namespaces take turns. A namespace at its
/// maximum is skipped. A waiter whose units are not free yet keeps its turn, so that small requests do not starve a
/// large one.
#[derive(Clone, Debug)]
pub struct FairSemaphore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limits: SlotLimits,
    /// Measures waits, if set.
    metrics: Option<(SlotResource, Metrics)>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    total: u64,
    /// Units of `total` that were acquired beyond all limits; they do not count as overflow.
    beyond: u64,
    by_namespace: HashMap<String, u64>,
    waiters: Waiters<Waiter>,
    next_id: u64,
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    weight: u64,
    since: Instant,
    granted: oneshot::Sender<()>,
}

/// Acquired units of a semaphore, returned when dropped.
#[derive(Debug)]
pub struct Permit {
    semaphore: FairSemaphore,
    namespace: String,
    weight: u64,
    is_beyond: bool,
}

/// A queued wait: dropping it leaves the queue, and returns units granted at that moment.
struct Pending<'s> {
    semaphore: &'s FairSemaphore,
    namespace: &'s str,
    id: u64,
    weight: u64,
    since: Instant,
    granted: oneshot::Receiver<()>,
    is_over: bool,
}

impl FairSemaphore {
    /// Creates a semaphore whose units are all free.
    pub fn new(limits: SlotLimits) -> Self {
        Self(Arc::new(Inner { limits, metrics: None, state: Mutex::default() }))
    }

    /// Creates a semaphore with waits measured by namespace.
    pub fn measured(limits: SlotLimits, resource: SlotResource, metrics: &Metrics) -> Self {
        let metrics = Some((resource, metrics.clone()));
        Self(Arc::new(Inner { limits, metrics, state: Mutex::default() }))
    }

    /// Waits for units and acquires them.
    ///
    /// A weight beyond the limits counts as the maximum of a namespace.
    ///
    /// Dropping the future leaves the queue.
    pub async fn acquire(&self, namespace: &str, weight: u64) -> Permit {
        let weight = self.clamp(weight);
        let (sender, granted) = oneshot::channel();
        let since = Instant::now();
        let id = {
            let mut state = self.0.state.lock();
            let id = state.next_id;
            state.next_id += 1;
            state.waiters.push(namespace, Waiter { id, weight, since, granted: sender });
            state.grant(&self.0.limits, since);
            id
        };
        let mut pending = Pending { semaphore: self, namespace, id, weight, since, granted, is_over: false };
        if let Some(overflow) = self.0.limits.overflow {
            tokio::select! {
                biased;
                _ = &mut pending.granted => return pending.into_permit(),
                () = sleep_until(since + overflow.after) => {
                    self.0.state.lock().grant(&self.0.limits, Instant::now());
                }
            }
        }
        // The sender stays in the queue until it grants.
        let _ = (&mut pending.granted).await;
        pending.into_permit()
    }

    /// Acquires units if they are free and no waiter would be overtaken.
    pub fn try_acquire(&self, namespace: &str, weight: u64) -> Option<Permit> {
        let weight = self.clamp(weight);
        let mut state = self.0.state.lock();
        if state.is_overtaking(&self.0.limits, namespace) || !state.fits(&self.0.limits, namespace, weight) {
            return None;
        }
        state.take(namespace, weight);
        drop(state);
        Some(Permit { semaphore: self.clone(), namespace: namespace.to_owned(), weight, is_beyond: false })
    }

    /// Acquires units at once, beyond all limits if necessary.
    pub fn acquire_beyond_limits(&self, namespace: &str, weight: u64) -> Permit {
        let mut state = self.0.state.lock();
        state.take(namespace, weight);
        state.beyond += weight;
        drop(state);
        Permit { semaphore: self.clone(), namespace: namespace.to_owned(), weight, is_beyond: true }
    }

    /// Returns true if no units are held or awaited: a new semaphore is equivalent.
    pub fn is_idle(&self) -> bool {
        let state = self.0.state.lock();
        state.total == 0 && state.waiters.heads().next().is_none()
    }

    /// The number of held units.
    pub fn held(&self) -> u64 {
        self.0.state.lock().total
    }

    fn clamp(&self, weight: u64) -> u64 {
        let SlotLimits { total, per_namespace, .. } = self.0.limits;
        weight.min(total).min(per_namespace)
    }

    fn release(&self, permit: &Permit) {
        let mut state = self.0.state.lock();
        state.release_units(&permit.namespace, permit.weight);
        if permit.is_beyond {
            state.beyond -= permit.weight;
        }
        state.grant(&self.0.limits, Instant::now());
    }
}

impl State {
    fn held_by(&self, namespace: &str) -> u64 {
        self.by_namespace.get(namespace).copied().unwrap_or_default()
    }

    fn fits(&self, limits: &SlotLimits, namespace: &str, weight: u64) -> bool {
        self.total + weight <= limits.total && self.held_by(namespace) + weight <= limits.per_namespace
    }

    /// Returns true if a grant for a namespace would overtake a waiter.
    /// The waiter is of the same namespace, or of one that is below its maximum.
    fn is_overtaking(&self, limits: &SlotLimits, namespace: &str) -> bool {
        self.waiters.heads().any(|(other, waiter)| other == namespace || self.has_room(limits, other, waiter))
    }

    /// Returns true if a waiter gets its units once they are free.
    ///
    /// Otherwise its namespace must return some first.
    fn has_room(&self, limits: &SlotLimits, namespace: &str, waiter: &Waiter) -> bool {
        self.held_by(namespace) + waiter.weight <= limits.per_namespace
    }

    fn take(&mut self, namespace: &str, weight: u64) {
        self.total += weight;
        *self.by_namespace.entry(namespace.to_owned()).or_default() += weight;
    }

    fn release_units(&mut self, namespace: &str, weight: u64) {
        self.total -= weight;
        if let Some(held) = self.by_namespace.get_mut(namespace) {
            *held -= weight;
            if *held == 0 {
                self.by_namespace.remove(namespace);
            }
        }
    }

    /// Grants units to waiters in turn for as long as they are free.
    fn grant(&mut self, limits: &SlotLimits, now: Instant) {
        while let Some(namespace) = self.next(limits, now) {
            let Some(waiter) = self.waiters.pop(&namespace) else { return };
            // A receiver that was dropped has already left the queue, so this one exists.
            if waiter.granted.send(()).is_ok() {
                self.take(&namespace, waiter.weight);
            }
        }
    }

    /// The namespace whose first waiter gets its units now.
    fn next(&self, limits: &SlotLimits, now: Instant) -> Option<String> {
        // The first waiter below its namespace's maximum keeps its turn until its units are free.
        let in_turn =
            self.waiters.heads().find(|(namespace, waiter)| self.has_room(limits, namespace, waiter));
        if let Some((namespace, waiter)) = in_turn
            && self.fits(limits, namespace, waiter.weight)
        {
            return Some(namespace.to_owned());
        }
        let Overflow { after, units } = limits.overflow?;
        let is_starved = |namespace: &str, waiter: &Waiter| {
            self.held_by(namespace) == 0
                && now.saturating_duration_since(waiter.since) >= after
                && self.total - self.beyond + waiter.weight <= limits.total.saturating_add(units)
        };
        let starved = self.waiters.heads().find(|(namespace, waiter)| is_starved(namespace, waiter));
        starved.map(|(namespace, _)| namespace.to_owned())
    }
}

impl Pending<'_> {
    fn into_permit(mut self) -> Permit {
        self.is_over = true;
        if let Some((resource, metrics)) = &self.semaphore.0.metrics {
            metrics.slot_waited(*resource, self.namespace, self.since.elapsed());
        }
        Permit {
            semaphore: self.semaphore.clone(),
            namespace: self.namespace.to_owned(),
            weight: self.weight,
            is_beyond: false,
        }
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.semaphore.0.state.lock();
        // Under the lock, so that no grant comes in between.
        if self.granted.try_recv().is_ok() {
            state.release_units(self.namespace, self.weight);
        } else {
            state.waiters.remove(self.namespace, |waiter| waiter.id == self.id);
        }
        state.grant(&self.semaphore.0.limits, Instant::now());
    }
}

impl Permit {
    /// The namespace that holds the units.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.semaphore.release(self);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::BoxFuture;

    use super::*;

    fn slots(total: u64, per_namespace: u64) -> FairSemaphore {
        FairSemaphore::new(SlotLimits { total, per_namespace, overflow: None })
    }

    fn waiting<'s>(semaphore: &'s FairSemaphore, namespace: &'s str, weight: u64) -> BoxFuture<'s, Permit> {
        let mut wait = semaphore.acquire(namespace, weight).boxed();
        assert!((&mut wait).now_or_never().is_none(), "{namespace} did not have to wait");
        wait
    }

    #[tokio::test]
    async fn free_units_are_granted_in_turns() {
        let semaphore = slots(1, 1);
        let first = semaphore.acquire("a", 1).await;
        let mut of_a = [waiting(&semaphore, "a", 1), waiting(&semaphore, "a", 1)];
        let mut of_b = waiting(&semaphore, "b", 1);
        drop(first);
        let second = (&mut of_a[0]).now_or_never().expect("a waited first");
        assert!((&mut of_a[1]).now_or_never().is_none());
        drop(second);
        let third = (&mut of_b).now_or_never().expect("it is b's turn");
        assert_eq!(third.namespace(), "b");
        drop(third);
        assert!((&mut of_a[1]).now_or_never().is_some());
        assert!(semaphore.is_idle());
    }

    #[tokio::test]
    async fn a_namespace_at_its_maximum_is_passed_over() {
        let semaphore = slots(4, 2);
        let _held = semaphore.acquire("a", 2).await;
        let _waits = waiting(&semaphore, "a", 1);
        assert!(semaphore.acquire("b", 2).now_or_never().is_some());
    }

    /// One waiter at its maximum used to cause second requests for large responses of others.
    #[tokio::test]
    async fn a_waiter_that_does_not_fit_does_not_block_other_namespaces() {
        let semaphore = slots(4, 2);
        let held = semaphore.acquire("a", 1).await;
        let _waits = waiting(&semaphore, "a", 2);
        assert!(semaphore.try_acquire("b", 2).is_some());
        assert!(semaphore.try_acquire("a", 1).is_none(), "it overtook a waiter of its own namespace");
        drop(held);
    }

    #[tokio::test]
    async fn a_large_request_is_not_starved_by_small_ones() {
        let semaphore = slots(4, 4);
        let small = semaphore.acquire("a", 1).await;
        let mut large = waiting(&semaphore, "b", 4);
        let mut late = waiting(&semaphore, "c", 1);
        assert!(semaphore.try_acquire("d", 1).is_none());
        drop(small);
        let large = (&mut large).now_or_never().expect("everything is free");
        assert!((&mut late).now_or_never().is_none());
        drop(large);
        assert!((&mut late).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_weight_beyond_the_limits_takes_the_maximum_of_a_namespace() {
        let semaphore = slots(4, 2);
        let permit = semaphore.acquire("a", 100).await;
        assert_eq!(semaphore.held(), 2);
        drop(permit);
        assert_eq!(semaphore.held(), 0);
    }

    #[tokio::test]
    async fn a_cancelled_wait_leaves_the_queue_and_returns_what_it_was_granted() {
        let semaphore = slots(1, 1);
        let held = semaphore.acquire("a", 1).await;
        let (cancelled, granted) = (waiting(&semaphore, "b", 1), waiting(&semaphore, "c", 1));
        drop(cancelled);
        drop(held);
        // Granted, and dropped before it was polled again.
        drop(granted);
        assert!(semaphore.is_idle());
        assert!(semaphore.try_acquire("d", 1).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_without_a_slot_gets_one_beyond_the_limit_after_two_seconds() {
        let semaphore = FairSemaphore::new(SlotLimits::shared(1));
        let _held = semaphore.acquire("a", 1).await;
        let begin = Instant::now();
        let beyond = semaphore.acquire("b", 1).await;
        assert_eq!(begin.elapsed(), SlotLimits::OVERFLOW_AFTER);
        // A namespace with a slot waits for a free one, and so does the third namespace: twice the limit is the
        // maximum.
        let mut more_of_b = waiting(&semaphore, "b", 1);
        let mut of_c = waiting(&semaphore, "c", 1);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!((&mut more_of_b).now_or_never().is_none() && (&mut of_c).now_or_never().is_none());
        drop(beyond);
        let more_of_b = (&mut more_of_b).now_or_never().expect("b holds no slot and came before c");
        assert!((&mut of_c).now_or_never().is_none());
        drop(more_of_b);
        assert!((&mut of_c).now_or_never().is_some());
    }

    #[tokio::test]
    async fn units_beyond_all_limits_count_like_others() {
        let semaphore = slots(1, 1);
        let _held = semaphore.acquire("a", 1).await;
        let beyond = semaphore.acquire_beyond_limits("b", 1);
        assert_eq!(semaphore.held(), 2);
        drop(beyond);
        assert_eq!(semaphore.held(), 1);
    }
}
