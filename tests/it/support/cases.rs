//! Cases of one test that run at the same time.

use std::thread;

/// Calls `attempt` with each case in a thread of its own.
/// Each has a thread because a case mostly waits for servers. A panic of one fails the test.
pub(crate) fn at_once<T: Send>(cases: impl IntoIterator<Item = T>, attempt: impl Fn(T) + Sync) {
    thread::scope(|scope| {
        for case in cases {
            let attempt = &attempt;
            scope.spawn(move || attempt(case));
        }
    });
}
