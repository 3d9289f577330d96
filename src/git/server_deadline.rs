//! Waits of a transaction for memory and threads, which do not count towards its deadlines.

use std::cell::Cell;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::time::sleep;

use super::context::WriterContext;
use crate::cancel::Cancellation;
use crate::tenancy::Capacity;

/// The deadline for the answers of a server.
/// Waits that the server does not cause postpone it.
#[derive(Debug)]
pub(super) struct ServerDeadline {
    end: Cell<Instant>,
    timeout: Duration,
}

/// The reason why a wait for memory or a thread ended without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotGranted {
    /// A proposal was cancelled, or all work must end.
    Cancelled,
    /// Nothing was free for too long.
    TooLong,
}

impl ServerDeadline {
    /// Creates a deadline that is `timeout` from now.
    pub(super) fn after(timeout: Duration) -> Self {
        Self { end: Cell::new(Instant::now() + timeout), timeout }
    }

    /// Returns the current deadline.
    pub(super) fn get(&self) -> Instant {
        self.end.get()
    }

    /// Returns the timeout with which it was created.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns the time that is left.
    pub(super) fn remaining(&self) -> Duration {
        self.get().saturating_duration_since(Instant::now())
    }

    /// Runs `wait`, whose time does not count.
    pub(super) fn pause<T>(&self, wait: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = wait();
        self.end.set(self.get() + begin.elapsed());
        result
    }
}

/// Waits for memory or a thread on a blocking thread, until the work is cancelled.
///
/// # Errors
///
/// If one of the proposals is cancelled, all work must end, or the wait is too long.
pub(super) fn wait_for<T>(
    context: &WriterContext,
    cancellations: &[Cancellation],
    capacity: impl Future<Output = T>,
) -> Result<T, NotGranted> {
    wait_at_most(Capacity::MAX_WAIT, context, cancellations, capacity)
}

fn wait_at_most<T>(
    longest: Duration,
    context: &WriterContext,
    cancellations: &[Cancellation],
    capacity: impl Future<Output = T>,
) -> Result<T, NotGranted> {
    Handle::current().block_on(async {
        tokio::select! {
            biased;
            granted = capacity => Ok(granted),
            () = context.stop.cancelled() => Err(NotGranted::Cancelled),
            () = Cancellation::any_cancelled(cancellations) => Err(NotGranted::Cancelled),
            () = sleep(longest) => Err(NotGranted::TooLong),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;

    use futures::FutureExt;
    use tokio::task::spawn_blocking;

    use super::*;
    use crate::git::command::Git;
    use crate::git::remote::{LISTINGS, TRANSFER_MEMORY};
    use crate::git::slots::{RouteKey, TransactionSlots};
    use crate::metrics::Metrics;
    use crate::tenancy::MemoryBudget;
    use crate::update::ReportedMarkers;

    /// A wait for memory does not count towards the timeout of git.
    /// Formerly, a plan of the same namespace that took a minute made git time out before it started.
    #[tokio::test]
    async fn a_wait_for_memory_does_not_shorten_the_timeout_of_git() {
        const TIMEOUT: Duration = Duration::from_secs(3);
        let capacity = Capacity { memory: MemoryBudget::new(100), ..Capacity::default() };
        let held = capacity.memory.reserve("n", 100).await;
        let context = WriterContext { capacity, ..WriterContext::default() };
        let directory = tempfile::tempdir().unwrap();
        let lock = Arc::new(File::create(directory.path().join("lock")).unwrap());
        let git = Git::on_repository(directory.path(), lock, context);
        let call = spawn_blocking(move || {
            let slots = TransactionSlots::limited(1, &Metrics::default());
            let slot = Handle::current().block_on(slots.acquire("n", &RouteKey::default()));
            let deadline = ServerDeadline::after(TIMEOUT);
            let mut call = git.call("version");
            (call.memory, call.slot, call.deadline) = (Some(10), Some(&slot), Some(&deadline));
            call.run()
        });
        tokio::time::sleep(TIMEOUT + Duration::from_millis(200)).await;
        assert!(!call.is_finished());
        drop(held);
        call.await.unwrap().unwrap();
    }

    /// A plan needs no memory that its namespace holds for servers.
    ///
    /// Formerly, the plan and the transfers together took more than a namespace may hold, so that a plan
    /// waited for servers that never answer.
    #[tokio::test]
    async fn a_plan_fits_beside_all_that_its_namespace_may_hold_for_servers() {
        let memory = MemoryBudget::default();
        let mut transfers = Vec::new();
        while let Some(transfer) = memory.reserve_for_server("n", TRANSFER_MEMORY).now_or_never() {
            transfers.push(transfer);
        }
        assert!(!transfers.is_empty());
        let plan = u64::try_from(ReportedMarkers::Warnings.max_bytes()).unwrap();
        assert!(memory.reserve("n", plan).now_or_never().is_some());
    }

    /// A listing that comes slowly takes no more memory than is reserved.
    /// Formerly, eight servers that sent their lists slowly took 32 MiB each, where 8 MiB were reserved.
    #[test]
    fn a_slow_list_takes_only_the_reserved_memory() {
        let [first, second, _all_that_a_namespace_may_hold_for_servers] = LISTINGS;
        for memory in [first, second] {
            assert!(memory.limit << 20 <= memory.reserved);
        }
    }

    #[test]
    fn a_wait_for_memory_uses_up_none_of_a_servers_time() {
        let deadline = ServerDeadline::after(Duration::from_secs(60));
        let before = deadline.get();
        deadline.pause(|| std::thread::sleep(Duration::from_millis(20)));
        assert!(deadline.get() >= before + Duration::from_millis(20));
        assert!(deadline.remaining() > Duration::from_secs(50));
    }

    #[tokio::test]
    async fn a_wait_ends_when_it_is_cancelled_or_takes_too_long() {
        let wait = |longest, cancellation: Cancellation| {
            spawn_blocking(move || {
                let never = std::future::pending::<()>();
                wait_at_most(longest, &WriterContext::default(), &[cancellation], never)
            })
        };
        let cancellation = Cancellation::default();
        let waiting = wait(Duration::from_secs(600), cancellation.clone());
        cancellation.cancel();
        assert_eq!(waiting.await.unwrap(), Err(NotGranted::Cancelled));
        assert_eq!(wait(Duration::ZERO, Cancellation::default()).await.unwrap(), Err(NotGranted::TooLong));
    }
}
