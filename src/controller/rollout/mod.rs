//! Rollouts: reports in DeploymentStatus objects whether committed images run.
//!
//! It is a part of the automation controller, which knows the places of markers, and works under its Lease. It is
//! available if the CRD of DeploymentStatus is served and the role permits its use.
//!
//! | file | contents |
//! |---|---|
//! | `state` | the state that all reconciles share, and the effects of changes on it |
//! | `availability` | whether the feature is available, by one request per minute |
//! | `long_lock` | a lock that computations hold for long |
//! | `changed_policies` | the policies whose images the index of places may not have yet |
//! | `follow`, `kinds` | the scans of automations; the kinds that their places lead to |
//! | `watches`, `cluster` | the watches of a cluster; the objects that they report |
//! | `failures` | the failures of a watch that may pass: which of them are logged |
//! | `remote` | the watches of clusters with a kubeconfig |
//! | `pods` | lists of the pods of workloads whose rollout is in progress |
//! | `reconcile`, `existence` | one reconcile; the decision whether the object exists |
//! | `observe`, `write_rate` | the observation of a policy; the times of status writes |
//! | `own_statuses` | the last status of each object, without the changes of other clients |
//! | `announce` | the event of a rollout that succeeded or failed |

mod announce;
mod availability;
mod changed_policies;
mod cluster;
mod existence;
mod failures;
mod follow;
mod kinds;
mod long_lock;
mod observe;
mod own_statuses;
mod pods;
mod reconcile;
mod remote;
mod state;
mod watches;
mod write_rate;

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt;
use parking_lot::RwLock;
use tagboat_api::{DeploymentStatus, ImageUpdateAutomation, ObjectName};
use tokio::sync::{Notify, oneshot, watch};

use super::automation::Places;
use super::engine::dispatcher::Dispatcher;
use super::engine::kind::KindOptions;
use super::engine::queue::RATE;
use super::engine::{Engine, WatchOnDemand, reconcile_steps};
use crate::objects::cluster::{Cache, ListLimiter};
use crate::rollout::watched::WatchedObject;
use crate::tenancy::run_blocking;
use availability::{wait_until_available, wait_until_unavailable};
use changed_policies::ChangedPolicies;
use cluster::{Connection, WatchedCluster};
use follow::follow_places;
use long_lock::LongLock;
use own_statuses::OwnStatuses;
use remote::RemoteWatches;

pub(super) use state::{RolloutOptions, Rollouts};

/// The time for which changes of the objects of a policy are collected.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// The rollout controller of an engine.
pub(super) struct RolloutController {
    pub(super) rollouts: Arc<Rollouts>,
    /// Watches the objects.
    watch: WatchOnDemand,
    dispatcher: Dispatcher,
}

impl RolloutController {
    /// Adds the kind DeploymentStatus to an engine.
    ///
    /// `places` are those of the automations in the cache.
    pub(super) fn new(
        engine: &Engine,
        places: Places,
        automations: Cache<ImageUpdateAutomation>,
        options: RolloutOptions,
    ) -> Self {
        let kind = KindOptions {
            name: "DeploymentStatus",
            finalizer: None,
            is_suspended: |_: &DeploymentStatus| false,
            debounce: DEBOUNCE,
            rate: RATE,
            trace_interval: Duration::ZERO,
        };
        let (kind, dispatcher) = engine.add_kind(Cache::default(), kind);
        let objects = &kind.context.objects;
        let connection = Connection {
            cluster: None,
            client: objects.client().clone(),
            guard: objects.guard().clone(),
            answers: None,
            namespace: options.namespace.clone(),
        };
        let list_limiter = ListLimiter::default();
        let rollouts = Arc::new_cyclic(|own: &Weak<Rollouts>| {
            let own = own.clone();
            let on_change = move |cluster: &WatchedCluster, object: &WatchedObject| {
                own.upgrade().iter().for_each(|rollouts| rollouts.object_changed(cluster, object));
            };
            Rollouts {
                kind,
                automations,
                places,
                place_index: LongLock::default(),
                cluster: Arc::new(WatchedCluster::new(connection, list_limiter.clone(), on_change)),
                remote: RwLock::default(),
                list_limiter,
                kinds: watch::Sender::default(),
                objects_changed: Notify::new(),
                changed_policies: ChangedPolicies::default(),
                own_statuses: OwnStatuses::default(),
                options,
            }
        });
        let watch = engine.watch_on_demand(&rollouts);
        Self { rollouts, watch, dispatcher }
    }

    /// Reports rollouts whenever the feature is available, until dropped.
    ///
    /// `prepared` is dropped when automations can be scanned: the objects are known, or the feature is not available.
    /// `rescan` makes all automations due, whose places are then found.
    pub(super) async fn run(&mut self, prepared: oneshot::Sender<()>, rescan: impl Fn()) {
        let connection = self.rollouts.cluster.connection.clone();
        let mut prepared = Some(prepared);
        loop {
            wait_until_available(&connection, |obstacle| {
                tracing::info!("rollouts are not reported: {obstacle}");
                prepared = None;
            })
            .await;
            let obstacle = tokio::select! {
                () = self.report(prepared.take(), &rescan) => return,
                obstacle = wait_until_unavailable(&connection) => obstacle,
            };
            tracing::info!("rollouts are not reported any more: {obstacle}");
            // A reconcile in flight would find nothing, and report that.
            self.dispatcher.abort().await;
            let own = self.rollouts.clone();
            // It may wait for a computation.
            run_blocking(move || own.clear()).await;
        }
    }

    /// Lets the reconciles in flight end for a while, then stops them.
    pub(super) async fn stop(&mut self, limit: Duration) {
        self.dispatcher.drain(limit).await;
        self.dispatcher.abort().await;
    }

    /// Reports rollouts until dropped.
    async fn report(&mut self, prepared: Option<oneshot::Sender<()>>, rescan: &impl Fn()) {
        let rollouts = &self.rollouts;
        let work = async {
            rollouts.kind.cache.wait_for_sync().await;
            tracing::info!("reporting rollouts");
            rollouts.turn_on();
            let mut remote = RemoteWatches::new(rollouts.clone());
            // Otherwise no automation was scanned yet.
            if prepared.as_ref().is_none_or(oneshot::Sender::is_closed) {
                rescan();
            }
            drop(prepared);
            let enqueue = |policies: BTreeSet<ObjectName>| {
                policies.into_iter().for_each(|policy| rollouts.kind.enqueue(policy));
            };
            let reconciles = self.dispatcher.dispatch_each(|name| {
                reconcile_steps::reconcile(rollouts.clone(), name, |own, in_flight| {
                    reconcile::reconcile(own, in_flight).boxed()
                })
            });
            let pods = rollouts.cluster.pods.run(&rollouts.cluster.connection, enqueue);
            let index = rollouts.cluster.keep_index();
            tokio::join!(follow_places(rollouts.clone()), remote.run(), index, pods, reconciles);
        };
        tokio::join!((self.watch)(), work);
    }
}
