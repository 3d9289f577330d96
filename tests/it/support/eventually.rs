//! Waiting for a condition that another process brings about.

use std::time::{Duration, Instant};

/// Timeout of a wait; the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Waits until a condition holds.
pub(crate) async fn eventually(what: &str, holds: impl AsyncFnMut() -> bool) {
    eventually_within(TIMEOUT, what, holds).await;
}

/// Waits until a condition holds, with a timeout of the caller's.
pub(crate) async fn eventually_within(timeout: Duration, what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < timeout, "it never came to this: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until `find` returns something.
pub(crate) async fn eventually_found<T>(what: &str, mut find: impl AsyncFnMut() -> Option<T>) -> T {
    let mut found = None;
    let has_found = async || {
        found = find().await;
        found.is_some()
    };
    eventually(what, has_found).await;
    found.expect("the wait ends with a result")
}
