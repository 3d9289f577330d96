//! The system clock, with a memory of its changes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

/// The deviation from the monotonic clock that is no change.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(5);

/// The time for which the former time counts as well after the clock was changed.
const SETTLING_TIME: Duration = Duration::from_secs(10 * 60);

/// A clock that notices changes of the system clock. Clones share what they saw.
///
/// For ten minutes after a change, the time that would have been without it counts as well: nothing is written that waits at
/// one of the two times. So a clock that is set forward by mistake, and back, opens no window. Computers that were asleep
/// seem to be such a case, which only delays a write.
#[derive(Clone, Debug, Default)]
pub struct SteadyClock(Arc<Mutex<Option<Reading>>>);

/// The last reading of both clocks.
#[derive(Clone, Copy, Debug)]
struct Reading {
    wall: Timestamp,
    at: Instant,
    /// The sum of the unsettled changes, and the time of the last one.
    change: Option<(SignedDuration, Instant)>,
}

impl SteadyClock {
    /// Returns the present time, and the one without changes that have not settled.
    pub fn read(&self) -> [Timestamp; 2] {
        self.at(Timestamp::now(), Instant::now())
    }

    fn at(&self, wall: Timestamp, at: Instant) -> [Timestamp; 2] {
        let mut last = self.0.lock();
        let mut change = last.and_then(|last| last.change);
        if let Some(last) = *last {
            let elapsed = SignedDuration::try_from(at.saturating_duration_since(last.at)).unwrap_or_default();
            let jump = wall.duration_since(last.wall) - elapsed;
            // Clocks may run a thousandth faster or slower.
            if jump.abs() > TOLERANCE + elapsed / 1000 {
                let sum = change.map_or(SignedDuration::ZERO, |(sum, _)| sum) + jump;
                change = Some((sum, at));
            }
        }
        change = change.filter(|(sum, since)| {
            sum.abs() > TOLERANCE && at.saturating_duration_since(*since) < SETTLING_TIME
        });
        *last = Some(Reading { wall, at, change });
        let unchanged = change.and_then(|(sum, _)| wall.checked_sub(sum).ok());
        [wall, unchanged.unwrap_or(wall)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_change_of_the_clock_the_former_time_counts_for_ten_minutes() {
        let begin: Timestamp = "2026-12-01T10:00:00Z".parse().unwrap();
        let start = Instant::now();
        let clock = SteadyClock::default();
        // Seconds since the beginning, by the monotonic and by the system clock, and the times that count.
        for (elapsed, wall, expected) in [
            (0, 0, [0, 0]),
            (60, 61, [61, 61]),
            // Set forward by an hour.
            (120, 3721, [3721, 121]),
            (600, 4201, [4201, 601]),
            // And back, so that nothing has changed.
            (660, 661, [661, 661]),
            (720, 721, [721, 721]),
            // Forward again, until it settles.
            (780, 4381, [4381, 781]),
            (1379, 4980, [4980, 1380]),
            (1381, 4982, [4982, 4982]),
            // Backward.
            (1441, 1442, [1442, 5042]),
        ] {
            let at = |seconds| begin + SignedDuration::from_secs(seconds);
            let found = clock.at(at(wall), start + Duration::from_secs(elapsed));
            assert_eq!(found, expected.map(at), "{elapsed}");
        }
    }
}
