//! Waits of a transaction, which runs on a blocking thread: for a future, and of random length after a collision.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::pin;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::timeout;

/// How often a wait checks whether it is still wanted.
const PACE: Duration = Duration::from_millis(50);

/// Blocks the thread until a future is ready; gives `None` as soon as `is_over` says that its result is not wanted.
///
/// The thread must be a blocking one of a runtime that runs meanwhile.
pub(super) fn block_on<T>(future: impl Future<Output = T>, is_over: impl Fn() -> bool) -> Option<T> {
    Handle::current().block_on(async {
        let mut future = pin!(future);
        loop {
            match timeout(PACE, &mut future).await {
                Ok(ready) => return Some(ready),
                Err(_) if is_over() => return None,
                Err(_) => {}
            }
        }
    })
}

/// Sleeps for a random part of `longest`, so that those who met once do not meet again.
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
