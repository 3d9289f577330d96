//! How much we ask of one server: so many requests at a time, so many a second, and none while it wants a rest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

/// From how many servers on those are forgotten that nothing is asked of.
const MANY: usize = 512;

/// What one server is asked for at most, by all objects together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetOptions {
    /// Requests at the same time.
    pub concurrency: usize,
    /// Requests a second, over time.
    pub per_second: u32,
    /// Requests that may come at once after a time of quiet.
    pub burst: u32,
}

impl Default for BudgetOptions {
    fn default() -> Self {
        Self { concurrency: 16, per_second: 50, burst: 1000 }
    }
}

/// The budgets of all servers, by host and port.
#[derive(Debug)]
pub struct Budgets {
    options: BudgetOptions,
    servers: Mutex<HashMap<String, Arc<Budget>>>,
}

/// What one server is asked.
#[derive(Debug)]
pub struct Budget {
    places: Arc<Semaphore>,
    pace: Mutex<Pace>,
}

/// When the next request may be made.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// The time that one request takes of the budget.
    interval: Duration,
    /// How far ahead of its time a request may be.
    credit: Duration,
    /// When the budget would be whole again.
    whole_at: Option<Instant>,
    /// Until when the server wants to be left alone.
    rests_until: Option<Instant>,
}

impl Budgets {
    /// Budgets that are all alike.
    pub fn new(options: BudgetOptions) -> Self {
        Self { options, servers: Mutex::default() }
    }

    /// The budget of one server.
    pub fn of(&self, server: &str) -> Arc<Budget> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(budget) = servers.get(server) {
            return Arc::clone(budget);
        }
        if servers.len() >= MANY {
            let now = Instant::now();
            servers.retain(|_, budget| Arc::strong_count(budget) > 1 || !budget.pace().is_idle(now));
        }
        let budget = Arc::new(Budget::new(self.options));
        servers.insert(server.to_owned(), Arc::clone(&budget));
        budget
    }
}

impl Budget {
    fn new(options: BudgetOptions) -> Self {
        let interval = Duration::from_secs(1) / options.per_second.max(1);
        let pace = Pace {
            interval,
            credit: interval * options.burst.saturating_sub(1),
            whole_at: None,
            rests_until: None,
        };
        Self { places: Arc::new(Semaphore::new(options.concurrency.max(1))), pace: Mutex::new(pace) }
    }

    /// Waits until a request may be made. It counts as under way until the place is dropped.
    pub async fn enter(&self) -> OwnedSemaphorePermit {
        let place = Arc::clone(&self.places).acquire_owned().await.expect("nobody closes the semaphore");
        let start = self.pace().take(Instant::now());
        sleep_until(start).await;
        self.rested().await;
        place
    }

    /// Waits until the server wants no rest. Meanwhile it may ask for another one.
    pub async fn rested(&self) {
        while let Some(until) = self.resting_until() {
            sleep_until(until).await;
        }
    }

    /// Leaves the server alone for a while.
    pub fn rest(&self, until: Instant) {
        let mut pace = self.pace();
        pace.rests_until = pace.rests_until.max(Some(until));
    }

    /// Until when the server is left alone, if it is.
    pub fn resting_until(&self) -> Option<Instant> {
        self.pace().rests_until.filter(|until| *until > Instant::now())
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pace {
    /// Takes one request out of the budget and says when it may be made.
    fn take(&mut self, now: Instant) -> Instant {
        let whole_at = self.whole_at.map_or(now, |whole_at| whole_at.max(now));
        let start = whole_at.checked_sub(self.credit).map_or(now, |start| start.max(now));
        self.whole_at = Some(whole_at + self.interval);
        self.rests_until.map_or(start, |until| start.max(until))
    }

    fn is_idle(&self, now: Instant) -> bool {
        self.whole_at.max(self.rests_until).is_none_or(|at| at <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_followed_by_a_steady_pace() {
        let budget = Budget::new(BudgetOptions { concurrency: 1, per_second: 10, burst: 3 });
        let now = Instant::now() + Duration::from_secs(1000);
        let mut pace = *budget.pace();
        let waits: Vec<u128> = (0..5).map(|_| (pace.take(now) - now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200]);
        let later = now + Duration::from_secs(60);
        let waits: Vec<u128> = (0..4).map(|_| (pace.take(later) - later).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100]);
        pace.rests_until = Some(later + Duration::from_secs(5));
        assert_eq!((pace.take(later) - later).as_secs(), 5);
        assert!(!pace.is_idle(later));
        assert!(pace.is_idle(later + Duration::from_secs(60)));
    }

    #[test]
    fn idle_servers_are_forgotten_and_resting_ones_are_not() {
        let budgets = Budgets::new(BudgetOptions::default());
        budgets.of("resting").rest(Instant::now() + Duration::from_secs(600));
        for number in 0..2 * MANY {
            budgets.of(&number.to_string());
        }
        assert!(budgets.servers.lock().unwrap().len() <= MANY + 1);
        assert!(budgets.of("resting").resting_until().is_some());
    }
}
