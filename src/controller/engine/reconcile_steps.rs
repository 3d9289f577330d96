//! The steps of a reconcile, common to all kinds, in their order.
//!
//! 1. [`Kind::begin`](super::kind::Kind::begin) waits for a slot and guards the reconcile.
//! 2. [`fetch`] gets the object, adds the finalizer, and tells deleted and suspended objects from others.
//! 3. [`with_progress_status`] does the work, and writes meanwhile that it is in progress if it takes long.
//! 4. [`report`], or [`record`] and [`patch_final_status`], announce the result and write it.
//! 5. [`Kind::end`](super::kind::Kind::end) counts the reconcile, and the drop of the guard requeues the object.
//!
//! [`reconcile`] does the first and the last for a kind whose objects are not batched.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::core::object::HasStatus;
use kube::{Resource, ResourceExt};
use tokio::time::timeout;
use tracing::Instrument;

use super::in_flight::InFlight;
use super::kind::{Kind, Reconciler, forget_if_gone, observe};
use crate::objects::cluster::{Announcement, ClusterError, EventIdentity, Watched};
use crate::objects::{Event, EventType, ObjectName};
use crate::reconcile::action::Action;
use crate::reconcile::run::reported_on;
use crate::reconcile::status::Status;

/// The time after which the object states that its run is in progress.
///
/// A shorter run is written once, at its end.
const PROGRESS_DELAY: Duration = Duration::from_secs(1);

/// The status of the objects of a kind.
pub(crate) type StatusOf<R> = <<R as Reconciler>::Object as HasStatus>::Status;

/// Makes a status from the current object.
pub(crate) type StatusMaker<'a, K, S> = &'a (dyn Fn(&K) -> S + Sync);

/// Reconciles one object.
pub(crate) type Work<R> =
    for<'a> fn(&'a Arc<R>, &'a mut InFlight) -> BoxFuture<'a, Result<Action, ClusterError>>;

/// An object at the beginning of a reconcile.
pub(crate) enum Fetched<K> {
    /// The object does not exist any more, or is another controller's by now.
    Gone,
    /// The object is about to be deleted. After [`finalize`] it is gone.
    Deleted(Arc<K>),
    /// The object is suspended.
    Suspended(K),
    /// The object is to be reconciled.
    Active(K),
}

/// Reconciles an object that is due.
pub(crate) async fn reconcile<R: Reconciler>(reconciler: Arc<R>, name: ObjectName, work: Work<R>) {
    let span = reconciler.kind().span(&name);
    let mut in_flight = reconciler.kind().begin(name).await;
    Box::pin(async {
        let result = work(&reconciler, &mut in_flight).await;
        reconciler.kind().end(&mut in_flight, result);
        forget_if_gone(reconciler.as_ref(), &in_flight.name);
    })
    .instrument(span)
    .await;
}

/// Fetches a due object, and adds our finalizer if the object does not have it.
///
/// # Errors
///
/// If the finalizer cannot be written.
pub(crate) async fn fetch<R: Reconciler>(
    reconciler: &R,
    name: &ObjectName,
) -> Result<Fetched<R::Object>, ClusterError> {
    let kind = reconciler.kind();
    let Some(known) = kind.cache.get(name) else { return Ok(Fetched::Gone) };
    if known.meta().deletion_timestamp.is_some() {
        return Ok(Fetched::Deleted(known));
    }
    let object = match finalizer(kind) {
        Some(finalizer) => {
            let added = kind.context.writer.add_finalizer(known.as_ref(), finalizer).await?;
            let Some(added) = added else { return Ok(Fetched::Gone) };
            observe(reconciler, &added);
            added
        }
        None => Arc::unwrap_or_clone(known),
    };
    if (kind.options.is_suspended)(&object) {
        // A request that comes meanwhile is for the time after.
        tracing::info!("reconciliation is suspended for this object");
        return Ok(Fetched::Suspended(object));
    }
    Ok(Fetched::Active(object))
}

/// Removes our finalizer from an object for which nothing is held any more.
///
/// # Errors
///
/// If the finalizer cannot be written.
pub(crate) async fn finalize<K: Watched>(kind: &Kind<K>, object: &K) -> Result<(), ClusterError> {
    match finalizer(kind) {
        Some(finalizer) => kind.context.writer.remove_finalizer(object, finalizer).await,
        None => Ok(()),
    }
}

fn finalizer<K>(kind: &Kind<K>) -> Option<&'static str> {
    kind.options.finalizer.filter(|_| !kind.context.is_dry_run)
}

/// Does the work of a reconcile, without its slot.
///
/// If the work takes long, `status` is written meanwhile, which states that the run is in progress. Returns
/// the result of the work and the object as it is known to be stored, unless it was deleted.
///
/// # Errors
///
/// If the status cannot be written.
pub(crate) async fn with_progress_status<R: Reconciler, T>(
    reconciler: &R,
    in_flight: &mut InFlight,
    object: R::Object,
    status: Option<StatusMaker<'_, R::Object, StatusOf<R>>>,
    work: impl Future<Output = T>,
) -> Result<Option<(R::Object, T)>, ClusterError>
where
    StatusOf<R>: Status,
{
    in_flight.release_slot();
    let mut work = pin!(work);
    let done = match status {
        None => Some((object, work.await)),
        Some(status) => match timeout(PROGRESS_DELAY, &mut work).await {
            Ok(done) => Some((object, done)),
            Err(_) => {
                let writer = &reconciler.kind().context.writer;
                let (written, done) = tokio::join!(writer.patch_status(&object, status), work);
                written?.map(|written| (written, done))
            }
        },
    };
    in_flight.acquire_slot().await;
    if let Some((initial, _)) = &done {
        observe(reconciler, initial);
    }
    Ok(done)
}

/// Logs and records the events of a run while it patches the status.
///
/// The status is patched as by [`patch_final_status`].
///
/// # Errors
///
/// If the status cannot be written.
pub(crate) async fn report<R: Reconciler>(
    reconciler: &R,
    initial: &R::Object,
    previous: &StatusOf<R>,
    events: &[Event],
    status: &(dyn Fn(&StatusOf<R>) -> StatusOf<R> + Sync),
) -> Result<Option<R::Object>, ClusterError>
where
    StatusOf<R>: Status,
{
    let recording = async {
        for event in events {
            log_event(event);
            record(reconciler.kind(), initial, event, EventIdentity::Repeated).await;
        }
    };
    let ((), written) = tokio::join!(recording, patch_final_status(reconciler, initial, previous, status));
    written
}

/// Patches the status after a run.
///
/// `initial` is the object as it was stored when the run began, and `previous` the status before that. `status`
/// makes the new status from the one on which the run is reported. Returns the object as it then is, unless
/// it was deleted.
///
/// # Errors
///
/// If the status cannot be written.
pub(crate) async fn patch_final_status<R: Reconciler>(
    reconciler: &R,
    initial: &R::Object,
    previous: &StatusOf<R>,
    status: &(dyn Fn(&StatusOf<R>) -> StatusOf<R> + Sync),
) -> Result<Option<R::Object>, ClusterError>
where
    StatusOf<R>: Status,
{
    let initial_status = status_of(initial);
    let status = |current: &R::Object| status(&reported_on(previous, &initial_status, &status_of(current)));
    patch_status(reconciler, initial, &status).await
}

/// Patches the status of an object (JSON merge patch), and returns the updated object.
///
/// Returns `None` if the object was deleted.
///
/// # Errors
///
/// If the status cannot be written.
pub(crate) async fn patch_status<R: Reconciler>(
    reconciler: &R,
    object: &R::Object,
    status: StatusMaker<'_, R::Object, StatusOf<R>>,
) -> Result<Option<R::Object>, ClusterError> {
    let written = reconciler.kind().context.writer.patch_status(object, status).await?;
    written.iter().for_each(|written| observe(reconciler, written));
    Ok(written)
}

/// Logs an event of an object.
pub(crate) fn log_event(event: &Event) {
    match event.type_ {
        EventType::Warning => tracing::error!(error = event.reason, "{}", event.message),
        EventType::Normal | EventType::Trace => tracing::info!("{}", event.message),
    }
}

/// Records an event about an object, and notifies of it. Trace events are limited.
pub(crate) async fn record<K: Watched>(kind: &Kind<K>, object: &K, event: &Event, identity: EventIdentity) {
    let is_trace = event.type_ == EventType::Trace;
    let interval = kind.options.trace_interval;
    if is_trace && !kind.traces.admits(&ObjectName::of(object), interval, Instant::now()) {
        return;
    }
    let announcement = Announcement {
        object: object.object_ref(&()),
        annotations: object.annotations().clone(),
        event: event.clone(),
        identity,
        time: Timestamp::now(),
    };
    kind.context.announce(announcement).await;
}

/// Returns the status of an object; an empty one if it has none.
pub(crate) fn status_of<K: HasStatus>(object: &K) -> K::Status
where
    K::Status: Clone + Default,
{
    object.status().cloned().unwrap_or_default()
}
