//! The schedule of repeated lists, as a value without a clock.
//!
//! The pods of workloads are listed by it. A list is due at once when it is added, then after 5 s, 10 s and so on up to
//! 60 s. Of the lists that are due, one of the namespace that has had none for longest is the next, so that the many
//! lists of one namespace do not delay those of the others. Schedules share a rate limiter of ten lists per second.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::backoff::Backoff;
use crate::tenancy::{Rate, TokenBucket};

/// The rate limit of all lists.
const RATE: Rate = Rate { burst: 10, refill: Duration::from_millis(100) };

/// The delay between two lists for one id.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(5), longest: Duration::from_secs(60) };

/// The rate limiter of the lists of several schedules; clones are the same limiter.
#[derive(Clone, Debug, Default)]
pub struct ListLimiter(Arc<Mutex<TokenBucket>>);

/// Repeated lists by id, with the times at which they are due.
///
/// `Q` is the query of a list. A new query begins with the shortest delay again.
#[derive(Debug)]
pub struct ListSchedule<Id, Q> {
    entries: HashMap<Id, Entry<Q>>,
    /// The ids that wait for their next list, by namespace.
    waiting: BTreeMap<String, Waiting<Id>>,
    /// The number of lists so far, which serves as time.
    turns: u64,
    limiter: ListLimiter,
}

/// The waiting ids of a namespace.
#[derive(Debug)]
struct Waiting<Id> {
    /// The next one first.
    ids: BTreeSet<(Instant, Id)>,
    /// The turn of its last list.
    turn: u64,
}

#[derive(Debug)]
struct Entry<Q> {
    namespace: String,
    query: Q,
    /// The number of lists with this query.
    lists: u32,
    /// The position in `waiting`; none while the list is in flight.
    next: Option<Instant>,
    /// The time of the last list.
    last: Option<Instant>,
}

impl<Id: Clone + Eq + Hash + Ord, Q: Clone + PartialEq> ListSchedule<Id, Q> {
    /// Creates an empty schedule.
    pub fn new(limiter: ListLimiter) -> Self {
        Self { entries: HashMap::new(), waiting: BTreeMap::new(), turns: 0, limiter }
    }

    /// Removes all ids.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.waiting.clear();
    }

    /// Adds an id of a namespace, or replaces its query.
    pub fn insert(&mut self, id: &Id, namespace: &str, query: Q, now: Instant) {
        match self.entries.get_mut(id) {
            Some(entry) if entry.query == query => {}
            Some(entry) => {
                (entry.query, entry.lists) = (query, 0);
                // The shortest delay holds across queries.
                let soonest = entry.last.map_or(now, |last| now.max(last + BACKOFF.first));
                if let Some(next) = entry.next.filter(|next| soonest < *next) {
                    entry.next = Some(soonest);
                    let namespace = entry.namespace.clone();
                    self.end_wait(&namespace, next, id);
                    self.wait(&namespace, soonest, id);
                }
            }
            None => {
                self.wait(namespace, now, id);
                let namespace = namespace.to_owned();
                let entry = Entry { namespace, query, lists: 0, next: Some(now), last: None };
                self.entries.insert(id.clone(), entry);
            }
        }
    }

    /// Removes an id.
    pub fn remove(&mut self, id: &Id) {
        let Some(entry) = self.entries.remove(id) else { return };
        if let Some(next) = entry.next {
            self.end_wait(&entry.namespace, next, id);
        }
    }

    /// Moves an id to another namespace.
    pub fn set_namespace(&mut self, id: &Id, namespace: &str) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        let before = std::mem::replace(&mut entry.namespace, namespace.to_owned());
        if let Some(next) = entry.next {
            self.end_wait(&before, next, id);
            self.wait(namespace, next, id);
        }
    }

    fn wait(&mut self, namespace: &str, until: Instant, id: &Id) {
        // A new namespace has the next turn after those that wait.
        let turn = self.turns;
        let waiting = self.waiting.entry(namespace.to_owned());
        let waiting = waiting.or_insert_with(|| Waiting { ids: BTreeSet::new(), turn });
        waiting.ids.insert((until, id.clone()));
    }

    fn end_wait(&mut self, namespace: &str, until: Instant, id: &Id) {
        let Some(waiting) = self.waiting.get_mut(namespace) else { return };
        waiting.ids.remove(&(until, id.clone()));
        if waiting.ids.is_empty() {
            self.waiting.remove(namespace);
        }
    }

    /// Takes the id whose list is due, with its query; [`done`](Self::done) ends the list.
    pub fn take_due(&mut self, now: Instant) -> Option<(Id, Q)> {
        if self.next().is_none_or(|next| next > now) {
            return None;
        }
        let is_due = |waiting: &Waiting<Id>| waiting.ids.first().is_some_and(|(at, _)| *at <= now);
        let due = self.waiting.iter().filter(|(_, waiting)| is_due(waiting));
        let namespace =
            due.min_by_key(|(_, waiting)| (waiting.turn, waiting.ids.first().cloned()))?.0.clone();
        self.turns += 1;
        let waiting = self.waiting.get_mut(&namespace)?;
        waiting.turn = self.turns;
        let (at, id) = waiting.ids.first()?.clone();
        self.end_wait(&namespace, at, &id);
        self.limiter.0.lock().take(RATE, now);
        let entry = self.entries.get_mut(&id)?;
        (entry.next, entry.last) = (None, Some(now));
        entry.lists = entry.lists.saturating_add(1);
        Some((id, entry.query.clone()))
    }

    /// Ends a list, and schedules the next one of its id.
    ///
    /// It is `after` this one, or as usual if that is earlier. Returns the query that the id has by now; none if the id was
    /// removed meanwhile.
    pub fn done(&mut self, id: &Id, after: Option<Duration>, now: Instant) -> Option<&Q> {
        let entry = self.entries.get_mut(id)?;
        if entry.next.is_none() {
            let usual = BACKOFF.after(entry.lists.max(1));
            let next = now + after.map_or(usual, |after| usual.min(after.max(BACKOFF.first)));
            entry.next = Some(next);
            let namespace = entry.namespace.clone();
            self.wait(&namespace, next, id);
        }
        self.entries.get(id).map(|entry| &entry.query)
    }

    /// Returns the time of the next list of any id.
    pub fn next(&self) -> Option<Instant> {
        let firsts = self.waiting.values().filter_map(|waiting| waiting.ids.first());
        let at = firsts.map(|(at, _)| *at).min()?;
        Some(self.limiter.0.lock().next(RATE).map_or(at, |token| token.max(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Returns the seconds at which lists are due, until `end`.
    fn lists(
        schedule: &mut ListSchedule<&'static str, u32>,
        start: Instant,
        from: u64,
        end: u64,
    ) -> Vec<(u64, &'static str)> {
        let mut found = Vec::new();
        for second in from..end {
            let now = start + secs(second);
            while let Some((id, _)) = schedule.take_due(now) {
                found.push((second, id));
                schedule.done(&id, None, now);
            }
        }
        found
    }

    #[test]
    fn the_delay_of_a_list_doubles_up_to_a_minute() {
        let (mut schedule, start) = (ListSchedule::new(ListLimiter::default()), Instant::now());
        schedule.insert(&"a", "n", 1, start);
        let expected = [0, 5, 15, 35, 75, 135, 195].map(|second| (second, "a"));
        assert_eq!(lists(&mut schedule, start, 0, 250), expected);
        // The same query changes nothing, another one begins anew.
        schedule.insert(&"a", "n", 1, start + secs(200));
        assert_eq!(schedule.next(), Some(start + secs(255)));
        schedule.insert(&"a", "n", 2, start + secs(198));
        assert_eq!(schedule.next(), Some(start + secs(200)), "five seconds after the last list");
        assert_eq!(lists(&mut schedule, start, 200, 220), [(200, "a"), (205, "a"), (215, "a")]);
        schedule.remove(&"a");
        assert_eq!((schedule.next(), schedule.entries.len()), (None, 0));
    }

    #[test]
    fn an_id_that_is_removed_during_its_list_is_not_listed_again() {
        let (mut schedule, start) = (ListSchedule::new(ListLimiter::default()), Instant::now());
        schedule.insert(&"a", "n", 1, start);
        assert_eq!(schedule.take_due(start), Some(("a", 1)));
        assert_eq!(schedule.take_due(start + secs(100)), None, "it is in flight");
        schedule.insert(&"a", "n", 2, start);
        assert_eq!(schedule.done(&"a", None, start), Some(&2));
        assert_eq!(schedule.next(), Some(start + secs(5)));
        schedule.remove(&"a");
        assert_eq!(schedule.done(&"a", None, start), None);
        assert_eq!(schedule.next(), None);
    }

    #[test]
    fn a_list_can_be_due_before_its_usual_time_but_not_within_five_seconds() {
        let (mut schedule, start) = (ListSchedule::new(ListLimiter::default()), Instant::now());
        schedule.insert(&"a", "n", 1, start);
        assert_eq!(lists(&mut schedule, start, 0, 40), [0, 5, 15, 35].map(|second| (second, "a")));
        for (after, expected) in [(Some(7), 82), (Some(90), 142), (Some(1), 147), (None, 207)] {
            let now = schedule.next().unwrap();
            assert!(schedule.take_due(now).is_some());
            schedule.done(&"a", after.map(secs), now);
            assert_eq!(schedule.next().unwrap() - start, secs(expected), "{after:?}");
        }
    }

    #[test]
    fn an_id_that_moves_to_another_namespace_keeps_its_time() {
        let (mut schedule, start) = (ListSchedule::new(ListLimiter::default()), Instant::now());
        schedule.insert(&"a", "n", 1, start + secs(3));
        schedule.set_namespace(&"a", "m");
        assert_eq!(schedule.waiting.keys().collect::<Vec<_>>(), ["m"]);
        assert_eq!(schedule.take_due(start + secs(3)), Some(("a", 1)));
        schedule.set_namespace(&"a", "o");
        schedule.done(&"a", None, start + secs(3));
        assert_eq!(schedule.waiting.keys().collect::<Vec<_>>(), ["o"]);
        assert_eq!(schedule.next(), Some(start + secs(8)));
    }

    #[test]
    fn all_schedules_together_get_ten_lists_per_second() {
        let (limiter, start) = (ListLimiter::default(), Instant::now());
        let mut schedules = [ListSchedule::new(limiter.clone()), ListSchedule::new(limiter)];
        for id in 0..1_000_u32 {
            schedules[id as usize % 2].insert(&id, "n", (), start);
        }
        let mut taken = 0;
        for tick in 0..500_u64 {
            for schedule in &mut schedules {
                while schedule.take_due(start + Duration::from_millis(10 * tick)).is_some() {
                    taken += 1;
                }
            }
        }
        assert_eq!(taken, 10 + 49);
    }

    #[test]
    fn the_lists_of_one_namespace_do_not_delay_those_of_another() {
        let (mut schedule, start) = (ListSchedule::new(ListLimiter::default()), Instant::now());
        let ids: Vec<String> = (0..100).map(|number| format!("a{number}")).collect();
        ids.iter().for_each(|id| schedule.insert(id, "attacker", 1, start));
        let victim = "v".to_owned();
        schedule.insert(&victim, "victim", 1, start + secs(1));
        let mut found = Vec::new();
        while let Some((id, _)) = schedule.take_due(start + secs(2)) {
            found.push(id);
        }
        assert!(found.iter().take(2).any(|id| *id == victim), "{found:?}");
    }
}
