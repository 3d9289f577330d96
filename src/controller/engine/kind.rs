//! One kind of objects in the engine: its cache, queue, and reconciles in flight.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::ResourceExt;
use kube::core::ObjectMeta;
use kube::core::object::HasStatus;
use serde::Serialize;
use tokio::sync::mpsc::UnboundedSender;
use tracing::Span;

use super::context::Context;
use super::in_flight::{Cancellations, InFlight};
use super::predicates::{is_due, is_unwanted};
use super::queue::Message;
use super::traces::TraceLimiter;
use super::watch::Report;
use crate::error::chain;
use crate::metrics::ObjectLabels;
use crate::objects::ObjectName;
use crate::objects::cluster::{Cache, Change, ClusterError, Watched};
use crate::reconcile::action::Action;
use crate::tenancy::Rate;

/// The properties of a kind that the engine goes by.
pub(crate) struct KindOptions<K> {
    /// The kind in logs and metrics.
    pub(crate) name: &'static str,
    /// The finalizer of our objects; `None` if a deleted object has nothing to release.
    pub(crate) finalizer: Option<&'static str>,
    /// Returns whether an object is suspended.
    pub(crate) is_suspended: fn(&K) -> bool,
    /// The time for which changes are collected before an object is reconciled.
    pub(crate) debounce: Duration,
    /// The rate at which one object may be reconciled.
    pub(crate) rate: Rate,
    /// The shortest time between two trace events of an object that are recorded.
    pub(crate) trace_interval: Duration,
}

/// Reconciler of one kind: the state that its reconciles share.
///
/// A kind implements this, and a function that reconciles one object by the steps of
/// [`reconcile_steps`](super::reconcile_steps).
pub(crate) trait Reconciler: Send + Sync + 'static {
    /// The type of the objects.
    type Object: Watched + HasStatus<Status: Serialize>;

    /// Returns the engine's part of the kind.
    fn kind(&self) -> &Kind<Self::Object>;

    /// Forgets the state of a deleted object.
    fn forget(&self, name: &ObjectName);

    /// Handles the effects of a change on other objects, once its own queue has it.
    fn related_changes(&self, _: &Change<Self::Object>) {}

    /// Handles an object that cannot be read, before it counts as deleted.
    fn unreadable(&self, _: &ObjectMeta) {}

    /// Handles the end of such an object: it is gone, or can be read again.
    fn no_longer_unreadable(&self, _: &ObjectName) {}
}

/// One kind of objects in the engine.
pub(crate) struct Kind<K> {
    pub(crate) context: Arc<Context>,
    pub(crate) cache: Cache<K>,
    pub(super) options: KindOptions<K>,
    pub(super) traces: TraceLimiter,
    cancellations: Cancellations,
    queue: UnboundedSender<Message>,
}

impl<K: Watched> Kind<K> {
    pub(super) fn new(
        context: Arc<Context>,
        cache: Cache<K>,
        options: KindOptions<K>,
        queue: UnboundedSender<Message>,
    ) -> Self {
        let (traces, cancellations) = (TraceLimiter::default(), Cancellations::default());
        Self { context, cache, options, traces, cancellations, queue }
    }

    /// Makes an object due.
    pub(crate) fn enqueue(&self, name: ObjectName) {
        self.enqueue_after(name, self.options.debounce);
    }

    /// Makes an object due after a time.
    pub(crate) fn enqueue_after(&self, name: ObjectName, wait: Duration) {
        self.send(Message::Enqueue(name, wait));
    }

    fn send(&self, message: Message) {
        // The receiver is gone at the end of the process.
        let _ = self.queue.send(message);
    }

    /// Cancels the reconcile of an object, if one is in flight.
    pub(crate) fn cancel(&self, name: &ObjectName) {
        self.cancellations.cancel(name);
    }

    /// Handles a change of an object.
    ///
    /// It cancels the object's reconcile if that is not wanted any more, and makes the object due if the
    /// change requires it.
    fn changed(&self, change: &Change<K>) {
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        if is_unwanted(old, new, self.options.is_suspended) {
            self.cancel(&change.name);
        }
        match new {
            None => self.send(Message::Forget(change.name.clone())),
            Some(new) if is_due(old, new) => self.enqueue(change.name.clone()),
            Some(_) => {}
        }
    }

    /// Returns whether an object exists and is not about to be deleted.
    pub(crate) fn is_live(&self, name: &ObjectName) -> bool {
        self.cache.get(name).is_some_and(|known| known.meta().deletion_timestamp.is_none())
    }

    /// Begins a reconcile, as soon as there is a slot for it.
    pub(crate) async fn begin(&self, name: ObjectName) -> InFlight {
        let (slots, cancellations) = (self.context.slots.clone(), self.cancellations.clone());
        let mut in_flight = InFlight::new(name, slots, cancellations, self.queue.clone());
        in_flight.acquire_slot().await;
        in_flight.started = Instant::now();
        in_flight.timer = Some(self.context.metrics.start_timer(self.options.name));
        self.cancellations.add(&in_flight.name, in_flight.cancellation.clone());
        in_flight
    }

    /// Ends a reconcile: sets its requeue, logs its error, and counts it.
    ///
    /// A retry counts as a failure.
    pub(crate) fn end(&self, in_flight: &mut InFlight, result: Result<Action, ClusterError>) {
        in_flight.action = result.unwrap_or_else(|error| {
            tracing::error!(error = chain(&error), "cannot write to the object, retrying");
            Action::Retry
        });
        let is_success = in_flight.action != Action::Retry;
        let labels = self.labels(&in_flight.name);
        self.context.metrics.reconciled(&labels, in_flight.started.elapsed(), is_success);
    }

    /// Returns the labels of an object's metrics.
    pub(crate) fn labels(&self, name: &ObjectName) -> ObjectLabels {
        let ObjectName { namespace, name } = name.clone();
        ObjectLabels { kind: self.options.name, name, namespace }
    }

    /// Returns the span of a reconcile, with an id of its own.
    pub(crate) fn span(&self, name: &ObjectName) -> Span {
        tracing::info_span!(
            "reconcile",
            kind = self.options.name,
            namespace = name.namespace,
            name = name.name,
            reconcile_id = self.context.run_ids.next(),
        )
    }
}

/// Handles a report of the watch.
pub(super) fn reported<R: Reconciler>(reconciler: &R, report: &Report<'_, R::Object>) {
    match report {
        Report::Changed(change) => changed(reconciler, change),
        Report::Unreadable(metadata) => reconciler.unreadable(metadata),
        Report::NoLongerUnreadable(name) => reconciler.no_longer_unreadable(name),
    }
}

/// Handles a change of an object.
fn changed<R: Reconciler>(reconciler: &R, change: &Change<R::Object>) {
    if change.new.is_none() {
        forget(reconciler, &change.name);
    }
    reconciler.kind().changed(change);
    reconciler.related_changes(change);
}

/// Puts an object of a response of the API server into the cache.
///
/// A change that another client made meanwhile takes effect here: the watch reports nothing that the cache has.
pub(super) fn observe<R: Reconciler>(reconciler: &R, object: &R::Object) {
    let mut object = object.clone();
    object.managed_fields_mut().clear();
    if let Some(change) = reconciler.kind().cache.apply_written(object) {
        changed(reconciler, &change);
    }
}

/// Forgets an object that the controller does not see any more.
///
/// It was deleted while it was reconciled, or is another controller's by now, so no further event arrives for
/// it.
pub(crate) fn forget_if_gone<R: Reconciler>(reconciler: &R, name: &ObjectName) {
    if reconciler.kind().cache.get(name).is_none() {
        forget(reconciler, name);
    }
}

fn forget<R: Reconciler>(reconciler: &R, name: &ObjectName) {
    let kind = reconciler.kind();
    reconciler.forget(name);
    kind.traces.forget(name);
    kind.context.metrics.forget(&kind.labels(name));
}
