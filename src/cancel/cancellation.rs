//! Cancellation of one proposal.

use std::future::pending;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::watch;

/// Cancels the work on a proposal.
/// Its git processes are killed, and nothing is pushed for it from then on.
///
/// Clones share their state. A push that is in flight at the cancellation may succeed all the same. Work without a
/// process, such as planning, may go on for a while; its result is discarded.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<watch::Sender<State>>);

#[derive(Clone, Copy, Debug, Default)]
struct State {
    is_cancelled: bool,
    /// The number of git processes that run for the proposal.
    processes: usize,
}

/// A git process that runs for a proposal, counted until this is dropped.
#[derive(Debug)]
pub struct ProcessGuard(Cancellation);

impl Cancellation {
    /// Cancels the proposal.
    pub fn cancel(&self) {
        self.0.send_modify(|state| state.is_cancelled = true);
    }

    /// Returns true if the proposal was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.borrow().is_cancelled
    }

    /// Waits until the proposal is cancelled.
    pub async fn cancelled(&self) {
        // This holds a sender, so the wait ends with its condition.
        let _ = self.0.subscribe().wait_for(|state| state.is_cancelled).await;
    }

    /// Waits until one of several proposals is cancelled; forever if there is none.
    pub async fn any_cancelled(cancellations: &[Self]) {
        let mut waits: FuturesUnordered<_> = cancellations.iter().map(Self::cancelled).collect();
        if waits.next().await.is_none() {
            pending::<()>().await;
        }
    }

    /// Waits until the proposal is cancelled and no git process runs for it.
    /// From then on, nothing is pushed for it.
    pub async fn finished(&self) {
        let _ = self.0.subscribe().wait_for(|state| state.is_cancelled && state.processes == 0).await;
    }

    /// Counts a git process that is about to start.
    /// Returns `None` if the proposal was cancelled.
    pub fn start_process(&self) -> Option<ProcessGuard> {
        let has_started = self.0.send_if_modified(|state| {
            if !state.is_cancelled {
                state.processes += 1;
            }
            !state.is_cancelled
        });
        has_started.then(|| ProcessGuard(self.clone()))
    }
}

impl Drop for ProcessGuard {
    fn drop(&mut self) {
        self.0.0.send_modify(|state| state.processes -= 1);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_cancelled_proposal_is_finished_when_its_processes_have_ended() {
        let cancellation = Cancellation::default();
        let processes = [cancellation.start_process().unwrap(), cancellation.start_process().unwrap()];
        cancellation.clone().cancel();
        assert!(cancellation.is_cancelled() && cancellation.cancelled().now_or_never().is_some());
        assert!(cancellation.finished().now_or_never().is_none());
        drop(processes);
        assert!(cancellation.finished().now_or_never().is_some());
    }

    #[test]
    fn no_process_starts_for_a_cancelled_proposal() {
        let cancellation = Cancellation::default();
        drop(cancellation.start_process().unwrap());
        assert!(cancellation.finished().now_or_never().is_none());
        cancellation.cancel();
        assert!(cancellation.start_process().is_none());
        assert!(cancellation.finished().now_or_never().is_some());
    }

    #[test]
    fn a_wait_for_several_ends_with_the_first() {
        let cancellations = [Cancellation::default(), Cancellation::default()];
        assert!(Cancellation::any_cancelled(&[]).now_or_never().is_none());
        assert!(Cancellation::any_cancelled(&cancellations).now_or_never().is_none());
        cancellations[1].cancel();
        assert!(Cancellation::any_cancelled(&cancellations).now_or_never().is_some());
    }
}
