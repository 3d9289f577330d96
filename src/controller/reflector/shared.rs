//! What all passes of this half share.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use tagboat_api::{ImagePolicy, ImageRepository};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch::{self, Receiver};
use tokio::time::timeout;

use super::memory::Memory;
use super::poller::Poller;
use crate::controller::queue::Verdict;
use crate::controller::run_ids::RunIds;
use crate::controller::watches::Watcher;
use crate::metrics::{self, Metrics, ObjectLabels};
use crate::objects::cluster::{
    Announcement, Announcer, Cache, ClusterError, ClusterObjects, ObjectWriter, Occurrence, Written,
};
use crate::objects::{Event, EventType, ObjectName};
use crate::reconcile::course::Next;
use crate::reconcile::policy::run::PolicyOptions;
use crate::reconcile::tags::Shelf;
use crate::tenancy::{FairSemaphore, Permit};

/// What all passes share.
pub(super) struct Shared<R> {
    pub(super) objects: ClusterObjects,
    pub(super) writer: ObjectWriter,
    pub(super) announcer: Announcer,
    pub(super) repositories: Cache<ImageRepository>,
    pub(super) policies: Cache<ImagePolicy>,
    pub(super) registry: R,
    pub(super) shelf: Shelf,
    pub(super) options: PolicyOptions,
    pub(super) metrics: Metrics,
    pub(super) memory: Memory,
    pub(super) poller: Poller,
    pub(super) run_ids: RunIds,
    /// How many passes may be under way beside those that wait for a registry.
    pub(super) places: FairSemaphore,
    /// Whether this process is the one that writes.
    pub(super) is_leader: watch::Sender<bool>,
    pub(super) signals: UnboundedSender<Signal>,
}

/// The kinds of this half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Repository,
    Policy,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Repository => "ImageRepository",
            Self::Policy => "ImagePolicy",
        }
    }
}

/// What the queues are to know.
#[derive(Debug)]
pub(super) enum Signal {
    /// An object is due.
    Wake(Kind, ObjectName),
    /// An object has gone.
    Forget(Kind, ObjectName),
    /// An object has been carried out.
    Done(Kind, ObjectName, Verdict),
}

/// A pass, which tells the queue how it ended, also where it is dropped before its end.
pub(super) struct Done {
    pub(super) kind: Kind,
    pub(super) name: ObjectName,
    pub(super) verdict: Verdict,
    pub(super) begun: Instant,
    place: Option<Permit>,
    /// That it is under way, once it has had a place.
    _under_way: Option<metrics::InFlightTimer>,
    places: FairSemaphore,
    signals: UnboundedSender<Signal>,
}

impl Done {
    /// Waits for one of the places for passes, which namespaces get in turns: a pass takes memory, and very many may be
    /// due at once.
    pub(super) async fn take_place(&mut self) {
        self.place = Some(Box::pin(self.places.acquire(&self.name.namespace, 1)).await);
    }

    /// Makes room for others, for as long as a registry may take its time.
    pub(super) fn make_room(&mut self) {
        self.place = None;
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        // Nobody listens at the end of the process.
        let _ = self.signals.send(Signal::Done(self.kind, self.name.clone(), self.verdict));
    }
}

impl<R: Send + Sync + 'static> Watcher for Shared<R> {
    fn client(&self) -> Client {
        self.objects.client().clone()
    }

    fn announcer(&self) -> &Announcer {
        &self.announcer
    }

    fn writer(&self, kind: &str) -> Option<ObjectWriter> {
        let is_ours = [ImageRepository::kind(&()), ImagePolicy::kind(&())].iter().any(|own| own == kind);
        is_ours.then(|| self.writer.clone())
    }

    fn leadership(&self) -> Receiver<bool> {
        self.is_leader.subscribe()
    }
}

impl<R> Shared<R> {
    /// Makes an object due.
    pub(super) fn wake(&self, kind: Kind, name: ObjectName) {
        self.signal(Signal::Wake(kind, name));
    }

    pub(super) fn signal(&self, signal: Signal) {
        // Nobody listens at the end of the process.
        let _ = self.signals.send(signal);
    }

    /// A pass that begins now, and is made again should it be broken off.
    pub(super) async fn begin(&self, kind: Kind, name: ObjectName) -> Done {
        let (verdict, begun) = (Verdict::Retry, Instant::now());
        let (places, signals) = (self.places.clone(), self.signals.clone());
        let mut done = Done { kind, name, verdict, begun, place: None, _under_way: None, places, signals };
        done.take_place().await;
        done.begun = Instant::now();
        done._under_way = Some(self.metrics.start_timer(kind.name()));
        done
    }

    /// Takes note of how a pass ended.
    pub(super) fn ended(&self, done: &Done, ended: Result<bool, ClusterError>) {
        let is_success = ended.unwrap_or_else(|error| {
            tracing::error!(error = %error, "cannot write to the object, trying again");
            false
        });
        self.metrics.reconciled(&labels(done.kind, &done.name), done.begun.elapsed(), is_success);
    }

    /// Forgets an object that has gone while it was reconciled, or is another controller's by now: nothing will be told
    /// of it again.
    pub(super) fn forget_if_gone(&self, kind: Kind, name: &ObjectName) {
        let is_known = match kind {
            Kind::Repository => self.repositories.get(name).is_some(),
            Kind::Policy => self.policies.get(name).is_some(),
        };
        if !is_known {
            self.forget(kind, name);
        }
    }

    /// Forgets an object that has gone.
    pub(super) fn forget(&self, kind: Kind, name: &ObjectName) {
        match kind {
            Kind::Repository => self.memory.forget_repository(name),
            Kind::Policy => {
                self.memory.forget(name);
                self.unfollow(name);
            }
        }
        self.metrics.forget(&labels(kind, name));
    }

    /// Measures when the digest of a policy is looked up next.
    pub(super) fn measure_next_poll(&self, policy: &ObjectName) {
        // While somebody looks, what was measured before stands.
        if let Some(next) = self.poller.next_of(policy) {
            self.metrics.next_poll(&labels(Kind::Policy, policy), Some(next));
        }
    }

    /// Follows the digest of a policy no longer.
    pub(super) fn unfollow(&self, policy: &ObjectName) {
        self.poller.unsubscribe(policy);
        self.metrics.next_poll(&labels(Kind::Policy, policy), None);
    }

    /// Announces what happened to an object.
    pub(super) async fn announce<K: Resource<DynamicType = ()>>(
        &self,
        kind: Kind,
        object: &K,
        event: &Event,
    ) {
        match event.type_ {
            EventType::Warning => tracing::error!(error = event.reason, "{}", event.message),
            EventType::Normal | EventType::Trace => tracing::info!("{}", event.message),
        }
        let is_trace = event.type_ == EventType::Trace;
        if is_trace && !self.memory.is_worth_recording(kind, &ObjectName::of(object), Instant::now()) {
            return;
        }
        // An answer of the API server may come without kind and version.
        let reference = ObjectReference {
            api_version: Some(K::api_version(&()).into_owned()),
            kind: Some(K::kind(&()).into_owned()),
            ..object.object_ref(&())
        };
        let announcement = Announcement {
            object: reference,
            annotations: object.annotations().clone(),
            event: event.clone(),
            occurrence: Occurrence::Repeated,
            time: Timestamp::now(),
        };
        if let Err(error) = Box::pin(self.announcer.announce(announcement)).await {
            tracing::error!(error = %error, "cannot record the event");
        }
    }
}

/// How long a run may take before the object says that one goes on. What is over in a moment is written once, at its end.
const UNSAID: Duration = Duration::from_secs(1);

/// Makes a status from an object as it stands.
pub(super) type StatusMaker<'a, K, S> = &'a (dyn Fn(&K) -> S + Sync);

/// Does the work of a run on an object. Where that takes its time, `status` is written meanwhile, which says so.
///
/// Gives what came of the work and the object as it is known to be stored, unless it has gone.
///
/// # Errors
///
/// When the status cannot be written.
pub(super) async fn saying_so<K: Written, T>(
    writer: &ObjectWriter,
    object: K,
    status: Option<StatusMaker<'_, K, K::Status>>,
    work: impl Future<Output = T>,
) -> Result<Option<(K, T)>, ClusterError>
where
    K::Status: Serialize + Clone + Default,
{
    let mut work = pin!(work);
    let Some(status) = status else { return Ok(Some((object, work.await))) };
    if let Ok(done) = timeout(UNSAID, &mut work).await {
        return Ok(Some((object, done)));
    }
    let (written, done) = tokio::join!(writer.update_status(&object, status), work);
    Ok(written?.map(|written| (written, done)))
}

/// What the queue is to make of the end of a run.
pub(super) fn verdict(next: Next) -> Verdict {
    match next {
        Next::After(wait) => Verdict::After(wait),
        Next::Retry => Verdict::Retry,
        Next::Wait => Verdict::Wait,
    }
}

fn labels(kind: Kind, name: &ObjectName) -> ObjectLabels {
    let ObjectName { namespace, name } = name.clone();
    ObjectLabels { kind: kind.name(), name, namespace }
}

/// A pass under a name of its own in the log.
pub(super) fn span<R>(shared: &Arc<Shared<R>>, kind: Kind, name: &ObjectName) -> tracing::Span {
    tracing::info_span!(
        "reconcile",
        kind = kind.name(),
        namespace = name.namespace,
        name = name.name,
        reconcile_id = shared.run_ids.next(),
    )
}
