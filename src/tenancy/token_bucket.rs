//! A token bucket as a value, with the time as an argument.

use std::time::{Duration, Instant};

/// The rate of a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The maximum number of consecutive events, at least one.
    pub burst: u32,
    /// The time after which another event is allowed.
    pub refill: Duration,
}

/// A token bucket as in the generic cell rate algorithm (GCRA).
/// Its state is one point in time.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokenBucket {
    /// The time at which the bucket is full again; `None` if it always was.
    full_at: Option<Instant>,
}

impl TokenBucket {
    /// The earliest time at which there is a token; `None` if there always is one.
    pub fn next(&self, rate: Rate) -> Option<Instant> {
        self.full_at?.checked_sub(rate.refill.saturating_mul(rate.burst.max(1) - 1))
    }

    /// Takes a token if there is one.
    pub fn try_take(&mut self, rate: Rate, now: Instant) -> bool {
        let has_one = self.next(rate).is_none_or(|next| next <= now);
        if has_one {
            self.take(rate, now);
        }
        has_one
    }

    /// Takes a token, even one that is not there yet.
    pub fn take(&mut self, rate: Rate, now: Instant) {
        let from = self.full_at.map_or(now, |full_at| full_at.max(now));
        self.full_at = Some(from + rate.refill);
    }

    /// Returns true if the bucket is full, so that a new one is equivalent.
    pub fn is_full(&self, now: Instant) -> bool {
        self.full_at.is_none_or(|full_at| full_at <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_followed_by_one_per_refill() {
        let rate = Rate { burst: 3, refill: Duration::from_secs(10) };
        // A machine may have started just now.
        let start = Instant::now() + Duration::from_secs(1000);
        let mut bucket = TokenBucket::default();
        let found: Vec<u64> =
            (0..60).filter(|second| bucket.try_take(rate, start + Duration::from_secs(*second))).collect();
        assert_eq!(found, [0, 1, 2, 10, 20, 30, 40, 50]);
        assert_eq!(bucket.next(rate), Some(start + Duration::from_secs(60)));
        assert!(!bucket.is_full(start + Duration::from_secs(79)));
        // After a pause there is one burst again.
        let later = start + Duration::from_secs(80);
        assert!(bucket.is_full(later));
        let taken = (0..5).filter(|_| bucket.try_take(rate, later)).count();
        assert_eq!(taken, 3);
    }
}
