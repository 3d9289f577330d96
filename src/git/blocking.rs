//! Waiting for a future on the blocking thread of a transaction.

use std::pin::pin;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::timeout;

/// The interval at which a wait checks whether its result is still needed.
const PACE: Duration = Duration::from_millis(50);

/// Blocks the thread until a future is ready; returns `None` as soon as `is_over` is true.
///
/// The thread must be a blocking one of a runtime that is running.
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
