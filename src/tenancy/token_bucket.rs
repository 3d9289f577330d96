//! A token bucket as a value: time comes in as an argument.

use std::time::{Duration, Instant};

/// How often something may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How often in a row, and at least once.
    pub burst: u32,
    /// The time after which it may happen once more.
    pub refill: Duration,
}

/// Counts how often one thing happened lately, as the generic cell rate algorithm does: in one point in time.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokenBucket {
    /// When the bucket is full again; full since ever without one.
    full_at: Option<Instant>,
}

impl TokenBucket {
    /// The earliest time at which there is a token; `None` if there is one at any time.
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

    /// Takes a token, also one that is not there yet.
    pub fn take(&mut self, rate: Rate, now: Instant) {
        let from = self.full_at.map_or(now, |full_at| full_at.max(now));
        self.full_at = Some(from + rate.refill);
    }

    /// Whether a new bucket is as good.
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
        // After a pause there is a burst again, and no more than that.
        let later = start + Duration::from_secs(80);
        assert!(bucket.is_full(later));
        let taken = (0..5).filter(|_| bucket.try_take(rate, later)).count();
        assert_eq!(taken, 3);
    }
}
