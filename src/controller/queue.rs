//! Which automation is due when.

use std::collections::HashMap;
use std::future::pending;
use std::time::{Duration, Instant};

use tokio::time::sleep_until;

use crate::objects::ObjectName;

/// How long changes are gathered before what they concern is carried out. Many policies often change at once.
pub(super) const GATHERING: Duration = Duration::from_millis(50);

/// How the waits after failures grow.
#[derive(Clone, Copy, Debug)]
pub struct RetryDelays {
    /// The wait after the first failure; it doubles with each that follows.
    pub shortest: Duration,
    /// No wait is longer.
    pub longest: Duration,
}

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

/// The automations and when they are due. Time comes in as an argument.
#[derive(Debug)]
pub(super) struct Queue {
    delays: RetryDelays,
    entries: HashMap<ObjectName, Entry>,
}

#[derive(Debug, Default)]
struct Entry {
    due: Option<Due>,
    is_running: bool,
    /// Whether it went while it was carried out, so that how that ends says nothing of one that came after it.
    has_gone: bool,
    failures: u32,
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
    pub(super) fn new(delays: RetryDelays) -> Self {
        Self { delays, entries: HashMap::new() }
    }

    /// Makes an automation due at a time, if it is not due before. One that is being carried out is due once more.
    pub(super) fn wake(&mut self, name: ObjectName, at: Instant) {
        let entry = self.entries.entry(name).or_default();
        if entry.due.is_none_or(|due| at <= due.at) {
            entry.due = Some(Due { at, interval: None });
        }
    }

    /// Forgets an automation. A run that is under way ends by itself, and another of the same name waits for that.
    pub(super) fn forget(&mut self, name: &ObjectName) {
        match self.entries.get_mut(name) {
            Some(entry) if entry.is_running => {
                *entry = Entry { is_running: true, has_gone: true, ..Entry::default() };
            }
            _ => {
                self.entries.remove(name);
            }
        }
    }

    /// Takes those that are due, which count as being carried out from now on.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<DueNow> {
        self.take(|_, due| due.at <= now)
    }

    /// Takes those along that are `wanted` and due in a moment. If the one that is due now is so by its `interval` alone,
    /// others of whom that will be true before long come along too: within nine tenths of their interval and of that
    /// one. So those that have the same way to go end up going together.
    pub(super) fn take_along(
        &mut self,
        now: Instant,
        interval: Option<Duration>,
        wanted: impl Fn(&ObjectName) -> bool,
    ) -> Vec<DueNow> {
        self.take(|name, due| {
            let soon = match (due.interval, interval) {
                (None, _) => GATHERING,
                (Some(own), Some(interval)) => own.min(interval).mul_f64(0.9),
                (Some(_), None) => return false,
            };
            due.at < now + soon && wanted(name)
        })
    }

    fn take(&mut self, is_taken: impl Fn(&ObjectName, &Due) -> bool) -> Vec<DueNow> {
        let mut taken = Vec::new();
        for (name, entry) in self.entries.iter_mut().filter(|(_, entry)| !entry.is_running) {
            if let Some(due) = entry.due.take_if(|due| is_taken(name, due)) {
                entry.is_running = true;
                taken.push(DueNow { name: name.clone(), interval: due.interval });
            }
        }
        taken.sort_by(|one, other| one.name.cmp(&other.name));
        taken
    }

    /// Takes note that an automation has been carried out.
    pub(super) fn done(&mut self, name: &ObjectName, verdict: Verdict, now: Instant) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        entry.is_running = false;
        let verdict = if std::mem::take(&mut entry.has_gone) { Verdict::Wait } else { verdict };
        let due = match verdict {
            Verdict::After(interval) => Some(Due { at: now + interval, interval: Some(interval) }),
            Verdict::Retry => {
                let wait = self.delays.shortest.saturating_mul(2_u32.saturating_pow(entry.failures));
                Some(Due { at: now + wait.min(self.delays.longest), interval: None })
            }
            Verdict::Wait => None,
        };
        entry.failures = if verdict == Verdict::Retry { entry.failures.saturating_add(1) } else { 0 };
        // What came in while it was carried out counts if it is the earlier.
        let is_earlier = |due: &Due| entry.due.is_none_or(|woken| due.at < woken.at);
        entry.due = due.filter(is_earlier).or(entry.due);
        if entry.due.is_none() {
            self.entries.remove(name);
        }
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Instant> {
        let waiting = self.entries.values().filter(|entry| !entry.is_running);
        waiting.filter_map(|entry| entry.due).map(|due| due.at).min()
    }
}

/// Waits for the moment at which something is due; for ever where nothing is.
pub(super) async fn until(next: Option<Instant>) {
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
        Queue::new(RetryDelays { shortest: seconds(1), longest: seconds(10) })
    }

    fn names(due: &[DueNow]) -> Vec<&str> {
        due.iter().map(|due| due.name.name.as_str()).collect()
    }

    #[test]
    fn one_is_due_at_its_time_and_never_twice_at_once() {
        let (mut queue, start) = (queue(), Instant::now());
        queue.wake(name("a"), start + seconds(1));
        queue.wake(name("a"), start + seconds(5));
        queue.wake(name("b"), start);
        assert_eq!(names(&queue.take_due(start)), ["b"]);
        assert_eq!(queue.next(), Some(start + seconds(1)));
        assert_eq!(names(&queue.take_due(start + seconds(1))), ["a"]);
        // While it is carried out, something changes.
        queue.wake(name("a"), start + seconds(2));
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
        queue.wake(name("a"), start);
        queue.take_due(start);
        queue.forget(&name("a"));
        queue.wake(name("a"), start + seconds(1));
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
            queue.wake(name(one), start);
            queue.take_due(start);
            if has_gone {
                queue.forget(&name(one));
            }
            queue.done(&name(one), if has_gone { Verdict::After(seconds(60)) } else { Verdict::Wait }, start);
        }
        assert!(queue.entries.is_empty(), "{:?}", queue.entries);
    }

    #[test]
    fn waits_after_failures_double_up_to_the_longest() {
        let (mut queue, start) = (queue(), Instant::now());
        for wait in [1, 2, 4, 8, 10, 10] {
            queue.wake(name("a"), start);
            queue.take_due(start);
            queue.done(&name("a"), Verdict::Retry, start);
            assert_eq!(queue.next(), Some(start + seconds(wait)));
        }
        queue.take_due(start + seconds(10));
        queue.done(&name("a"), Verdict::Wait, start);
        queue.wake(name("a"), start);
        queue.take_due(start);
        queue.done(&name("a"), Verdict::Retry, start);
        assert_eq!(queue.next(), Some(start + seconds(1)));
    }

    #[test]
    fn those_of_one_repository_end_up_going_together() {
        let (mut queue, start) = (queue(), Instant::now());
        // Three that were made at different times, one that rests longer, one of another repository, one that failed.
        for (one, offset, interval) in
            [("a", 0, 60), ("b", 20, 60), ("c", 50, 60), ("d", 30, 300), ("x", 10, 60), ("late", 56, 60)]
        {
            queue.wake(name(one), start);
            queue.take_due(start);
            queue.done(&name(one), Verdict::After(seconds(interval)), start + seconds(offset));
        }
        queue.wake(name("failed"), start);
        queue.take_due(start);
        queue.done(&name("failed"), Verdict::Retry, start + seconds(60));
        let now = start + seconds(60);
        let due = queue.take_due(now);
        assert_eq!(names(&due), ["a"]);
        let along = queue.take_along(now, Some(seconds(60)), |name| name.name != "x");
        // One that has only just been carried out is left for the next time.
        assert_eq!(names(&along), ["b", "c"]);
        // What changed a moment later than something else goes with it, and nobody who rests.
        queue.wake(name("changed"), now + GATHERING / 2);
        queue.wake(name("later"), now + GATHERING * 2);
        assert_eq!(names(&queue.take_along(now, None, |_| true)), ["changed"]);
    }
}
