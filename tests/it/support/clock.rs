//! The wall clock, for times with whole seconds.

use std::time::{Duration, SystemTime};

/// Returns the time until the next second of the wall clock.
/// It is needed because statuses and states have times with whole seconds.
pub(crate) fn until_next_second() -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is later than 1970");
    Duration::from_nanos(1_000_000_000 - u64::from(now.subsec_nanos()))
}
