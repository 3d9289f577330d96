//! How many transactions may be under way at once.
//!
//! Who waits for a server does next to no work. So a transaction whose server has not done what it was asked for a while
//! lends its place to another, and has it back when that is done. One host still gets no more transactions than there are
//! places.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a transaction waits for its server before its place is another's.
const PATIENCE: Duration = Duration::from_secs(5);

/// A number of places, of which each transaction takes one. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Places(Option<Arc<Limited>>);

#[derive(Debug)]
struct Limited {
    count: usize,
    patience: Duration,
    taken: Mutex<Taken>,
    is_left: Condvar,
}

/// Who is there.
#[derive(Debug, Default)]
struct Taken {
    /// Transactions that have not lent their place. Those that come back do so at once, so there may be too many for a
    /// moment; nobody begins then.
    at_work: usize,
    /// All of a host, also those that have lent their place.
    of_host: HashMap<String, usize>,
}

/// A place that is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    limited: Option<Arc<Limited>>,
    host: String,
}

/// A wait for a server. It is over when this is dropped.
#[derive(Debug)]
pub(super) struct Wait<'p> {
    place: &'p Place,
    begin: Instant,
    has_lent: bool,
}

impl Places {
    /// As many as are asked for.
    pub fn without_limit() -> Self {
        Self(None)
    }

    /// This many, and at least one.
    pub fn limited(count: usize) -> Self {
        Self::with_patience(count, PATIENCE)
    }

    fn with_patience(count: usize, patience: Duration) -> Self {
        let (taken, is_left) = (Mutex::default(), Condvar::new());
        Self(Some(Arc::new(Limited { count: count.max(1), patience, taken, is_left })))
    }

    /// Waits for a place for a transaction with `host` and takes it.
    pub(super) fn take(&self, host: &str) -> Place {
        if let Some(limited) = &self.0 {
            let is_full = |taken: &mut Taken| {
                let of_host = taken.of_host.get(host).copied().unwrap_or_default();
                taken.at_work >= limited.count || of_host >= limited.count
            };
            let wait = limited.is_left.wait_while(limited.taken(), is_full);
            let mut taken = wait.unwrap_or_else(PoisonError::into_inner);
            taken.at_work += 1;
            *taken.of_host.entry(host.to_owned()).or_default() += 1;
        }
        Place { limited: self.0.clone(), host: host.to_owned() }
    }
}

impl Limited {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Begins to wait for the server.
    pub(super) fn wait(&self) -> Wait<'_> {
        Wait { place: self, begin: Instant::now(), has_lent: false }
    }
}

impl Wait<'_> {
    /// Lends the place to another if the wait has become long.
    pub(super) fn go_on(&mut self) {
        let Some(limited) = self.place.limited.as_ref().filter(|_| !self.has_lent) else { return };
        if self.begin.elapsed() >= limited.patience {
            self.has_lent = true;
            limited.taken().at_work -= 1;
            limited.is_left.notify_all();
        }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if let Some(limited) = self.place.limited.as_ref().filter(|_| self.has_lent) {
            limited.taken().at_work += 1;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(limited) = &self.limited else { return };
        let mut taken = limited.taken();
        taken.at_work -= 1;
        if let Some(count) = taken.of_host.get_mut(&self.host) {
            *count -= 1;
            if *count == 0 {
                taken.of_host.remove(&self.host);
            }
        }
        limited.is_left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn no_more_are_under_way_than_there_are_places() {
        for (places, most) in [(Places::limited(2), 2), (Places::limited(0), 1), (Places::without_limit(), 8)]
        {
            let (now, highest) = (AtomicUsize::new(0), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for host in ["a", "b", "a", "b", "a", "b", "a", "b"] {
                    let (places, now, highest) = (&places, &now, &highest);
                    scope.spawn(move || {
                        let _place = places.take(host);
                        highest.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(20));
                        now.fetch_sub(1, Ordering::SeqCst);
                    });
                }
            });
            assert!(highest.load(Ordering::SeqCst) <= most);
        }
    }

    /// How many are at work, and how many there are of each host.
    fn taken(places: &Places) -> (usize, Vec<(String, usize)>) {
        let taken = places.0.as_ref().unwrap().taken();
        let mut of_host: Vec<(String, usize)> =
            taken.of_host.iter().map(|(host, count)| (host.clone(), *count)).collect();
        of_host.sort();
        (taken.at_work, of_host)
    }

    fn of(hosts: &[(&str, usize)]) -> Vec<(String, usize)> {
        hosts.iter().map(|(host, count)| ((*host).to_owned(), *count)).collect()
    }

    #[test]
    fn whoever_waits_for_long_lends_its_place_and_has_it_back() {
        let places = Places::with_patience(1, Duration::ZERO);
        let slow = places.take("slow");
        let mut wait = slow.wait();
        assert_eq!(taken(&places), (1, of(&[("slow", 1)])));
        wait.go_on();
        wait.go_on();
        assert_eq!(taken(&places), (0, of(&[("slow", 1)])));
        let other = places.take("other");
        // It does not wait for the other one to end, and nobody begins before both have.
        drop(wait);
        assert_eq!(taken(&places), (2, of(&[("other", 1), ("slow", 1)])));
        drop(other);
        assert_eq!(taken(&places), (1, of(&[("slow", 1)])));
        drop(slow);
        assert_eq!(taken(&places), (0, of(&[])));
    }

    #[test]
    fn a_short_wait_lends_nothing() {
        let places = Places::limited(1);
        let place = places.take("a");
        place.wait().go_on();
        assert_eq!(taken(&places), (1, of(&[("a", 1)])));
    }

    #[test]
    fn a_host_has_no_more_transactions_than_there_are_places_though_all_are_lent() {
        let places = Places::with_patience(2, Duration::ZERO);
        std::thread::scope(|scope| {
            let slow = [places.take("slow"), places.take("slow")];
            let mut waits = slow.each_ref().map(Place::wait);
            waits.iter_mut().for_each(Wait::go_on);
            let third = scope.spawn(|| drop(places.take("slow")));
            // Others go on meanwhile.
            drop(places.take("other"));
            std::thread::sleep(Duration::from_millis(50));
            assert!(!third.is_finished());
            drop(waits);
            drop(slow);
        });
        assert_eq!(taken(&places), (0, of(&[])));
    }
}
