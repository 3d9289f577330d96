//! Blocking work whose panics are not lost.

use std::future::pending;
use std::panic::resume_unwind;

use tokio::task::{JoinError, spawn_blocking};

/// Runs work on a blocking thread, and propagates its panic.
///
/// Dropping the future discards the result.
pub async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await.map_err(JoinError::try_into_panic) {
        Ok(result) => result,
        Err(Ok(panic)) => resume_unwind(panic),
        // The runtime is shutting down, and drops this future too.
        Err(Err(_)) => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_goes_on_in_the_caller() {
        assert_eq!(run_blocking(|| 7).await, 7);
        let caller = tokio::spawn(run_blocking(|| panic!("on purpose")));
        assert!(caller.await.unwrap_err().is_panic());
    }
}
