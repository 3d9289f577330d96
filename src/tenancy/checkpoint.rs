//! Deadlines and cancellation of jobs on the blocking pool.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::pool::BlockingPool;

/// Ends a job early.
/// The job checks it between two pieces of its work, such as two tags.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    deadline: Option<Instant>,
    is_cancelled: Arc<AtomicBool>,
}

/// The reason for which a job ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Interrupted {
    /// Its deadline passed.
    #[error("the time is up")]
    DeadlineExceeded,
    /// It was cancelled.
    #[error("the work was cancelled")]
    Cancelled,
}

/// Cancels the job of a future that is dropped.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Checkpoint {
    /// Checks whether the job may continue.
    ///
    /// # Errors
    ///
    /// Returns an error if its deadline passed, or if it was cancelled.
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.is_cancelled.load(Ordering::Relaxed) {
            return Err(Interrupted::Cancelled);
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Interrupted::DeadlineExceeded),
            _ => Ok(()),
        }
    }
}

impl BlockingPool {
    /// Runs a job like [`run`](Self::run), with a deadline and cancellation.
    ///
    /// The deadline is `timeout` from the start of the job. Dropping the future cancels it.
    pub async fn run_within<T: Send + 'static>(
        &self,
        namespace: &str,
        timeout: Duration,
        job: impl FnOnce(&Checkpoint) -> T + Send + 'static,
    ) -> T {
        let guard = CancelOnDrop(Arc::default());
        let is_cancelled = Arc::clone(&guard.0);
        let job = move || job(&Checkpoint { deadline: Instant::now().checked_add(timeout), is_cancelled });
        self.run(namespace, job).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_job_stops_at_its_timeout() {
        let pool = BlockingPool::new(2);
        let endless = |checkpoint: &Checkpoint| loop {
            if let Err(interrupted) = checkpoint.check() {
                break interrupted;
            }
        };
        let ended = pool.run_within("a", Duration::from_millis(5), endless).await;
        assert_eq!(ended, Interrupted::DeadlineExceeded);
        assert_eq!(pool.run_within("a", Duration::MAX, Checkpoint::check).await, Ok(()));
    }

    #[tokio::test]
    async fn dropping_the_future_stops_its_job() {
        let pool = BlockingPool::new(2);
        let (begun, has_begun) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let job = move |checkpoint: &Checkpoint| {
            begun.send(()).unwrap();
            while checkpoint.check().is_ok() {}
            end.send(checkpoint.check()).unwrap();
        };
        let mut running = pool.run_within("a", Duration::MAX, job).boxed();
        while has_begun.try_recv().is_err() {
            assert!((&mut running).now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        drop(running);
        let waited = tokio::task::spawn_blocking(move || ended.recv().unwrap());
        assert_eq!(waited.await.unwrap(), Err(Interrupted::Cancelled));
    }
}
