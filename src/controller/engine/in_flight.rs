//! The reconciles in flight: a guard for each, and their cancellation.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedSender;

use super::queue::Message;
use crate::cancel::Cancellation;
use crate::metrics;
use crate::objects::ObjectName;
use crate::reconcile::action::Action;
use crate::tenancy::{FairSemaphore, Permit};

/// The cancellations of the reconciles in flight, at most one per object. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Cancellations(Arc<Mutex<HashMap<ObjectName, Cancellation>>>);

impl Cancellations {
    /// Adds a reconcile.
    ///
    /// Changes of its object that become known from now on can cancel it.
    pub(super) fn add(&self, name: &ObjectName, cancellation: Cancellation) {
        self.0.lock().insert(name.clone(), cancellation);
    }

    /// Cancels the reconcile of an object, if one is in flight.
    pub(super) fn cancel(&self, name: &ObjectName) {
        if let Some(cancellation) = self.0.lock().get(name) {
            cancellation.cancel();
        }
    }
}

/// A reconcile in flight.
///
/// Its drop is reported to the queue, even an early one.
pub(crate) struct InFlight {
    pub(crate) name: ObjectName,
    /// The requeue after the reconcile; [`Action::Retry`] until another one is set.
    pub(crate) action: Action,
    /// The time at which the reconcile began, without the wait for a slot.
    pub(super) started: Instant,
    /// Cancelled once the object is deleted, suspended, frozen or no longer selected.
    pub(crate) cancellation: Cancellation,
    /// Counts the reconcile as in flight in the metrics.
    pub(super) timer: Option<metrics::InFlightTimer>,
    slots: Option<FairSemaphore>,
    slot: Option<Permit>,
    cancellations: Cancellations,
    queue: UnboundedSender<Message>,
}

impl InFlight {
    pub(super) fn new(
        name: ObjectName,
        slots: Option<FairSemaphore>,
        cancellations: Cancellations,
        queue: UnboundedSender<Message>,
    ) -> Self {
        let (action, started, cancellation) = (Action::Retry, Instant::now(), Cancellation::default());
        Self { name, action, started, cancellation, timer: None, slots, slot: None, cancellations, queue }
    }

    /// Waits for a slot; namespaces get slots in turns.
    ///
    /// A reconcile takes memory, and very many may be due at once.
    pub(crate) async fn acquire_slot(&mut self) {
        if let Some(slots) = &self.slots {
            self.slot = Some(Box::pin(slots.acquire(&self.name.namespace, 1)).await);
        }
    }

    /// Releases the slot for as long as the reconcile waits for a server.
    pub(crate) fn release_slot(&mut self) {
        self.slot = None;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.cancellations.0.lock().remove(&self.name);
        // The receiver is gone at the end of the process.
        let _ = self.queue.send(Message::Done(self.name.clone(), self.action));
    }
}
