//! Waits of random length, so that those who met once do not meet again.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// Sleeps for a random part of `longest`.
pub(super) fn pause(longest: Duration) {
    std::thread::sleep(part(longest, RandomState::new().build_hasher().finish()));
}

/// A part of `whole` that is as large as `random` is among all numbers.
fn part(whole: Duration, random: u64) -> Duration {
    let thousandths = u32::try_from(random % 1_000).expect("it is less than a thousand");
    whole * thousandths / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_a_part_of_the_longest() {
        let whole = Duration::from_secs(2);
        for (random, wanted) in [(0, 0), (500, 1_000), (1_999, 1_998), (u64::MAX, 1_230)] {
            assert_eq!(part(whole, random), Duration::from_millis(wanted), "{random}");
        }
    }
}
