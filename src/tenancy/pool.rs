//! A bounded pool of blocking threads, fair by namespace.

use std::time::Instant;

use super::blocking::run_blocking;
use super::semaphore::{FairSemaphore, Permit, SlotLimits};
use crate::metrics::{Metrics, SlotResource};

/// Threads for DNS lookups.
///
/// The system's resolver takes long for a zone with unresponsive servers, and cannot be interrupted.
const LOOKUPS: SlotLimits = SlotLimits { total: 32, per_namespace: 16, overflow: None }.with_overflow(32);

/// The size in bytes of inputs below which work may run on async workers.
pub const INLINE_BYTES: usize = 16 * 1024;

/// Runs work whose cost tenants control on blocking threads, off the async workers.
///
/// The number of concurrent jobs is limited, and a namespace gets at most half of them: a job that cannot be
/// interrupted blocks no other namespace. A waiting job is in a queue and has no thread. Clones share the pool.
#[derive(Clone, Debug)]
pub struct BlockingPool {
    threads: FairSemaphore,
    metrics: Option<Metrics>,
}

/// A permit for blocking or CPU-intensive work on the caller's own thread.
///
/// It counts as a thread of the pool until it is dropped.
#[derive(Debug)]
pub struct PoolPermit {
    permit: Permit,
    since: Instant,
    metrics: Option<Metrics>,
}

impl BlockingPool {
    /// Creates a pool of `threads` threads, at least two.
    pub fn new(threads: usize) -> Self {
        Self { threads: FairSemaphore::new(limits(threads)), metrics: None }
    }

    /// Creates a separate pool for DNS lookups, whose threads only wait for servers.
    ///
    /// A job keeps its thread until the resolver's timeout, even if its future is dropped.
    pub fn for_lookups() -> Self {
        Self { threads: FairSemaphore::new(LOOKUPS), metrics: None }
    }

    /// Creates a pool with two threads per CPU of this process, and at least four.
    pub fn for_this_machine() -> Self {
        Self::new(threads_of_this_machine())
    }

    /// Creates the pool for this machine, with waits and used time measured by namespace.
    pub fn measured(metrics: &Metrics) -> Self {
        let limits = limits(threads_of_this_machine());
        let threads = FairSemaphore::measured(limits, SlotResource::pool, metrics);
        Self { threads, metrics: Some(metrics.clone()) }
    }

    /// Runs a job for a namespace, and returns its result.
    ///
    /// A panic of the job is propagated.
    ///
    /// Dropping the future removes a queued job, and discards the result of a running one.
    pub async fn run<T: Send + 'static>(
        &self,
        namespace: &str,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let permit = self.enter(namespace).await;
        // The job logs to the subscriber of its future.
        let (dispatch, span) = (tracing::dispatcher::get_default(Clone::clone), tracing::Span::current());
        run_blocking(move || {
            let result = tracing::dispatcher::with_default(&dispatch, || span.in_scope(job));
            drop(permit);
            result
        })
        .await
    }

    /// Runs a job inline for an input below [`INLINE_BYTES`] bytes, and like [`run`](Self::run) otherwise.
    pub async fn run_sized<T: Send + 'static>(
        &self,
        namespace: &str,
        bytes: usize,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        if bytes < INLINE_BYTES { job() } else { self.run(namespace, job).await }
    }

    /// Waits for a permit of the pool, for work on an existing thread.
    pub async fn enter(&self, namespace: &str) -> PoolPermit {
        let permit = self.threads.acquire(namespace, 1).await;
        PoolPermit { permit, since: Instant::now(), metrics: self.metrics.clone() }
    }
}

impl Drop for PoolPermit {
    fn drop(&mut self) {
        if let Some(metrics) = &self.metrics {
            metrics.pool_used(self.permit.namespace(), self.since.elapsed());
        }
    }
}

fn threads_of_this_machine() -> usize {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (2 * cpus).max(4)
}

fn limits(threads: usize) -> SlotLimits {
    SlotLimits::halved(u64::try_from(threads.max(2)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use futures::FutureExt;
    use futures::future::join_all;

    use super::*;

    #[tokio::test]
    async fn no_namespace_holds_more_than_half_of_the_threads() {
        let pool = BlockingPool::new(4);
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(std::sync::Mutex::new(released));
        let running = Arc::new(AtomicUsize::new(0));
        let jobs: Vec<_> = (0..8)
            .map(|_| {
                let (pool, released, running) = (pool.clone(), Arc::clone(&released), Arc::clone(&running));
                tokio::spawn(async move {
                    let job = move || {
                        running.fetch_add(1, Ordering::SeqCst);
                        released.lock().unwrap().recv().unwrap();
                    };
                    pool.run("attacker", job).await;
                })
            })
            .collect();
        while running.load(Ordering::SeqCst) < 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(pool.run("victim", || 7).await, 7);
        assert_eq!(running.load(Ordering::SeqCst), 2);
        (0..8).for_each(|_| release.send(()).unwrap());
        join_all(jobs).await;
        assert_eq!(running.load(Ordering::SeqCst), 8);
    }

    #[tokio::test]
    async fn cancelled_lookups_keep_their_threads_and_leave_half_to_other_namespaces() {
        let pool = BlockingPool::for_lookups();
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(std::sync::Mutex::new(released));
        let running = Arc::new(AtomicUsize::new(0));
        for _ in 0..100 {
            let (released, running) = (Arc::clone(&released), Arc::clone(&running));
            let job = move || {
                running.fetch_add(1, Ordering::SeqCst);
                let _ = released.lock().unwrap().recv();
            };
            // It is polled once and then dropped, as by a timeout.
            assert!(pool.run("attacker", job).now_or_never().is_none());
        }
        while running.load(Ordering::SeqCst) < 16 {
            tokio::task::yield_now().await;
        }
        assert_eq!(pool.threads.held(), 16);
        assert_eq!(pool.run("victim", || 7).await, 7);
        drop(release);
        while pool.threads.held() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(running.load(Ordering::SeqCst), 16);
    }

    #[tokio::test]
    async fn a_job_whose_future_is_dropped_before_it_began_never_runs() {
        let pool = BlockingPool::new(2);
        let held = pool.enter("a").await;
        let mut waiting = pool.run("a", || panic!("this job was cancelled")).boxed();
        assert!((&mut waiting).now_or_never().is_none());
        drop(waiting);
        drop(held);
        assert_eq!(pool.run("a", || 1).await, 1);
    }

    #[tokio::test]
    #[should_panic(expected = "of the job")]
    async fn a_panic_of_a_job_is_passed_on() {
        BlockingPool::new(2).run("a", || panic!("of the job")).await;
    }

    #[tokio::test]
    async fn only_small_inputs_are_handled_inline() {
        let pool = BlockingPool::new(2);
        let here = std::thread::current().id();
        let thread = || std::thread::current().id();
        assert_eq!(pool.run_sized("a", INLINE_BYTES - 1, thread).await, here);
        assert_ne!(pool.run_sized("a", INLINE_BYTES, thread).await, here);
    }
}
