//! Request coalescing: concurrent callers share one operation.
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

use super::deadline::{Deadline, WaitClock};
use super::error::RegistryError;

/// Coalesces calls of one operation.
#[derive(Debug)]
pub(super) struct Rounds<T: Clone> {
    /// Held while the operation is in flight.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// The next flight, which has not started yet.
    next: Mutex<Option<Next<T>>>,
    /// Measures waits of all flights for capacity, which do not count towards callers' timeouts.
    clock: WaitClock,
}

/// The options of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wish {
    /// The caller's timeout.
    pub(super) allowed: Duration,
    /// The state that the caller knows already.
    pub(super) known: Option<String>,
}

/// A flight that has not started yet. Only its callers keep it alive.
#[derive(Debug)]
struct Next<T: Clone> {
    round: WeakShared<BoxFuture<'static, Begun<T>>>,
    wish: Wish,
}

/// A flight that waits for the one before it to end.
type Round<T> = Shared<BoxFuture<'static, Begun<T>>>;

/// A flight that has started.
#[derive(Clone)]
struct Begun<T: Clone> {
    deadline: Deadline,
    work: Shared<BoxFuture<'static, Result<T, RegistryError>>>,
}

impl<T: Clone> Default for Rounds<T> {
    fn default() -> Self {
        Self { turn: Arc::default(), next: Mutex::default(), clock: WaitClock::default() }
    }
}

impl Wish {
    /// Merges two calls: the longer timeout, and the known state only if both share it.
    fn join(&mut self, other: &Self) {
        self.allowed = self.allowed.max(other.allowed);
        if self.known != other.known {
            self.known = None;
        }
    }
}

impl<T: Clone + Send + Sync + 'static> Rounds<T> {
    /// Joins the next flight and waits for its result.
    ///
    /// The first caller of a flight provides the operation, which gets the merged options of all callers.
    ///
    /// # Errors
    ///
    /// When the operation fails, or if it or the flight before it takes longer than this caller's timeout; `what`
    /// names the operation in that error.
    pub(super) async fn join<F>(
        self: &Arc<Self>,
        wish: Wish,
        what: impl Fn() -> String,
        work: impl FnOnce(Wish, Deadline) -> F + Send + 'static,
    ) -> Result<T, RegistryError>
    where
        F: Future<Output = Result<T, RegistryError>> + Send + 'static,
    {
        let allowed = wish.allowed;
        let round = self.enter(wish, work);
        // Callers that arrive in the same moment join the same flight.
        yield_now().await;
        let begun = Deadline::by(&self.clock, allowed).hold(&what, round.map(Ok)).await?;
        begun.deadline.allowing(allowed).hold(what, begun.work).await
    }

    /// Returns the next flight, with one more caller.
    fn enter<F>(
        self: &Arc<Self>,
        wish: Wish,
        work: impl FnOnce(Wish, Deadline) -> F + Send + 'static,
    ) -> Round<T>
    where
        F: Future<Output = Result<T, RegistryError>> + Send + 'static,
    {
        let mut next = self.next.lock();
        if let Some(next) = next.as_mut()
            && let Some(round) = next.round.upgrade()
        {
            next.wish.join(&wish);
            return round;
        }
        let rounds = Arc::clone(self);
        let round = async move {
            let turn = Arc::clone(&rounds.turn).lock_owned().await;
            let next = rounds.next.lock().take().expect("a round waits until it begins");
            let deadline = Deadline::by(&rounds.clock, next.wish.allowed);
            let work = work(next.wish, deadline.clone());
            let work = async move {
                let ended = work.await;
                drop(turn);
                ended
            };
            Begun { deadline, work: work.boxed().shared() }
        };
        let round = round.boxed().shared();
        let waiting = round.downgrade().expect("nobody has waited for it yet");
        *next = Some(Next { round: waiting, wish });
        round
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
        rounds: Arc<Rounds<(usize, Wish)>>,
        begun: Arc<AtomicUsize>,
        leave: Option<Arc<Semaphore>>,
    }

    impl Scene {
        fn new() -> Self {
            Self { leave: Some(Arc::new(Semaphore::new(0))), ..Self::default() }
        }

        fn ask(&self, wish: Wish) -> tokio::task::JoinHandle<Result<(usize, Wish), RegistryError>> {
            let (rounds, begun, leave) = (self.rounds.clone(), self.begun.clone(), self.leave.clone());
            tokio::spawn(async move {
                let work = move |wish: Wish, _| async move {
                    let number = begun.fetch_add(1, Ordering::SeqCst) + 1;
                    if let Some(leave) = leave {
                        leave.acquire().await.expect("nobody closes it").forget();
                    }
                    Ok((number, wish))
                };
                rounds.join(wish, || "the work".to_owned(), work).await
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

    fn wish(seconds: u64, known: &str) -> Wish {
        let known = Some(known.to_owned()).filter(|known| !known.is_empty());
        Wish { allowed: Duration::from_secs(seconds), known }
    }

    #[test]
    fn a_round_takes_the_longest_time_and_what_all_know() {
        for (wishes, expected) in [
            (vec![wish(5, "a")], wish(5, "a")),
            (vec![wish(5, "a"), wish(9, "a"), wish(1, "a")], wish(9, "a")),
            (vec![wish(5, "a"), wish(1, "b")], wish(5, "")),
            (vec![wish(5, "a"), wish(1, "b"), wish(1, "a")], wish(5, "")),
            (vec![wish(5, "a"), wish(1, "")], wish(5, "")),
            (vec![wish(5, ""), wish(1, "a")], wish(5, "")),
        ] {
            let whole = wishes.clone().into_iter().reduce(|mut whole, wish| {
                whole.join(&wish);
                whole
            });
            assert_eq!(whole.unwrap(), expected, "{wishes:?}");
        }
    }

    #[tokio::test]
    async fn who_comes_while_a_round_is_under_way_gets_the_next() {
        let scene = Scene::new();
        let first = [scene.ask(wish(60, "a")), scene.ask(wish(30, "a"))];
        scene.settle().await;
        let second = [scene.ask(wish(10, "a")), scene.ask(wish(20, "b"))];
        scene.settle().await;
        assert_eq!(scene.begun.load(Ordering::SeqCst), 1);
        scene.end_one();
        scene.end_one();
        for one in first {
            assert_eq!(one.await.unwrap().unwrap(), (1, wish(60, "a")));
        }
        for one in second {
            assert_eq!(one.await.unwrap().unwrap(), (2, wish(20, "")));
        }
    }

    #[tokio::test]
    async fn who_has_little_time_leaves_and_the_round_goes_on_for_the_others() {
        let scene = Scene::new();
        let (hasty, patient) = (scene.ask(wish(1, "")), scene.ask(wish(60, "")));
        let error = hasty.await.unwrap().unwrap_err();
        assert!(error.to_string().starts_with("the work: there was no complete answer within 1s"), "{error}");
        scene.end_one();
        assert_eq!(patient.await.unwrap().unwrap().0, 1);
    }

    #[tokio::test]
    async fn the_patience_of_those_who_came_before_is_not_that_of_those_who_wait() {
        let scene = Scene::new();
        let (hanging, hasty) = (scene.ask(wish(600, "")), scene.ask(wish(1, "")));
        scene.settle().await;
        let later = scene.ask(wish(1, ""));
        for one in [hasty, later] {
            let error = one.await.unwrap().unwrap_err();
            assert!(
                error.to_string().starts_with("the work: there was no complete answer within 1s"),
                "{error}"
            );
        }
        assert!(!hanging.is_finished());
        // A flight without callers leaves nothing behind.
        let next = scene.ask(wish(60, ""));
        scene.end_one();
        scene.end_one();
        assert_eq!((hanging.await.unwrap().unwrap().0, next.await.unwrap().unwrap().0), (1, 2));
    }

    /// A listing's wait for memory counted towards the timeout of each of its callers.
    #[tokio::test(start_paused = true)]
    async fn a_round_that_waits_for_memory_uses_up_no_time_of_those_that_wait_for_it() {
        let rounds: Arc<Rounds<()>> = Arc::default();
        let ask = || {
            let work = |_, deadline: Deadline| async move {
                deadline.wait_for(tokio::time::sleep(Duration::from_secs(300))).await
            };
            rounds.join(wish(60, ""), || "the work".to_owned(), work)
        };
        let later = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            ask().await
        };
        let (first, second, later) = tokio::join!(ask(), ask(), later);
        first.and(second).and(later).unwrap();
    }

    #[tokio::test]
    async fn a_round_that_nobody_waits_for_is_no_obstacle() {
        let scene = Scene::new();
        let (first, second) = (scene.ask(wish(60, "")), scene.ask(wish(60, "")));
        scene.settle().await;
        let next = scene.ask(wish(60, ""));
        scene.settle().await;
        for one in [first, next] {
            one.abort();
            assert!(one.await.unwrap_err().is_cancelled());
        }
        // One caller is left in the first flight; the other flight is cancelled in the queue.
        scene.end_one();
        assert_eq!(second.await.unwrap().unwrap().0, 1);
        let alone = scene.ask(wish(60, ""));
        scene.settle().await;
        alone.abort();
        assert!(alone.await.unwrap_err().is_cancelled());
        let last = scene.ask(wish(60, ""));
        scene.end_one();
        assert_eq!(last.await.unwrap().unwrap().0, 3);
    }
}
