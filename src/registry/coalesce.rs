//! Request coalescing (single flight): concurrent callers share one operation.
//!
//! A caller that arrives after an operation has started joins the next one, so that no result is older than the
//! question. Each caller has its own timeout: the operation runs for as long as the longest timeout among its
//! callers, and each caller leaves when its own is over. The timeout starts with the operation; the wait for the
//! start is limited by the same timeout. When the last caller leaves, the operation is cancelled.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared};
use parking_lot::Mutex;
use tokio::task::yield_now;

use super::error::{RAISE_TIMEOUT, RegistryError};
use crate::net::http::{Deadline, WaitClock};

/// Coalesces calls of one operation.
#[derive(Debug)]
pub(super) struct Coalescer<T: Clone> {
    /// Held while the operation is in flight.
    in_flight: Arc<tokio::sync::Mutex<()>>,
    /// The next flight, which has not started yet.
    next: Mutex<Option<NextFlight<T>>>,
    /// Measures waits of all flights for capacity, which do not count towards callers' timeouts.
    clock: WaitClock,
}

/// The options of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallOptions {
    /// The caller's timeout.
    pub(super) timeout: Duration,
    /// The state that the caller knows already.
    pub(super) known: Option<String>,
}

/// A flight that has not started yet. Only its callers keep it alive.
#[derive(Debug)]
struct NextFlight<T: Clone> {
    flight: WeakShared<BoxFuture<'static, Started<T>>>,
    options: CallOptions,
}

/// A flight that waits for the one before it to end.
type Flight<T> = Shared<BoxFuture<'static, Started<T>>>;

/// A flight that has started.
#[derive(Clone)]
struct Started<T: Clone> {
    deadline: Deadline,
    work: Shared<BoxFuture<'static, Result<T, RegistryError>>>,
}

impl<T: Clone> Default for Coalescer<T> {
    fn default() -> Self {
        Self { in_flight: Arc::default(), next: Mutex::default(), clock: WaitClock::default() }
    }
}

impl CallOptions {
    /// Merges two calls: the longer timeout, and the known state only if both share it.
    fn join(&mut self, other: &Self) {
        self.timeout = self.timeout.max(other.timeout);
        if self.known != other.known {
            self.known = None;
        }
    }
}

impl<T: Clone + Send + Sync + 'static> Coalescer<T> {
    /// Joins the next flight and waits for its result.
    ///
    /// The first caller of a flight provides the operation, which gets the merged options of all callers.
    ///
    /// # Errors
    ///
    /// If the operation fails, or if it or the flight before it takes longer than this caller's timeout; `operation`
    /// names the work in that error.
    pub(super) async fn join<F>(
        self: &Arc<Self>,
        options: CallOptions,
        operation: impl Fn() -> String,
        work: impl FnOnce(CallOptions, Deadline) -> F + Send + 'static,
    ) -> Result<T, RegistryError>
    where
        F: Future<Output = Result<T, RegistryError>> + Send + 'static,
    {
        let timeout = options.timeout;
        let flight = self.enter(options, work);
        // Callers that arrive in the same moment join the same flight.
        yield_now().await;
        let started = Deadline::with_clock(&self.clock, timeout)
            .advising(RAISE_TIMEOUT)
            .limit(&operation, flight.map(Ok::<_, RegistryError>))
            .await?;
        started.deadline.with_timeout(timeout).limit(operation, started.work).await
    }

    /// Returns the next flight, with one more caller.
    fn enter<F>(
        self: &Arc<Self>,
        options: CallOptions,
        work: impl FnOnce(CallOptions, Deadline) -> F + Send + 'static,
    ) -> Flight<T>
    where
        F: Future<Output = Result<T, RegistryError>> + Send + 'static,
    {
        let mut next = self.next.lock();
        if let Some(next) = next.as_mut()
            && let Some(flight) = next.flight.upgrade()
        {
            next.options.join(&options);
            return flight;
        }
        let coalescer = Arc::clone(self);
        let flight = async move {
            let in_flight = Arc::clone(&coalescer.in_flight).lock_owned().await;
            let next = coalescer.next.lock().take().expect("a flight waits until it starts");
            let deadline =
                Deadline::with_clock(&coalescer.clock, next.options.timeout).advising(RAISE_TIMEOUT);
            let work = work(next.options, deadline.clone());
            let work = async move {
                let result = work.await;
                drop(in_flight);
                result
            };
            Started { deadline, work: work.boxed().shared() }
        };
        let flight = flight.boxed().shared();
        let waiting = flight.downgrade().expect("it has not completed");
        *next = Some(NextFlight { flight: waiting, options });
        flight
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    /// An operation that ends on demand, and returns its number and the merged options.
    #[derive(Default)]
    struct Scene {
        coalescer: Arc<Coalescer<(usize, CallOptions)>>,
        started: Arc<AtomicUsize>,
        leave: Option<Arc<Semaphore>>,
    }

    impl Scene {
        fn new() -> Self {
            Self { leave: Some(Arc::new(Semaphore::new(0))), ..Self::default() }
        }

        fn ask(
            &self,
            options: CallOptions,
        ) -> tokio::task::JoinHandle<Result<(usize, CallOptions), RegistryError>> {
            let (coalescer, started, leave) =
                (self.coalescer.clone(), self.started.clone(), self.leave.clone());
            tokio::spawn(async move {
                let work = move |options: CallOptions, _| async move {
                    let number = started.fetch_add(1, Ordering::SeqCst) + 1;
                    if let Some(leave) = leave {
                        leave.acquire().await.expect("the semaphore stays open").forget();
                    }
                    Ok((number, options))
                };
                coalescer.join(options, || "the work".to_owned(), work).await
            })
        }

        /// Lets every task run until it waits.
        async fn settle(&self) {
            for _ in 0..100 {
                yield_now().await;
            }
        }

        fn end_one(&self) {
            self.leave.as_ref().expect("the scene has one").add_permits(1);
        }
    }

    fn options(seconds: u64, known: &str) -> CallOptions {
        let known = Some(known.to_owned()).filter(|known| !known.is_empty());
        CallOptions { timeout: Duration::from_secs(seconds), known }
    }

    #[test]
    fn a_flight_takes_the_longest_timeout_and_the_state_that_all_know() {
        for (calls, expected) in [
            (vec![options(5, "a")], options(5, "a")),
            (vec![options(5, "a"), options(9, "a"), options(1, "a")], options(9, "a")),
            (vec![options(5, "a"), options(1, "b")], options(5, "")),
            (vec![options(5, "a"), options(1, "b"), options(1, "a")], options(5, "")),
            (vec![options(5, "a"), options(1, "")], options(5, "")),
            (vec![options(5, ""), options(1, "a")], options(5, "")),
        ] {
            let whole = calls.clone().into_iter().reduce(|mut whole, options| {
                whole.join(&options);
                whole
            });
            assert_eq!(whole.unwrap(), expected, "{calls:?}");
        }
    }

    #[tokio::test]
    async fn a_caller_that_comes_during_a_flight_gets_the_next() {
        let scene = Scene::new();
        let first = [scene.ask(options(60, "a")), scene.ask(options(30, "a"))];
        scene.settle().await;
        let second = [scene.ask(options(10, "a")), scene.ask(options(20, "b"))];
        scene.settle().await;
        assert_eq!(scene.started.load(Ordering::SeqCst), 1);
        scene.end_one();
        scene.end_one();
        for one in first {
            assert_eq!(one.await.unwrap().unwrap(), (1, options(60, "a")));
        }
        for one in second {
            assert_eq!(one.await.unwrap().unwrap(), (2, options(20, "")));
        }
    }

    #[tokio::test]
    async fn a_caller_with_a_short_timeout_leaves_and_the_flight_goes_on() {
        let scene = Scene::new();
        let (hasty, patient) = (scene.ask(options(1, "")), scene.ask(options(60, "")));
        let error = hasty.await.unwrap().unwrap_err();
        assert!(
            error.to_string().starts_with("the work: no complete response within 1s; raise spec.timeout"),
            "{error}"
        );
        scene.end_one();
        assert_eq!(patient.await.unwrap().unwrap().0, 1);
    }

    #[tokio::test]
    async fn the_timeouts_of_earlier_callers_do_not_apply_to_waiting_ones() {
        let scene = Scene::new();
        let (hanging, hasty) = (scene.ask(options(600, "")), scene.ask(options(1, "")));
        scene.settle().await;
        let later = scene.ask(options(1, ""));
        for one in [hasty, later] {
            let error = one.await.unwrap().unwrap_err();
            assert!(error.to_string().starts_with("the work: no complete response within 1s"), "{error}");
        }
        assert!(!hanging.is_finished());
        // A flight without callers leaves nothing behind.
        let next = scene.ask(options(60, ""));
        scene.end_one();
        scene.end_one();
        assert_eq!((hanging.await.unwrap().unwrap().0, next.await.unwrap().unwrap().0), (1, 2));
    }

    /// A listing's wait for memory counted towards the timeout of each of its callers.
    #[tokio::test(start_paused = true)]
    async fn a_wait_for_memory_uses_up_no_timeout_of_the_callers() {
        let coalescer: Arc<Coalescer<()>> = Arc::default();
        let ask = || {
            let work = |_, deadline: Deadline| async move {
                deadline
                    .wait_for(tokio::time::sleep(Duration::from_secs(300)))
                    .await
                    .map_err(RegistryError::from)
            };
            coalescer.join(options(60, ""), || "the work".to_owned(), work)
        };
        let later = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            ask().await
        };
        let (first, second, later) = tokio::join!(ask(), ask(), later);
        first.and(second).and(later).unwrap();
    }

    #[tokio::test]
    async fn a_flight_without_callers_is_cancelled() {
        let scene = Scene::new();
        let (first, second) = (scene.ask(options(60, "")), scene.ask(options(60, "")));
        scene.settle().await;
        let next = scene.ask(options(60, ""));
        scene.settle().await;
        for one in [first, next] {
            one.abort();
            assert!(one.await.unwrap_err().is_cancelled());
        }
        // One caller is left in the first flight; the other flight is cancelled in the queue.
        scene.end_one();
        assert_eq!(second.await.unwrap().unwrap().0, 1);
        let alone = scene.ask(options(60, ""));
        scene.settle().await;
        alone.abort();
        assert!(alone.await.unwrap_err().is_cancelled());
        let last = scene.ask(options(60, ""));
        scene.end_one();
        assert_eq!(last.await.unwrap().unwrap().0, 3);
    }
}
