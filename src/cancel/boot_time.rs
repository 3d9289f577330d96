//! A clock that goes on while the machine is suspended.

use std::ops::Add;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A point in time since the start of the machine, including time in suspension.
///
/// [`Instant`](std::time::Instant) stands still meanwhile on Linux, while leases and deadlines of others expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootTime(Duration);

/// `CLOCK_BOOTTIME`; elsewhere, such as on macOS, the monotonic clock goes on by itself.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

impl BootTime {
    /// Returns the current time.
    pub fn now() -> Self {
        let time = clock_gettime(CLOCK);
        // Neither is ever negative for this clock.
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
        Self(Duration::new(seconds, nanoseconds))
    }

    /// Returns the time since an earlier point; zero if that is in the future.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the time that has passed since this point.
    pub fn elapsed(self) -> Duration {
        Self::now().since(self)
    }
}

impl Add<Duration> for BootTime {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_compared_and_added() {
        let early = BootTime(Duration::from_secs(10));
        let late = early + Duration::from_secs(5);
        assert!(early < late);
        assert_eq!((late.since(early), early.since(late)), (Duration::from_secs(5), Duration::ZERO));
    }

    /// `/proc/uptime` counts the time in which the machine was suspended (proc(5)).
    #[cfg(target_os = "linux")]
    #[test]
    fn it_counts_suspended_time() {
        let uptime = || {
            let text = std::fs::read_to_string("/proc/uptime").unwrap();
            Duration::from_secs_f64(text.split(' ').next().unwrap().parse().unwrap())
        };
        let (before, now, after) = (uptime(), BootTime::now().0, uptime());
        // The file has hundredths of a second.
        let unit = Duration::from_millis(10);
        assert!(before <= now + unit && now <= after + unit, "{before:?} {now:?} {after:?}");
    }
}
