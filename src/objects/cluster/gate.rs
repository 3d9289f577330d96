//! The way to the API server.

use std::future::Future;
use std::time::Duration;

use tokio::time::timeout;

use super::deliveries::Deliveries;
use super::error::ClusterError;
use crate::git::StopSignal;
use crate::metrics::{Metrics, SlotResource};
use crate::tenancy::{FairSemaphore, QueueLimits, SlotLimits};

/// How long the API server may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many requests may be under way at once. Each has a connection of its own.
const AT_ONCE: usize = 16;

/// Bounds of the events that are delayed until the API server takes them. Beyond them, one of the namespace with most is
/// given up.
const DELAYED: QueueLimits = QueueLimits { items: 256, bytes: 16 * 1024 * 1024 };

/// Lets requests through, not too many at once, round robin by namespace, and none for ever, as long as we are the ones
/// who write. Clones share the slots and the delayed events, also those of different controllers.
#[derive(Clone, Debug)]
pub struct Gate {
    slots: FairSemaphore,
    delayed: Deliveries,
    patience: Duration,
    /// Tells that another may be the one who writes.
    deposed: StopSignal,
}

impl Default for Gate {
    fn default() -> Self {
        Self::with(FairSemaphore::new(SlotLimits::shared(AT_ONCE)))
    }
}

impl Gate {
    /// A gate that measures how long namespaces wait for slots.
    pub fn measured(metrics: &Metrics) -> Self {
        Self::with(FairSemaphore::measured(SlotLimits::shared(AT_ONCE), SlotResource::api, metrics))
    }

    fn with(slots: FairSemaphore) -> Self {
        Self { slots, delayed: Deliveries::new(DELAYED), patience: PATIENCE, deposed: StopSignal::default() }
    }

    /// The same slots, for requests that are let through until `deposed` is given.
    #[must_use]
    pub fn until(&self, deposed: StopSignal) -> Self {
        Self { deposed, ..self.clone() }
    }

    /// The same slots, for requests that are not to be waited for as long.
    #[must_use]
    pub fn with_patience(&self, patience: Duration) -> Self {
        Self { patience, ..self.clone() }
    }

    /// The events that are delayed until the API server takes them.
    pub(super) fn delayed(&self) -> &Deliveries {
        &self.delayed
    }

    /// Awaits an answer of the API server, on behalf of a namespace: that of the object which the request is made for.
    ///
    /// # Errors
    ///
    /// When there is none in time, it is a refusal, or the way is closed.
    pub async fn answer<T>(
        &self,
        namespace: &str,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, ClusterError> {
        let _slot = Box::pin(self.slots.acquire(namespace, 1)).await;
        if self.deposed.is_given() {
            return Err(ClusterError::Deposed);
        }
        match timeout(self.patience, request).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(ClusterError::Silent(self.patience)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures::FutureExt;

    use super::super::deliveries::Delivery;
    use super::*;

    type Answer = Result<(), kube::Error>;

    #[tokio::test]
    async fn nothing_gets_through_once_another_may_be_the_leader() {
        let permit = StopSignal::default();
        let gate = Gate::default().until(permit.clone());
        let brief = gate.with_patience(Duration::from_secs(1));
        assert!(matches!(gate.answer("n", async { Ok(1) }).await, Ok(1)));
        permit.give();
        for gate in [gate, brief] {
            let answer = gate.answer("n", async { panic!("nothing is asked") as Answer }).await;
            assert!(matches!(answer, Err(ClusterError::Deposed)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_one_namespace_does_not_keep_out_another() {
        let metrics = Metrics::default();
        let gate = Gate::measured(&metrics);
        let mut flood: Vec<_> =
            (0..100).map(|_| gate.answer("attacker", pending::<Answer>()).boxed()).collect();
        for request in &mut flood {
            assert!(request.now_or_never().is_none());
        }
        let begin = tokio::time::Instant::now();
        // Requests of another half of the controller go through the same slots.
        let other_half = gate.until(StopSignal::default());
        assert!(other_half.answer("victim", async { Ok(()) }).await.is_ok());
        assert!(begin.elapsed() <= SlotLimits::OVERFLOW_AFTER);
        let text = metrics.to_text();
        for (namespace, count) in [("attacker", 16), ("victim", 1)] {
            let line = format!(
                r#"tagboat_slot_wait_seconds_count{{namespace="{namespace}",resource="api"}} {count}"#
            );
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[tokio::test]
    async fn delayed_events_of_all_controllers_have_one_bound() {
        let gate = Gate::default();
        let halves = [gate.until(StopSignal::default()), gate.with_patience(Duration::from_secs(1))];
        let mut given_up = Vec::new();
        for number in 0..=DELAYED.items {
            let (namespace, label) = ("n".to_owned(), number.to_string());
            let delivery = Delivery { namespace, label, bytes: 1, work: pending() };
            given_up.extend(halves[number % 2].delayed().start(delivery));
        }
        assert_eq!(given_up, ["0"]);
    }
}
