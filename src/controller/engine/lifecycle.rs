//! The life cycle of a controller.
//!
//! It watches, waits for its Lease, works while it is the leader, and shuts down.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use tokio::sync::{mpsc, watch as watched};
use tokio::task::JoinSet;

use super::context::Context;
use super::dispatcher::Dispatcher;
use super::error::ControllerError;
use super::kind::{Kind, KindOptions, Reconciler, reported};
use super::lease::{Election, Leadership};
use super::queue::Queue;
use super::run_ids::RunIds;
use super::watch::{Report, watch};
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
    /// Becomes true while this process is the leader, for work that is not the engine's.
    pub is_leader: watched::Sender<bool>,
}

/// A function that begins to watch the objects of a kind.
pub(crate) type WatchOnDemand = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

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
        let ControllerOptions { name, scope, backoff, is_dry_run, is_leader, .. } = options;
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
            is_leader,
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
        let queue = Queue::new(self.backoff, options.rate);
        let kind = Kind::new(self.context.clone(), cache, options, sender);
        (Arc::new(kind), Dispatcher::new(queue, inbox))
    }

    /// Watches the objects of a kind.
    pub(crate) fn watch<R: Reconciler>(&mut self, reconciler: &Arc<R>) {
        let watch = self.watch_on_demand(reconciler);
        self.tasks.spawn(watch());
    }

    /// Returns a function that watches the objects of a kind until its future is dropped.
    pub(crate) fn watch_on_demand<R: Reconciler>(&self, reconciler: &Arc<R>) -> WatchOnDemand {
        let (own, context, scope) = (reconciler.clone(), self.context.clone(), self.scope.clone());
        Box::new(move || {
            let (own, cache) = (own.clone(), own.kind().cache.clone());
            let finalizer = own.kind().options.finalizer;
            let observe = move |report: &Report<'_, R::Object>| reported(own.as_ref(), report);
            watch(context.clone(), scope.clone(), cache, finalizer, observe).boxed()
        })
    }

    /// Watches objects that the kinds of the controller refer to, with any labels.
    pub(crate) fn watch_related<K: Watched>(
        &mut self,
        cache: &Cache<K>,
        changed: impl Fn(&Change<K>) + Send + Sync + 'static,
    ) {
        let scope = Scope { labels: None, ..self.scope.clone() };
        let observe = move |report: &Report<'_, K>| {
            if let Report::Changed(change) = report {
                changed(change);
            }
        };
        self.tasks.spawn(watch(self.context.clone(), scope, cache.clone(), None, observe));
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
        let is_writer = !self.context.is_dry_run;
        if is_writer {
            self.context.metrics.set_leader(true);
        }
        // The Lease is renewed from the first moment: the first listing of a cluster may take long.
        let lost = tokio::select! {
            () = work => None,
            () = &mut end => None,
            reason = self.leadership.keep() => Some(reason),
        };
        self.context.is_leader.send_replace(false);
        if is_writer {
            self.context.metrics.set_leader(false);
        }
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use axum::body::Body;
    use axum::http::{Method, Request, Response};
    use kube::CustomResource;
    use parking_lot::Mutex;
    use serde::{Deserialize, Serialize};
    use serde_json::{Value, json};
    use tagboat_api::policy::ImagePolicyStatus;
    use tower::service_fn;

    use super::*;
    use crate::controller::engine::in_flight::InFlight;
    use crate::controller::engine::queue::RATE;
    use crate::controller::engine::reconcile_steps::{
        Fetched, fetch, finalize, reconcile, report, status_of,
    };
    use crate::objects::cluster::ClusterError;
    use crate::objects::{Event, EventType, ObjectName};
    use crate::reconcile::action::Action;

    /// A cluster-scoped kind, whose deleted objects have nothing to release.
    #[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[kube(
        group = "tests.tagboat.dev",
        version = "v1",
        kind = "Zone",
        status = "ImagePolicyStatus",
        derive = "PartialEq",
        schema = "disabled"
    )]
    struct ZoneSpec {}

    struct Zones {
        kind: Arc<Kind<Zone>>,
        reconciled: mpsc::UnboundedSender<ObjectName>,
    }

    impl Reconciler for Zones {
        type Object = Zone;

        fn kind(&self) -> &Kind<Zone> {
            &self.kind
        }

        fn forget(&self, _: &ObjectName) {}
    }

    async fn reconcile_zone(zones: &Arc<Zones>, in_flight: &mut InFlight) -> Result<Action, ClusterError> {
        match fetch(zones.as_ref(), &in_flight.name).await? {
            Fetched::Active(zone) => {
                let message = "reconciled".to_owned();
                let event = Event { type_: EventType::Normal, reason: "Succeeded".to_owned(), message };
                let status = |_: &ImagePolicyStatus| ImagePolicyStatus {
                    observed_generation: Some(1),
                    ..Default::default()
                };
                report(zones.as_ref(), &zone, &status_of(&zone), &[event], &status).await?;
            }
            Fetched::Deleted(zone) => finalize(zones.kind(), zone.as_ref()).await?,
            Fetched::Gone | Fetched::Suspended(_) => panic!("{} is there", in_flight.name),
        }
        zones.reconciled.send(in_flight.name.clone()).unwrap();
        Ok(Action::AwaitChange)
    }

    /// Returns a client of an API server with two zones, and records all writes.
    ///
    /// One of the zones is about to be deleted.
    fn client(writes: &Arc<Mutex<Vec<String>>>) -> Client {
        let zone = |name: &str, deleted: Option<&str>| {
            json!({
                "apiVersion": "tests.tagboat.dev/v1",
                "kind": "Zone",
                "metadata": {
                    "name": name,
                    "uid": name,
                    "generation": 1,
                    "resourceVersion": "1",
                    "deletionTimestamp": deleted,
                    "finalizers": ["example.com/other"],
                },
                "spec": {},
            })
        };
        let mut live = zone("live", None);
        let list = json!({
            "apiVersion": "tests.tagboat.dev/v1",
            "kind": "ZoneList",
            "metadata": {"resourceVersion": "1"},
            "items": [live, zone("deleted", Some("2026-01-01T00:00:00Z"))],
        });
        live["metadata"]["resourceVersion"] = json!("2");
        live["status"] = json!({"observedGeneration": 1});
        let writes = writes.clone();
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let (path, query) = (request.uri().path().to_owned(), request.uri().query().unwrap_or_default());
            let is_watch = query.contains("watch=");
            let is_read = request.method() == Method::GET;
            if !is_read {
                writes.lock().push(format!("{} {path}", request.method()));
            }
            let answer: Value = match path.as_str() {
                "/apis/tests.tagboat.dev/v1/zones" => list.clone(),
                "/apis/tests.tagboat.dev/v1/zones/live/status" => live.clone(),
                _ => json!({"metadata": {}, "involvedObject": {}}),
            };
            async move {
                if is_watch {
                    std::future::pending::<()>().await;
                }
                Ok::<_, Infallible>(Response::new(Body::from(answer.to_string())))
            }
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn a_cluster_scoped_kind_without_a_finalizer_is_reconciled() {
        let writes = Arc::new(Mutex::new(Vec::new()));
        let options = ControllerOptions {
            name: "tests",
            // A restriction to one namespace does not concern the objects of the cluster.
            scope: Scope { namespace: Some("n".to_owned()), labels: None },
            backoff: Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(1) },
            election: None,
            guard: ApiGuard::default(),
            notifier: None,
            instance: "tests".to_owned(),
            process_id: "tests".to_owned(),
            is_dry_run: false,
            is_leader: watched::Sender::default(),
        };
        let mut engine = Engine::new(client(&writes), options, None, &Metrics::default());
        let (kind, mut dispatcher) = engine.add_kind(
            Cache::default(),
            KindOptions {
                name: "Zone",
                finalizer: None,
                is_suspended: |_: &Zone| false,
                debounce: Duration::ZERO,
                rate: RATE,
                trace_interval: Duration::ZERO,
            },
        );
        let (reconciled, mut results) = mpsc::unbounded_channel();
        let zones = Arc::new(Zones { kind, reconciled });
        engine.watch(&zones);
        let work = dispatcher.dispatch_each(|name| {
            reconcile(zones.clone(), name, |zones, in_flight| reconcile_zone(zones, in_flight).boxed())
        });
        let mut found = Vec::new();
        let end = async {
            for _ in 0..2 {
                found.push(results.recv().await.unwrap());
            }
        };
        let led = tokio::time::timeout(Duration::from_secs(60), engine.lead(work, end)).await;
        assert_eq!(led.expect("both zones are reconciled"), None);
        assert!(dispatcher.drain(Duration::from_secs(60)).await);
        engine.shut_down(None).await.unwrap();
        found.sort();
        let [deleted, live] =
            ["deleted", "live"].map(|name| ObjectName { namespace: String::new(), name: name.to_owned() });
        assert_eq!(found, [deleted.clone(), live.clone()]);
        // The status and the event of the live object, and no finalizer of either.
        writes.lock().sort();
        assert_eq!(
            *writes.lock(),
            ["PATCH /apis/tests.tagboat.dev/v1/zones/live/status", "POST /api/v1/namespaces/default/events"]
        );
        let observed = zones.kind.cache.get(&live).unwrap().status.as_ref().unwrap().observed_generation;
        assert_eq!(
            (observed, zones.kind.is_live(&live), zones.kind.is_live(&deleted)),
            (Some(1), true, false)
        );
    }
}
