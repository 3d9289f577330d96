//! Background deliveries, bounded and fair by namespace.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::tenancy::{FairQueue, QueueLimits};

/// The deliveries in flight; clones share them.
///
/// Beyond a bound, the oldest delivery of the namespace with the most is canceled.
#[derive(Clone, Debug)]
pub(super) struct Deliveries(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    tasks: Mutex<FairQueue<Task>>,
    became_idle: Notify,
}

#[derive(Debug)]
struct Task {
    /// The object of the delivery, for the log.
    label: String,
    handle: AbortHandle,
}

/// A delivery to start.
#[derive(Debug)]
pub(super) struct Delivery<F> {
    /// The namespace that it counts for.
    pub(super) namespace: String,
    /// The object of the delivery, for the log.
    pub(super) label: String,
    /// The memory that it takes, in bytes.
    pub(super) bytes: usize,
    /// The future that delivers.
    pub(super) work: F,
}

/// Removes a delivery from the table when it ends or is canceled.
struct InFlight {
    deliveries: Deliveries,
    namespace: String,
    id: u64,
}

impl Deliveries {
    /// Makes an empty table.
    pub(super) fn new(limits: QueueLimits) -> Self {
        let tasks = Mutex::new(FairQueue::new(limits));
        Self(Arc::new(Inner { tasks, became_idle: Notify::new() }))
    }

    /// Starts a delivery; returns the labels of the deliveries that were canceled for it.
    pub(super) fn start<F>(&self, delivery: Delivery<F>) -> Vec<String>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let Delivery { namespace, label, bytes, work } = delivery;
        let mut tasks = self.0.tasks.lock();
        let id = tasks.next_id();
        let in_flight = InFlight { deliveries: self.clone(), namespace: namespace.clone(), id };
        let task = tokio::spawn(async move {
            let _in_flight = in_flight;
            work.await;
        });
        // The task cannot end before it is in the table, because the table is locked.
        let displaced = tasks.push(&namespace, id, bytes, Task { label, handle: task.abort_handle() });
        drop(tasks);
        displaced.iter().for_each(|task| task.handle.abort());
        displaced.into_iter().map(|task| task.label).collect()
    }

    /// Waits until nothing is in flight, at most `limit`.
    pub(super) async fn drain(&self, limit: Duration) {
        let idle = async {
            loop {
                let became_idle = self.0.became_idle.notified();
                if self.0.tasks.lock().is_empty() {
                    return;
                }
                became_idle.await;
            }
        };
        let _ = timeout(limit, idle).await;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut tasks = self.deliveries.0.tasks.lock();
        tasks.remove(&self.namespace, self.id);
        if tasks.is_empty() {
            self.deliveries.0.became_idle.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::sync::oneshot;

    use super::*;

    fn start(
        deliveries: &Deliveries,
        namespace: &str,
        label: &str,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Vec<String> {
        let (namespace, label) = (namespace.to_owned(), label.to_owned());
        deliveries.start(Delivery { namespace, label, bytes: 1, work })
    }

    #[tokio::test]
    async fn a_flood_evicts_its_own_deliveries() {
        let deliveries = Deliveries::new(QueueLimits { items: 3, bytes: 100 });
        let (proceed, may_proceed) = oneshot::channel();
        let (arrive, arrived) = oneshot::channel();
        let victim = async move {
            let _ = may_proceed.await;
            let _ = arrive.send(());
        };
        assert!(start(&deliveries, "victim", "v", victim).is_empty());
        let mut given_up = Vec::new();
        for number in 0..10 {
            given_up.extend(start(&deliveries, "attacker", &number.to_string(), pending()));
        }
        assert_eq!(given_up, ["0", "1", "2", "3", "4", "5", "6", "7"]);
        proceed.send(()).unwrap();
        arrived.await.expect("the victim's delivery arrives");
    }

    #[tokio::test]
    async fn the_shutdown_waits_for_deliveries_in_flight() {
        let deliveries = Deliveries::new(QueueLimits { items: 3, bytes: 100 });
        deliveries.drain(Duration::from_secs(60)).await;
        let (arrive, mut arrived) = oneshot::channel();
        start(&deliveries, "n", "a", async move {
            tokio::task::yield_now().await;
            let _ = arrive.send(());
        });
        deliveries.drain(Duration::from_secs(60)).await;
        assert!(arrived.try_recv().is_ok());
        start(&deliveries, "n", "b", pending());
        deliveries.drain(Duration::from_millis(1)).await;
        assert!(!deliveries.0.tasks.lock().is_empty());
    }
}
