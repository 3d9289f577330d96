//! The life cycle of a controller.
//!
//! It watches, waits for its Lease, works while it is the leader, and shuts down.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use kube::Client;
use tokio::sync::{mpsc, watch as watched};
use tokio::task::JoinSet;

use super::context::Context;
use super::dispatcher::Dispatcher;
use super::error::ControllerError;
use super::kind::{Kind, KindOptions, Reconciler, changed};
use super::lease::{Election, Leadership};
use super::queue::Queue;
use super::run_ids::RunIds;
use super::watch::watch;
use crate::backoff::Backoff;
use crate::cancel::StopToken;
use crate::metrics::Metrics;
use crate::objects::cluster::{Announcer, ApiGuard, Cache, Change, ClusterObjects, Notifier, Scope, Watched};
use crate::tenancy::FairSemaphore;

/// The options that all controllers have.
pub struct ControllerOptions {
    /// The name of the controller: its field manager, and the source of its events.
    pub name: &'static str,
    /// The namespace that is watched, and the labels of the objects that are reconciled.
    pub scope: Scope,
    /// The backoff of failed reconciles.
    pub backoff: Backoff,
    /// The election of the leader; `None` if this process is the only one.
    pub election: Option<Election>,
    /// The guard of requests to the API server.
    pub guard: ApiGuard,
    /// The receiver of notifications about events.
    pub notifier: Option<Notifier>,
    /// The name of this process, for events.
    pub instance: String,
    /// A random UUID, from which the ids of reconciles are made.
    pub process_id: String,
    /// True if nothing is written; then there is no election, and no event is announced.
    pub is_dry_run: bool,
}

/// A controller in its engine.
pub(crate) struct Engine {
    pub(crate) context: Arc<Context>,
    scope: Scope,
    /// Permits work in the cluster. It is cancelled when the leadership is lost.
    pub(crate) permit: StopToken,
    backoff: Backoff,
    leadership: Leadership,
    /// The watches, and the other tasks that are not the leader's alone.
    tasks: JoinSet<()>,
}

impl Engine {
    /// Makes a controller without kinds. `slots` limits its reconciles in flight.
    pub(crate) fn new(
        client: Client,
        options: ControllerOptions,
        slots: Option<FairSemaphore>,
        metrics: &Metrics,
    ) -> Self {
        let ControllerOptions { name, scope, backoff, is_dry_run, .. } = options;
        let (election, notifier) =
            if is_dry_run { (None, None) } else { (options.election, options.notifier) };
        // Requests depend on the Lease alone: the last statuses are written after the stop signal.
        let permit = StopToken::default();
        let objects = ClusterObjects::with_guard(client.clone(), options.guard.with_fence(permit.clone()));
        let context = Arc::new(Context {
            announcer: Announcer::new(&objects, notifier, name, options.instance),
            writer: objects.writer_as(name),
            objects,
            metrics: metrics.clone(),
            slots,
            run_ids: RunIds::new(options.process_id),
            is_leader: watched::Sender::new(false),
            is_dry_run,
        });
        let leadership = Leadership::new(client, election, permit.clone());
        Self { context, scope, permit, backoff, leadership, tasks: JoinSet::new() }
    }

    /// Adds a kind, with its queue.
    pub(crate) fn add_kind<K: Watched>(
        &self,
        cache: Cache<K>,
        options: KindOptions<K>,
    ) -> (Arc<Kind<K>>, Dispatcher) {
        let (sender, inbox) = mpsc::unbounded_channel();
        let kind = Kind::new(self.context.clone(), cache, options, sender);
        (Arc::new(kind), Dispatcher::new(Queue::new(self.backoff), inbox))
    }

    /// Watches the objects of a kind.
    pub(crate) fn watch<R: Reconciler>(&mut self, reconciler: &Arc<R>) {
        let (own, context, scope) = (reconciler.clone(), self.context.clone(), self.scope.clone());
        let (cache, finalizer) = (own.kind().cache.clone(), own.kind().options.finalizer);
        self.tasks
            .spawn(watch(context, scope, cache, finalizer, move |change| changed(own.as_ref(), change)));
    }

    /// Watches objects that the kinds of the controller refer to, with any labels.
    pub(crate) fn watch_related<K: Watched>(
        &mut self,
        cache: &Cache<K>,
        changed: impl Fn(&Change<K>) + Send + Sync + 'static,
    ) {
        let scope = Scope { labels: None, ..self.scope.clone() };
        self.tasks.spawn(watch(self.context.clone(), scope, cache.clone(), None, changed));
    }

    /// Runs a task from now on until the controller shuts down.
    ///
    /// It runs even if this process is not the leader.
    pub(crate) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Waits until this process is the leader, and then does `work`.
    ///
    /// The work lasts until `end` has come or the leadership is lost. Returns the reason for a loss.
    pub(crate) async fn lead(
        &mut self,
        work: impl Future<Output = ()>,
        end: impl Future<Output = ()>,
    ) -> Option<String> {
        let mut end = pin!(end);
        tokio::select! {
            () = self.leadership.win() => {}
            () = &mut end => return None,
        }
        self.context.is_leader.send_replace(true);
        // The Lease is renewed from the first moment: the first listing of a cluster may take long.
        let lost = tokio::select! {
            () = work => None,
            () = &mut end => None,
            reason = self.leadership.keep() => Some(reason),
        };
        self.tasks.shutdown().await;
        lost
    }

    /// Shuts down once no reconcile is in flight.
    ///
    /// It finishes announcements, and releases the Lease unless that is lost.
    ///
    /// # Errors
    ///
    /// If the leadership was lost.
    pub(crate) async fn shut_down(self, lost: Option<String>) -> Result<(), ControllerError> {
        self.context.announcer.finish().await;
        if let Some(message) = lost {
            return Err(ControllerError::LeadershipLost { message });
        }
        self.leadership.release().await;
        Ok(())
    }
}
