//! The nodes controller: rolls out OS images on the nodes of NodePools.
//!
//! The decisions are in [`nodes`](crate::nodes), and all state is in labels and annotations of nodes. Reconciles of pools
//! run one after the other, because all pools share the slot of the control plane.
//!
//! | file | contents |
//! |---|---|
//! | `state` | the state that all reconciles share, and the effects of changes on it |
//! | `fleet` | the nodes of the cluster, and their patches |
//! | `reconcile` | one reconcile of a pool |
//! | `target` | the resolution of the tag of a pool |
//! | `drains`, `drain` | the drains in progress; one of them |
//! | `release` | nodes that left their pool |
//! | `announce` | the events of pools and nodes |

mod announce;
mod drain;
mod drains;
mod fleet;
mod reconcile;
mod release;
mod state;
mod target;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use tagboat_api::NodePool;
use tagboat_api::node_pool::FINALIZER;

use super::engine::kind::KindOptions;
use super::engine::reconcile_steps::reconcile;
use super::engine::{Access, ControllerError, ControllerOptions, Engine, Requirement};
use super::process::Controller;
use crate::metrics::Metrics;
use crate::nodes::RECONCILES;
use crate::objects::cluster::Cache;
use crate::reconcile::tags::Registry;
use crate::tenancy::{FairSemaphore, SlotLimits};
use state::NodePools;

pub use state::NodeOptions;

pub use crate::permissions::NODES_CONTROLLER as NAME;

/// The time for which changes of the nodes of a pool are collected.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// The time that a reconcile in flight may take at shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// Makes the nodes controller of a process.
///
/// `client` must not retry by itself: a refused eviction would hold a slot of the requests in flight.
pub fn controller<R: Registry>(
    client: Client,
    options: ControllerOptions,
    nodes: NodeOptions,
    registry: R,
    metrics: Metrics,
) -> Controller {
    let requirements = vec![
        Requirement::of::<NodePool>(Access::Write),
        Requirement::of::<Node>(Access::Patch),
        Requirement::of::<Pod>(Access::Evict),
    ];
    let scope = options.scope.clone();
    let run = move |end| run(client, options, nodes, (registry, metrics), end);
    Controller::new("nodes", scope, requirements, run)
}

/// Reconciles pools until `end` has come, and shuts down in good order.
async fn run<R: Registry>(
    client: Client,
    options: ControllerOptions,
    nodes: NodeOptions,
    (registry, metrics): (R, Metrics),
    end: impl Future<Output = ()>,
) -> Result<(), ControllerError> {
    let slots = FairSemaphore::new(SlotLimits { total: 1, per_namespace: 1, overflow: None });
    let mut engine = Engine::new(client, options, Some(slots), &metrics);
    let kind = KindOptions {
        name: "NodePool",
        finalizer: Some(FINALIZER),
        is_suspended: |_: &NodePool| false,
        debounce: DEBOUNCE,
        rate: RECONCILES,
        trace_interval: Duration::ZERO,
    };
    let (kind, mut dispatcher) = engine.add_kind(Cache::default(), kind);
    let pools = Arc::new(NodePools::new(kind, registry, nodes));
    engine.watch(&pools);
    let own = pools.clone();
    engine.watch_related(&pools.fleet.cache, move |change| own.node_changed(change));
    let work = async {
        tokio::join!(pools.kind.cache.wait_for_sync(), pools.fleet.cache.wait_for_sync());
        tracing::info!("reconciling node pools");
        let reconciles = dispatcher.dispatch_each(|name| {
            reconcile(pools.clone(), name, |pools, in_flight| {
                reconcile::reconcile(pools, &in_flight.name).boxed()
            })
        });
        tokio::join!(reconciles, release::release_nodes(&pools));
    };
    let lost = engine.lead(work, end).await;
    // Before the Lease is released: no other process may drain at the same time.
    pools.stop_tasks();
    if lost.is_none() {
        dispatcher.drain(DRAIN_TIMEOUT).await;
    }
    dispatcher.abort().await;
    pools.stop_tasks();
    engine.shut_down(lost).await
}
