//! Exponential backoff: the delays between retries, and random fractions for jitter.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// Delays that double with each consecutive failure, up to a maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failure.
    pub first: Duration,
    /// The maximum delay.
    pub longest: Duration,
}

impl Backoff {
    /// Returns the delay after a number of consecutive failures, counted from 1, without jitter.
    pub fn after(self, failures: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.longest)
    }
}

/// Returns a random number from 0 to 1, from which callers make jitter.
///
/// It is seeded like the hash maps of the standard library.
pub fn random_fraction() -> f64 {
    let random = RandomState::new().build_hasher().finish() >> 32;
    f64::from(u32::try_from(random).unwrap_or_default()) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let backoff = Backoff { first: Duration::from_millis(500), longest: Duration::from_secs(5) };
        for (failures, millis) in
            [(0, 500), (1, 500), (2, 1000), (4, 4000), (5, 5000), (33, 5000), (u32::MAX, 5000)]
        {
            assert_eq!(backoff.after(failures), Duration::from_millis(millis), "{failures}");
        }
        let endless = Backoff { first: Duration::MAX, longest: Duration::MAX };
        assert_eq!(endless.after(9), Duration::MAX);
    }

    #[test]
    fn random_fractions_are_fractions_and_differ() {
        let (one, other) = (random_fraction(), random_fraction());
        assert!((0.0..=1.0).contains(&one) && (0.0..=1.0).contains(&other));
        assert!((one - other).abs() > 0.0);
    }
}
