//! The work queue of a kind, with debouncing, backoff and a rate limit.
//!
//! It holds the time at which each object is due.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::future::pending;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep_until;

use crate::backoff::Backoff;
use crate::objects::ObjectName;
use crate::reconcile::action::Action;
use crate::tenancy::{Rate, TokenBucket};

/// The time for which changes are collected.
///
/// The objects that they make due are then reconciled together. Many policies often change at once.
pub(crate) const DEBOUNCE: Duration = Duration::from_millis(50);

/// The rate limit of one object, of most kinds.
///
/// `burst` is the number of reconciles in a row, and `refill` the time until one more is allowed.
pub(crate) const RATE: Rate = Rate { burst: 10, refill: Duration::from_secs(1) };

/// The number of objects from which on the rate limits of idle ones are removed.
const MIN_CLEANUP_AT: usize = 64;

/// A message to the dispatcher of a queue.
#[derive(Debug)]
pub(super) enum Message {
    /// An object is due after this time.
    Enqueue(ObjectName, Duration),
    /// An object was deleted.
    Forget(ObjectName),
    /// An object was reconciled.
    Done(ObjectName, Action),
}

/// The objects of a kind and the times at which they are due.
///
/// The current time is an argument. An object is reconciled at most once at a time, and not faster than the rate of
/// its kind, even if it is deleted and created again.
#[derive(Debug)]
pub(crate) struct Queue {
    backoff: Backoff,
    limits: RateLimits,
    entries: HashMap<ObjectName, Entry>,
    /// The objects that wait for their time, the next one first.
    waiting: BTreeSet<(Instant, ObjectName)>,
}

#[derive(Debug, Default)]
struct Entry {
    due: Option<Due>,
    /// The time by which the object is ordered in `waiting`.
    position: Option<Instant>,
    is_in_flight: bool,
    /// True if the object was deleted while it was reconciled.
    ///
    /// The result is not that of a new object of its name.
    is_deleted: bool,
    failures: u32,
}

impl Entry {
    /// Returns the time at which the object is due, unless it is in flight.
    fn awaited(&self) -> Option<Due> {
        self.due.filter(|_| !self.is_in_flight)
    }
}

#[derive(Clone, Copy, Debug)]
struct Due {
    at: Instant,
    /// The interval, if only its end makes the object due.
    interval: Option<Duration>,
}

/// An object that is due now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DueNow {
    pub(crate) name: ObjectName,
    /// The interval, if only its end makes the object due.
    pub(crate) interval: Option<Duration>,
}

impl Queue {
    pub(super) fn new(backoff: Backoff, rate: Rate) -> Self {
        let (entries, waiting) = (HashMap::new(), BTreeSet::new());
        Self { backoff, limits: RateLimits::new(rate), entries, waiting }
    }

    /// Makes an object due at a time, unless it is due earlier.
    ///
    /// An object in flight is due once more after its reconcile.
    pub(super) fn enqueue(&mut self, name: &ObjectName, at: Instant) {
        self.change(name, |entry| {
            if entry.due.is_none_or(|due| at <= due.at) {
                entry.due = Some(Due { at, interval: None });
            }
        });
    }

    /// Forgets a deleted object.
    ///
    /// If a new object of its name is due, it waits until the old one's reconcile has ended.
    pub(super) fn forget(&mut self, name: &ObjectName) {
        self.change(name, |entry| {
            let Entry { is_in_flight, position, .. } = *entry;
            *entry = Entry { is_in_flight, is_deleted: is_in_flight, position, ..Entry::default() };
        });
    }

    /// Takes the objects that are due, which are in flight from now on.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<DueNow> {
        let due = self.waiting.iter().take_while(|(at, _)| *at <= now);
        let mut names: Vec<ObjectName> = due.map(|(_, name)| name.clone()).collect();
        names.sort();
        names.into_iter().filter_map(|name| self.take(name, now)).collect()
    }

    /// Takes the objects among `names` that are batched with an object that is due now.
    ///
    /// These are the objects that are due within the debounce time. If the object is due only because its `interval` has
    /// ended, the objects whose interval ends soon are taken too: within nine tenths of their interval and of that one. So
    /// the objects of one batch key converge to the same time.
    pub(crate) fn take_batched(
        &mut self,
        now: Instant,
        interval: Option<Duration>,
        names: impl IntoIterator<Item = ObjectName>,
    ) -> Vec<DueNow> {
        self.take_if(now, names, |due| {
            let soon = match (due.interval, interval) {
                (None, _) => DEBOUNCE,
                (Some(own), Some(interval)) => own.min(interval).mul_f64(0.9),
                (Some(_), None) => return false,
            };
            due.at < now + soon
        })
    }

    /// Takes the objects among `names` that wait, whenever they are due.
    ///
    /// These are objects that have no result of their own without the others.
    pub(crate) fn take_waiting(
        &mut self,
        now: Instant,
        names: impl IntoIterator<Item = ObjectName>,
    ) -> Vec<DueNow> {
        self.take_if(now, names, |_| true)
    }

    fn take_if(
        &mut self,
        now: Instant,
        names: impl IntoIterator<Item = ObjectName>,
        is_taken: impl Fn(Due) -> bool,
    ) -> Vec<DueNow> {
        let mut taken = Vec::new();
        for name in names {
            let is_due = self.entries.get(&name).and_then(Entry::awaited).is_some_and(&is_taken);
            if is_due && self.limits.next(&name).is_none_or(|next| next <= now) {
                taken.extend(self.take(name, now));
            }
        }
        taken
    }

    /// Takes an object that waits.
    fn take(&mut self, name: ObjectName, now: Instant) -> Option<DueNow> {
        let due = self.change(&name, |entry| {
            let due = entry.awaited()?;
            (entry.due, entry.is_in_flight) = (None, true);
            Some(due)
        });
        let Due { interval, .. } = due?;
        self.limits.add(&name, now);
        Some(DueNow { name, interval })
    }

    /// Ends the reconcile of an object, and requeues it as `action` demands.
    pub(super) fn done(&mut self, name: &ObjectName, action: Action, now: Instant) {
        let backoff = self.backoff;
        self.change(name, |entry| {
            if !std::mem::take(&mut entry.is_in_flight) {
                return;
            }
            let action = if std::mem::take(&mut entry.is_deleted) { Action::AwaitChange } else { action };
            let due = match action {
                Action::RequeueAfter(interval) => Some(Due { at: now + interval, interval: Some(interval) }),
                Action::Retry => {
                    Some(Due { at: now + backoff.after(entry.failures.saturating_add(1)), interval: None })
                }
                Action::AwaitChange => None,
            };
            entry.failures = if action == Action::Retry { entry.failures.saturating_add(1) } else { 0 };
            // A change that came during the reconcile counts if it is earlier.
            let is_earlier = |due: &Due| entry.due.is_none_or(|changed| due.at < changed.at);
            entry.due = due.filter(is_earlier).or(entry.due);
        });
    }

    /// Returns the time at which the next object is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.waiting.first().map(|(at, _)| *at)
    }

    /// Changes the entry of an object, and its position in `waiting`.
    ///
    /// An entry that neither waits nor is in flight is removed.
    fn change<T>(&mut self, name: &ObjectName, change: impl FnOnce(&mut Entry) -> T) -> T {
        let mut entry = self.entries.remove(name).unwrap_or_default();
        let changed = change(&mut entry);
        let next = self.limits.next(name);
        let position = entry.awaited().map(|due| next.map_or(due.at, |next| next.max(due.at)));
        if let Some(before) = std::mem::replace(&mut entry.position, position) {
            self.waiting.remove(&(before, name.clone()));
        }
        if let Some(position) = position {
            self.waiting.insert((position, name.clone()));
        }
        if entry.is_in_flight || entry.due.is_some() {
            self.entries.insert(name.clone(), entry);
        }
        changed
    }
}

/// The rate limits of the objects that were reconciled lately.
#[derive(Debug)]
struct RateLimits {
    rate: Rate,
    buckets: HashMap<ObjectName, TokenBucket>,
    /// The number of buckets at which full ones are removed.
    cleanup_at: usize,
}

impl RateLimits {
    fn new(rate: Rate) -> Self {
        Self { rate, buckets: HashMap::new(), cleanup_at: 0 }
    }

    /// Returns the time from which on an object may be reconciled; `None` at any time.
    fn next(&self, name: &ObjectName) -> Option<Instant> {
        self.buckets.get(name)?.next(self.rate)
    }

    fn add(&mut self, name: &ObjectName, now: Instant) {
        if self.buckets.len() >= self.cleanup_at {
            self.buckets.retain(|_, bucket| !bucket.is_full(now));
            // So the removal takes no more time than the insertions.
            self.cleanup_at = MIN_CLEANUP_AT.max(2 * self.buckets.len());
        }
        self.buckets.entry(name.clone()).or_default().take(self.rate, now);
    }
}

/// Waits until an object is due or a message arrives.
///
/// Returns all messages that are there. They are handled before anything is started. `None` if no sender is
/// left.
pub(super) async fn receive(
    inbox: &mut UnboundedReceiver<Message>,
    next: Option<Instant>,
) -> Option<Vec<Message>> {
    let mut messages = Vec::new();
    tokio::select! {
        () = until(next) => {}
        message = inbox.recv() => messages.push(message?),
    }
    while let Ok(message) = inbox.try_recv() {
        messages.push(message);
    }
    Some(messages)
}

/// Waits until a time; forever if there is none.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time.into()).await,
        None => pending().await,
    }
}
