//! The guard of requests to the API server: semaphore, timeout and fence.

use std::future::Future;
use std::time::Duration;

use tokio::time::timeout;

use super::deliveries::Deliveries;
use super::error::ClusterError;
use crate::cancel::StopToken;
use crate::metrics::{Metrics, SlotResource};
use crate::tenancy::{FairSemaphore, QueueLimits, SlotLimits};

/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum number of requests in flight. Each has a connection of its own.
const MAX_IN_FLIGHT: usize = 16;

/// The bounds of the events that are delayed while the API server is unavailable.
///
/// Beyond them, an event of the namespace with the most is dropped.
const DELAYED_EVENTS: QueueLimits = QueueLimits { items: 256, bytes: 16 * 1024 * 1024 };

/// Guards requests to the API server.
///
/// A semaphore, fair by namespace, bounds the requests in flight; each request has a timeout; and no request is sent
/// once we may not be the leader any more. Clones share the semaphore and the delayed events, also those of different
/// controllers.
#[derive(Clone, Debug)]
pub struct ApiGuard {
    slots: FairSemaphore,
    delayed: Deliveries,
    timeout: Duration,
    /// Set once another process may be the leader.
    fence: StopToken,
}

impl Default for ApiGuard {
    fn default() -> Self {
        Self::with(FairSemaphore::new(SlotLimits::shared(MAX_IN_FLIGHT)))
    }
}

impl ApiGuard {
    /// Makes a guard that measures the waits of namespaces for slots.
    pub fn measured(metrics: &Metrics) -> Self {
        Self::with(FairSemaphore::measured(SlotLimits::shared(MAX_IN_FLIGHT), SlotResource::api, metrics))
    }

    fn with(slots: FairSemaphore) -> Self {
        Self {
            slots,
            delayed: Deliveries::new(DELAYED_EVENTS),
            timeout: TIMEOUT,
            fence: StopToken::default(),
        }
    }

    /// Returns a guard with the same slots that sends no requests once `fence` is set.
    #[must_use]
    pub fn with_fence(&self, fence: StopToken) -> Self {
        Self { fence, ..self.clone() }
    }

    /// Returns a guard with the same slots and another timeout.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { timeout, ..self.clone() }
    }

    /// Returns the events that are delayed while the API server is unavailable.
    pub(super) fn delayed(&self) -> &Deliveries {
        &self.delayed
    }

    /// Sends a request for a namespace.
    ///
    /// It is the namespace of the object for which the request is made.
    ///
    /// # Errors
    ///
    /// If there is no response in time, it is an error, or another process may be the leader.
    pub async fn send<T>(
        &self,
        namespace: &str,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, ClusterError> {
        let _slot = Box::pin(self.slots.acquire(namespace, 1)).await;
        if self.fence.is_cancelled() {
            return Err(ClusterError::Fenced);
        }
        match timeout(self.timeout, request).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(ClusterError::Timeout(self.timeout)),
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
    async fn no_write_is_sent_once_another_process_may_be_the_leader() {
        let permit = StopToken::default();
        let guard = ApiGuard::default().with_fence(permit.clone());
        let brief = guard.with_timeout(Duration::from_secs(1));
        assert!(matches!(guard.send("n", async { Ok(1) }).await, Ok(1)));
        permit.cancel();
        for guard in [guard, brief] {
            let answer = guard.send("n", async { panic!("nothing is asked") as Answer }).await;
            assert!(matches!(answer, Err(ClusterError::Fenced)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_one_namespace_does_not_keep_out_another() {
        let metrics = Metrics::default();
        let guard = ApiGuard::measured(&metrics);
        let mut flood: Vec<_> =
            (0..100).map(|_| guard.send("attacker", pending::<Answer>()).boxed()).collect();
        for request in &mut flood {
            assert!(request.now_or_never().is_none());
        }
        let begin = tokio::time::Instant::now();
        // The requests of another controller share the slots.
        let other = guard.with_fence(StopToken::default());
        assert!(other.send("victim", async { Ok(()) }).await.is_ok());
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
        let guard = ApiGuard::default();
        let guards = [guard.with_fence(StopToken::default()), guard.with_timeout(Duration::from_secs(1))];
        let mut given_up = Vec::new();
        for number in 0..=DELAYED_EVENTS.items {
            let (namespace, label) = ("n".to_owned(), number.to_string());
            let delivery = Delivery { namespace, label, bytes: 1, work: pending() };
            given_up.extend(guards[number % 2].delayed().start(delivery));
        }
        assert_eq!(given_up, ["0"]);
    }
}
