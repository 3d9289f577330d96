//! Which object is due when.

use std::collections::{BTreeSet, HashMap};
use std::future::pending;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep_until;

use crate::backoff::Backoff;
use crate::objects::ObjectName;
use crate::tenancy::{Rate, TokenBucket};

/// How long changes are gathered before what they concern is carried out. Many policies often change at once.
pub(super) const GATHERING: Duration = Duration::from_millis(50);

/// How often one object is reconciled, whatever wakes it.
const RATE: Rate = Rate { burst: 10, refill: Duration::from_secs(1) };

/// From how many objects on those are forgotten that were not reconciled lately.
const FEW: usize = 64;

/// What is to become of an automation after a look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is due again after this time.
    After(Duration),
    /// It failed, and is due again soon, and ever later the more often it fails.
    Retry,
    /// It is due when something changes.
    Wait,
}

/// A message to the dispatcher of the queue.
#[derive(Debug)]
pub(super) enum Signal {
    /// An automation is due after this time.
    Wake(ObjectName, Duration),
    /// An automation was deleted.
    Forget(ObjectName),
    /// An automation was reconciled.
    Done(ObjectName, Verdict),
}

/// The objects of a kind and when they are due. Time comes in as an argument.
///
/// An object is reconciled ten times in a row, and then once a second, also if it is deleted and created again.
#[derive(Debug)]
pub(super) struct Queue {
    backoff: Backoff,
    /// How often those were reconciled lately that were.
    recent: Recent,
    entries: HashMap<ObjectName, Entry>,
    /// Those that wait for their time, the next one first.
    waiting: BTreeSet<(Instant, ObjectName)>,
}

#[derive(Debug, Default)]
struct Entry {
    due: Option<Due>,
    /// The time by which it stands among those that wait.
    place: Option<Instant>,
    is_running: bool,
    /// Whether it went while it was carried out, so that how that ends says nothing of one that came after it.
    has_gone: bool,
    failures: u32,
}

impl Entry {
    /// What it waits for; one that is being carried out waits for nothing.
    fn awaited(&self) -> Option<Due> {
        self.due.filter(|_| !self.is_running)
    }
}

#[derive(Clone, Copy, Debug)]
struct Due {
    at: Instant,
    /// The interval whose end it is, where nothing but that makes it due.
    interval: Option<Duration>,
}

/// An automation that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DueNow {
    pub(super) name: ObjectName,
    /// The interval whose end it is, where nothing but that makes it due.
    pub(super) interval: Option<Duration>,
}

impl Queue {
    pub(super) fn new(backoff: Backoff) -> Self {
        let (entries, waiting) = (HashMap::new(), BTreeSet::new());
        Self { backoff, recent: Recent::default(), entries, waiting }
    }

    /// Makes an automation due at a time, if it is not due before. One that is being carried out is due once more.
    pub(super) fn wake(&mut self, name: &ObjectName, at: Instant) {
        self.change(name, |entry| {
            if entry.due.is_none_or(|due| at <= due.at) {
                entry.due = Some(Due { at, interval: None });
            }
        });
    }

    /// Forgets an automation. A run that is under way ends by itself, and another of the same name waits for that.
    pub(super) fn forget(&mut self, name: &ObjectName) {
        self.change(name, |entry| {
            let is_running = entry.is_running;
            let place = entry.place;
            *entry = Entry { is_running, has_gone: is_running, place, ..Entry::default() };
        });
    }

    /// Takes those that are due, which count as being carried out from now on.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<DueNow> {
        let due = self.waiting.iter().take_while(|(at, _)| *at <= now);
        let mut names: Vec<ObjectName> = due.map(|(_, name)| name.clone()).collect();
        names.sort();
        names.into_iter().filter_map(|name| self.take(name, now)).collect()
    }

    /// Takes those of `names` along that are due in a moment. If what is due now is so by its `interval` alone, others of
    /// whom that will be true before long come along too: within nine tenths of their interval and of that one. So those
    /// that have the same way to go end up going together.
    pub(super) fn take_along(
        &mut self,
        now: Instant,
        interval: Option<Duration>,
        names: impl IntoIterator<Item = ObjectName>,
    ) -> Vec<DueNow> {
        let is_near = |due: Due| {
            let soon = match (due.interval, interval) {
                (None, _) => GATHERING,
                (Some(own), Some(interval)) => own.min(interval).mul_f64(0.9),
                (Some(_), None) => return false,
            };
            due.at < now + soon
        };
        let may = |recent: &Recent, name: &ObjectName| recent.next(name).is_none_or(|next| next <= now);
        let mut taken = Vec::new();
        for name in names {
            let is_due = self.entries.get(&name).and_then(Entry::awaited).is_some_and(is_near);
            if is_due && may(&self.recent, &name) {
                taken.extend(self.take(name, now));
            }
        }
        taken
    }

    /// Takes one that waits.
    fn take(&mut self, name: ObjectName, now: Instant) -> Option<DueNow> {
        let due = self.change(&name, |entry| {
            let due = entry.awaited()?;
            (entry.due, entry.is_running) = (None, true);
            Some(due)
        });
        let Due { interval, .. } = due?;
        self.recent.add(&name, now);
        Some(DueNow { name, interval })
    }

    /// Takes note that an automation has been carried out.
    pub(super) fn done(&mut self, name: &ObjectName, verdict: Verdict, now: Instant) {
        let backoff = self.backoff;
        self.change(name, |entry| {
            if !std::mem::take(&mut entry.is_running) {
                return;
            }
            let verdict = if std::mem::take(&mut entry.has_gone) { Verdict::Wait } else { verdict };
            let due = match verdict {
                Verdict::After(interval) => Some(Due { at: now + interval, interval: Some(interval) }),
                Verdict::Retry => {
                    Some(Due { at: now + backoff.after(entry.failures.saturating_add(1)), interval: None })
                }
                Verdict::Wait => None,
            };
            entry.failures = if verdict == Verdict::Retry { entry.failures.saturating_add(1) } else { 0 };
            // What came in while it was carried out counts if it is the earlier.
            let is_earlier = |due: &Due| entry.due.is_none_or(|woken| due.at < woken.at);
            entry.due = due.filter(is_earlier).or(entry.due);
        });
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.waiting.first().map(|(at, _)| *at)
    }

    /// Changes what is known of an automation, and its place among those that wait. Nothing is kept of one that neither
    /// waits nor is carried out.
    fn change<T>(&mut self, name: &ObjectName, change: impl FnOnce(&mut Entry) -> T) -> T {
        let mut entry = self.entries.remove(name).unwrap_or_default();
        let changed = change(&mut entry);
        let next = self.recent.next(name);
        let place = entry.awaited().map(|due| next.map_or(due.at, |next| next.max(due.at)));
        if let Some(before) = std::mem::replace(&mut entry.place, place) {
            self.waiting.remove(&(before, name.clone()));
        }
        if let Some(place) = place {
            self.waiting.insert((place, name.clone()));
        }
        if entry.is_running || entry.due.is_some() {
            self.entries.insert(name.clone(), entry);
        }
        changed
    }
}

/// How often objects were reconciled lately.
#[derive(Debug, Default)]
struct Recent {
    buckets: HashMap<ObjectName, TokenBucket>,
    /// The number of objects at which those are forgotten that were not reconciled lately.
    many: usize,
}

impl Recent {
    /// When an object may be reconciled next; `None`: at any time.
    fn next(&self, name: &ObjectName) -> Option<Instant> {
        self.buckets.get(name)?.next(RATE)
    }

    fn add(&mut self, name: &ObjectName, now: Instant) {
        if self.buckets.len() >= self.many {
            self.buckets.retain(|_, bucket| !bucket.is_full(now));
            // So that forgetting takes no more time than adding.
            self.many = FEW.max(2 * self.buckets.len());
        }
        self.buckets.entry(name.clone()).or_default().take(RATE, now);
    }
}

/// Waits until something is due or there is word, and gives all word that there is: it is settled before anything is
/// started. `None` where nobody is left who could say something.
pub(super) async fn hear<S>(inbox: &mut UnboundedReceiver<S>, next: Option<Instant>) -> Option<Vec<S>> {
    let mut signals = Vec::new();
    tokio::select! {
        () = until(next) => {}
        signal = inbox.recv() => signals.push(signal?),
    }
    while let Ok(signal) = inbox.try_recv() {
        signals.push(signal);
    }
    Some(signals)
}

/// Waits for the moment at which something is due; for ever where nothing is.
async fn until(next: Option<Instant>) {
    match next {
        Some(next) => sleep_until(next.into()).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> ObjectName {
        ObjectName { namespace: "n".to_owned(), name: name.to_owned() }
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn queue() -> Queue {
        Queue::new(Backoff { first: seconds(1), longest: seconds(10) })
    }

    fn names(due: &[DueNow]) -> Vec<&str> {
        due.iter().map(|due| due.name.name.as_str()).collect()
    }

    #[test]
    fn one_is_due_at_its_time_and_never_twice_at_once() {
        let (mut queue, start) = (queue(), Instant::now());
        queue.wake(&name("a"), start + seconds(1));
        queue.wake(&name("a"), start + seconds(5));
        queue.wake(&name("b"), start);
        assert_eq!(names(&queue.take_due(start)), ["b"]);
        assert_eq!(queue.next(), Some(start + seconds(1)));
        assert_eq!(names(&queue.take_due(start + seconds(1))), ["a"]);
        // While it is carried out, something changes.
        queue.wake(&name("a"), start + seconds(2));
        assert!(queue.take_due(start + seconds(9)).is_empty());
        assert_eq!(queue.next(), None);
        queue.done(&name("a"), Verdict::After(seconds(60)), start + seconds(9));
        assert_eq!(names(&queue.take_due(start + seconds(9))), ["a"]);
        queue.done(&name("a"), Verdict::After(seconds(60)), start + seconds(10));
        assert_eq!(queue.next(), Some(start + seconds(70)));
        let due = queue.take_due(start + seconds(70));
        assert_eq!(due, [DueNow { name: name("a"), interval: Some(seconds(60)) }]);
        queue.done(&name("a"), Verdict::Wait, start + seconds(70));
        assert_eq!(queue.next(), None);
        // One that has gone stays gone.
        queue.forget(&name("b"));
        queue.done(&name("b"), Verdict::Retry, start);
        assert_eq!(queue.next(), None);
    }

    #[test]
    fn one_that_comes_back_while_it_is_carried_out_waits_for_the_end_of_that() {
        let (mut queue, start) = (queue(), Instant::now());
        queue.wake(&name("a"), start);
        queue.take_due(start);
        queue.forget(&name("a"));
        queue.wake(&name("a"), start + seconds(1));
        assert!(queue.take_due(start + seconds(2)).is_empty());
        // How the run of the one before ends does not put the new one off.
        queue.done(&name("a"), Verdict::Retry, start + seconds(2));
        assert_eq!(names(&queue.take_due(start + seconds(2))), ["a"]);
        queue.done(&name("a"), Verdict::Retry, start + seconds(2));
        assert_eq!(queue.next(), Some(start + seconds(3)));
    }

    #[test]
    fn nothing_is_kept_of_those_who_went_or_wait_for_a_change() {
        let (mut queue, start) = (queue(), Instant::now());
        for (one, has_gone) in [("stalled", false), ("gone", true)] {
            queue.wake(&name(one), start);
            queue.take_due(start);
            if has_gone {
                queue.forget(&name(one));
            }
            queue.done(&name(one), if has_gone { Verdict::After(seconds(60)) } else { Verdict::Wait }, start);
        }
        assert!(queue.entries.is_empty() && queue.waiting.is_empty(), "{queue:?}");
    }

    #[test]
    fn waits_after_failures_double_up_to_the_longest() {
        let (mut queue, start) = (queue(), Instant::now());
        for wait in [1, 2, 4, 8, 10, 10] {
            queue.wake(&name("a"), start);
            queue.take_due(start);
            queue.done(&name("a"), Verdict::Retry, start);
            assert_eq!(queue.next(), Some(start + seconds(wait)));
        }
        queue.take_due(start + seconds(10));
        queue.done(&name("a"), Verdict::Wait, start + seconds(10));
        let later = start + seconds(60);
        queue.wake(&name("a"), later);
        queue.take_due(later);
        queue.done(&name("a"), Verdict::Retry, later);
        assert_eq!(queue.next(), Some(later + seconds(1)));
    }

    /// Reconciles an object whenever it is due until `end`, as `after` says, and gives the milliseconds of each time.
    fn reconciled(
        queue: &mut Queue,
        start: Instant,
        end: Instant,
        after: impl Fn(&mut Queue, Instant),
    ) -> Vec<u128> {
        let mut times = Vec::new();
        while let Some(next) = queue.next().filter(|next| *next <= end) {
            let taken = queue.take_due(next).len() + queue.take_along(next, None, [name("a")]).len();
            assert_eq!(taken, 1);
            times.push(next.duration_since(start).as_millis());
            after(queue, next);
        }
        times
    }

    #[test]
    fn whatever_wakes_an_object_it_is_reconciled_ten_times_and_then_once_a_second() {
        let start = Instant::now() + seconds(1000);
        let end = start + Duration::from_millis(4500);
        let expected = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1000, 2000, 3000, 4000];
        let ways: [fn(&mut Queue, Instant); 5] = [
            // Its annotations change while it is reconciled.
            |queue, now| {
                queue.wake(&name("a"), now);
                queue.done(&name("a"), Verdict::Wait, now);
            },
            // Afterwards.
            |queue, now| {
                queue.done(&name("a"), Verdict::After(seconds(3600)), now);
                queue.wake(&name("a"), now);
            },
            // It asks for another run by itself: a short interval, or a run that is given up.
            |queue, now| queue.done(&name("a"), Verdict::After(Duration::ZERO), now),
            // It is deleted and created again.
            |queue, now| {
                queue.done(&name("a"), Verdict::Wait, now);
                queue.forget(&name("a"));
                queue.wake(&name("a"), now);
            },
            |queue, now| {
                queue.forget(&name("a"));
                queue.wake(&name("a"), now);
                queue.done(&name("a"), Verdict::Retry, now);
            },
        ];
        for (number, way) in ways.into_iter().enumerate() {
            let mut queue = queue();
            queue.wake(&name("a"), start);
            assert_eq!(reconciled(&mut queue, start, end, way), expected, "way {number}");
            // Another object is none the worse for it, and after a pause there may be ten again.
            queue.wake(&name("b"), end);
            assert_eq!(names(&queue.take_due(end)), ["b"]);
        }
    }

    #[test]
    fn a_bounded_number_of_objects_is_remembered_for_their_rate() {
        let (mut queue, start) = (queue(), Instant::now());
        for number in 0..10_000 {
            let now = start + Duration::from_millis(100 * number);
            queue.wake(&name(&number.to_string()), now);
            assert_eq!(queue.take_due(now).len(), 1);
            queue.done(&name(&number.to_string()), Verdict::Wait, now);
        }
        // Each counts for a second.
        assert!(queue.recent.buckets.len() <= FEW, "{}", queue.recent.buckets.len());
    }

    #[test]
    fn those_of_one_repository_end_up_going_together() {
        let (mut queue, start) = (queue(), Instant::now());
        // Three that were made at different times, one that rests longer, one of another repository, one that failed.
        for (one, offset, interval) in
            [("a", 0, 60), ("b", 20, 60), ("c", 50, 60), ("d", 30, 300), ("x", 10, 60), ("late", 56, 60)]
        {
            queue.wake(&name(one), start);
            queue.take_due(start);
            queue.done(&name(one), Verdict::After(seconds(interval)), start + seconds(offset));
        }
        queue.wake(&name("failed"), start);
        queue.take_due(start);
        queue.done(&name("failed"), Verdict::Retry, start + seconds(60));
        let now = start + seconds(60);
        let due = queue.take_due(now);
        assert_eq!(names(&due), ["a"]);
        let own = || ["a", "b", "c", "changed", "d", "failed", "late", "later"].map(name);
        let along = queue.take_along(now, Some(seconds(60)), own());
        // One that has only just been carried out is left for the next time.
        assert_eq!(names(&along), ["b", "c"]);
        // What changed a moment later than something else goes with it, and nobody who rests.
        queue.wake(&name("changed"), now + GATHERING / 2);
        queue.wake(&name("later"), now + GATHERING * 2);
        assert_eq!(names(&queue.take_along(now, None, own())), ["changed"]);
    }

    #[test]
    fn however_many_wait_each_is_taken_once_and_in_time() {
        let (mut queue, start) = (queue(), Instant::now());
        let all: Vec<ObjectName> = (0..20_000).map(|number| name(&format!("{number:05}"))).collect();
        for (number, name) in all.iter().enumerate() {
            queue.wake(name, start + Duration::from_millis(number as u64));
        }
        let mut taken = Vec::new();
        while let Some(next) = queue.next() {
            let due = queue.take_due(next);
            assert!(!due.is_empty());
            for DueNow { name, .. } in due {
                queue.done(&name, Verdict::Wait, next);
                taken.push(name);
            }
        }
        assert_eq!(taken, all);
    }
}
