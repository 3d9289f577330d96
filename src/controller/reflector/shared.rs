//! What all passes of this half share.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Client, Resource, ResourceExt};
use tagboat_api::{ImagePolicy, ImageRepository};
use tokio::sync::mpsc::UnboundedSender;

use super::memory::Memory;
use super::poller::Poller;
use crate::controller::queue::Verdict;
use crate::controller::watches::Watcher;
use crate::controller::work::RunIds;
use crate::metrics::{Metrics, ObjectLabels};
use crate::objects::cluster::{
    Announcement, Announcer, Cache, ClusterError, ClusterObjects, ObjectWriter, Occurrence,
};
use crate::objects::{Event, EventType, ObjectName};
use crate::reconcile::course::Next;
use crate::reconcile::policy::run::PolicyOptions;
use crate::reconcile::tags::Shelf;

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
    pub(super) signals: UnboundedSender<Signal>,
}

/// The kinds of this half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    signals: UnboundedSender<Signal>,
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
    pub(super) fn begin(&self, kind: Kind, name: ObjectName) -> Done {
        let (verdict, begun) = (Verdict::Retry, Instant::now());
        Done { kind, name, verdict, begun, signals: self.signals.clone() }
    }

    /// Takes note of how a pass ended.
    pub(super) fn ended(&self, done: &Done, ended: Result<bool, ClusterError>) {
        let is_success = ended.unwrap_or_else(|error| {
            tracing::error!(error = %error, "cannot write to the object, trying again");
            false
        });
        self.metrics.reconciled(&labels(done.kind, &done.name), done.begun.elapsed(), is_success);
    }

    /// Forgets what was measured of an object that has gone.
    pub(super) fn forget_measures(&self, kind: Kind, name: &ObjectName) {
        self.metrics.forget(&labels(kind, name));
    }

    /// Announces what happened to an object.
    pub(super) async fn announce<K: Resource<DynamicType = ()>>(&self, object: &K, event: &Event) {
        match event.type_ {
            EventType::Warning => tracing::error!(error = event.reason, "{}", event.message),
            EventType::Normal | EventType::Trace => tracing::info!("{}", event.message),
        }
        // An answer of the API server may come without kind and version.
        let reference = ObjectReference {
            api_version: Some(K::api_version(&()).into_owned()),
            kind: Some(K::kind(&()).into_owned()),
            ..object.object_ref(&())
        };
        let announcement = Announcement {
            object: reference,
            annotations: object.annotations(),
            event,
            occurrence: Occurrence::Repeated,
            time: Timestamp::now(),
        };
        if let Err(error) = self.announcer.announce(&announcement).await {
            tracing::error!(error = %error, "cannot record the event");
        }
    }
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
pub(super) fn span<R>(shared: &Arc<Shared<R>>, name: &ObjectName) -> tracing::Span {
    tracing::info_span!(
        "reconcile",
        namespace = name.namespace,
        name = name.name,
        reconcile_id = shared.run_ids.next(),
    )
}
