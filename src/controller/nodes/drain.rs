//! The drain of one node: evicts its pods until none is left that must leave.

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt, stream};
use jiff::SignedDuration;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use tokio::time::{Instant, sleep};

use super::announce;
use super::drains::{DrainId, DrainOptions};
use super::state::{NodePools, pool_name};
use crate::error::chain;
use crate::nodes::{DrainPace, NodePod, Refusal};
use crate::objects::cluster::{ApiGuard, ClusterError, Eviction, EvictionTarget, evict, list};
use crate::reconcile::tags::Registry;
use crate::rollout::message::message;

/// The maximum number of evictions in flight for a node.
const EVICTIONS: usize = 10;

/// The time after which a failed request is repeated.
const RETRY: Duration = Duration::from_secs(5);

/// The time after which a drain that does not go on is announced.
const BLOCKED_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// Drains a node: evicts pods until none must leave, and makes its pool due.
///
/// It keeps nothing: after a restart, the pods are listed again. It is ended by its drop.
pub(super) async fn drain<R: Registry>(pools: Arc<NodePools<R>>, id: DrainId, mut options: DrainOptions) {
    let objects = &pools.kind.context.objects;
    let api: Api<NodePod> = Api::all(objects.client().clone());
    let parameters = ListParams::default().fields(&format!("spec.nodeName={}", id.node));
    let mut knows_own = false;
    let (mut pace, begun) = (DrainPace::default(), Instant::now());
    loop {
        let pods = async {
            if !knows_own {
                options.rules.own_controller = own_controller(&api, objects.guard(), &options).await?;
                knows_own = true;
            }
            list(&api, objects.guard(), parameters.clone()).await
        };
        let pods = match pods.await {
            Ok(pods) => pods,
            Err(error) => {
                report_blocked(&pools, &id, &options, Some(message(&chain(&error)))).await;
                sleep(RETRY).await;
                continue;
            }
        };
        let departures = options.rules.departures(pods);
        if departures.is_empty() {
            pools.drains.set_done(&id);
            pools.enqueue(&options.pool);
            return;
        }
        let due = pace.due(&departures, begun.elapsed());
        let evictions: Vec<_> = due.into_iter().map(|pod| evict_pod(&pools, pod, &options).boxed()).collect();
        let answers: Vec<_> = stream::iter(evictions).buffer_unordered(EVICTIONS).collect().await;
        let wait = pace.record(answers, begun.elapsed());
        let obstacle = pace.obstacle(&departures, pools.now());
        report_blocked(&pools, &id, &options, obstacle).await;
        sleep(wait).await;
    }
}

/// Returns the UID of the controller of the pod of this process.
///
/// It is a ReplicaSet, which has the replicas of this process as well.
async fn own_controller(
    api: &Api<NodePod>,
    guard: &ApiGuard,
    options: &DrainOptions,
) -> Result<Option<String>, ClusterError> {
    let Some((namespace, name)) = &options.rules.own_pod else { return Ok(None) };
    let own = format!("metadata.namespace={namespace},metadata.name={name}");
    let pods = list(api, guard, ListParams::default().fields(&own)).await?;
    Ok(pods.iter().find_map(NodePod::controller).map(|controller| controller.uid.clone()))
}

/// Evicts a pod, and returns its UID, and the refusal if there is one.
async fn evict_pod<R: Registry>(
    pools: &NodePools<R>,
    pod: &NodePod,
    options: &DrainOptions,
) -> (String, Option<Refusal>) {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let uid = pod.uid().unwrap_or_default();
    let target =
        EvictionTarget { namespace: &namespace, name: &name, uid: &uid, grace_period: options.grace_period };
    let context = &pools.kind.context;
    let objects = &context.objects;
    let answer = evict(objects.client().clone(), objects.guard(), target).await;
    let (outcome, refusal) = match answer {
        Ok(Eviction::Accepted) => ("accepted", None),
        Ok(Eviction::Blocked { message, retry_after }) => ("blocked", Some((message, retry_after))),
        Err(error) => ("failed", Some((chain(&error), RETRY))),
    };
    context.metrics.eviction(outcome);
    let refusal = refusal
        .map(|(text, wait)| Refusal { text: message(&format!("pod {namespace}/{name}: {text}")), wait });
    (uid, refusal)
}

/// Records the reason why a drain does not go on; announces it if that lasts.
async fn report_blocked<R: Registry>(
    pools: &NodePools<R>,
    id: &DrainId,
    options: &DrainOptions,
    blocked: Option<String>,
) {
    if pools.drains.set_blocked(id, blocked.clone()) {
        pools.enqueue(&options.pool);
    }
    // As it is now: the time of its stage may have been repaired since the drain began.
    let (Some(blocked), Some(node)) = (blocked, pools.fleet.node(&id.node)) else { return };
    let is_long = node.since().is_some_and(|since| pools.now().duration_since(since) >= BLOCKED_AFTER);
    let object = pools.kind.cache.get(&pool_name(&options.pool)).filter(|_| is_long);
    if let Some(object) = object
        && pools.drains.announces(id)
    {
        announce::drain_blocked(&pools.kind, &object, &node, &blocked).await;
    }
}
