//! One reconcile of a pool: its target, the steps of its nodes, its status.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use jiff::Timestamp;
use tagboat_api::node_pool::{DEGRADED, NodePoolStatus};
use tagboat_api::{NodePool, ObjectName};

use super::announce;
use super::drain::drain;
use super::drains::DrainOptions;
use super::state::NodePools;
use super::target::{Target, resolve};
use crate::controller::engine::reconcile_steps::{Fetched, fetch, finalize, patch_status};
use crate::metrics::NodePoolState;
use crate::nodes::{
    Availability, Departure, InvalidSpec, Node, Observation, Pool, PoolEvent, Settings, Share, Situation,
    Stage, Step, availability, departing_status, grants, keys, next_deadline, next_window_change, patch,
    pool_events, pool_status, step, stray_step,
};
use crate::objects::cluster::ClusterError;
use crate::reconcile::action::Action;
use crate::reconcile::tags::Registry;
use crate::reference::Tag;

/// The minimum time between two writes of the status of a pool.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// The maximum number of patches in flight.
const PATCHES: usize = 8;

/// Reconciles a pool.
pub(super) async fn reconcile<R: Registry>(
    pools: &Arc<NodePools<R>>,
    name: &ObjectName,
) -> Result<Action, ClusterError> {
    pools.stop_stray_drains();
    let object = match fetch(pools.as_ref(), name).await? {
        Fetched::Gone | Fetched::Suspended(_) => return Ok(Action::AwaitChange),
        Fetched::Deleted(object) => return release_pool(pools, &object).await,
        Fetched::Active(object) => object,
    };
    let settings = Settings::new(&object.spec);
    let target = settings.as_ref().map(|settings| resolve(pools, &object, settings)).unwrap_or_default();
    pools.fleet.read_uncertain(|change| pools.node_changed(change)).await?;
    let image = target.resolution.image.as_deref();
    let pool = settings.as_ref().ok().and_then(|settings| settings.pool(image));
    let pool = pool.map(|pool| Pool { name: name.name.clone(), ..pool });
    let view = View { object: &object, settings: settings.as_ref(), pool: pool.as_ref(), target: &target };
    let stepped = match (&settings, &pool) {
        (Ok(settings), Some(pool)) => take_steps(pools, &view, settings, pool).await,
        _ => cancel_strays(pools, &object).await,
    };
    let wait = report(pools, &view).await?;
    stepped?;
    Ok(wait.map_or(Action::AwaitChange, Action::RequeueAfter))
}

/// Removes the finalizer of a deleted pool, once all of its nodes are released.
///
/// The release of a node is a change, which makes the pool due.
async fn release_pool<R: Registry>(pools: &NodePools<R>, object: &NodePool) -> Result<Action, ClusterError> {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let nodes = pools.fleet.nodes();
    let (left, undecided) =
        pools.with_claims(|claims| (claims.unreleased(name, &nodes), claims.undecided().map(str::to_owned)));
    // The change of the claims makes the pool due again.
    let Some(left) = left else { return Ok(Action::AwaitChange) };
    if left.is_empty() {
        finalize(&pools.kind, object).await?;
        return Ok(Action::AwaitChange);
    }
    let generation = object.metadata.generation.unwrap_or_default();
    let departure = Departure { generation, nodes: &left, undecided: undecided.as_deref() };
    let status = departing_status(&departure, object.status.as_ref(), pools.now());
    let wait = write_status(pools, object, &status, &[]).await?;
    Ok(wait.map_or(Action::AwaitChange, Action::RequeueAfter))
}

/// Takes the due steps of the nodes of a pool, and begins their drains.
///
/// While the image of another reference is not known yet, no node is promoted for the image before.
///
/// # Errors
///
/// The first error of a patch; the other patches are made all the same.
async fn take_steps<R: Registry>(
    pools: &Arc<NodePools<R>>,
    view: &View<'_>,
    settings: &Settings,
    pool: &Pool,
) -> Result<(), ClusterError> {
    let Share { nodes, .. } = pools.share(&pool.name);
    let now = pools.now();
    let refs: Vec<&Node> = nodes.iter().map(AsRef::as_ref).collect();
    let granted: Vec<&str> = grants(&refs, pool, pools.fleet.is_control_plane_busy(), now)
        .into_iter()
        .map(|node| node.name.as_str())
        .collect();
    let options = DrainOptions::new(&pool.name, settings, &pools.options.own_pod);
    for node in nodes.iter().filter(|node| node.stage() == Ok(Stage::Draining)) {
        pools.drains.ensure(&node.name, &options, |id| drain(pools.clone(), id, options.clone()));
    }
    let due = nodes.iter().filter_map(|node| {
        let situation = Situation {
            has_grant: granted.contains(&node.name.as_str()),
            is_drained: options.is_disabled || pools.drains.is_done(&node.name),
            lacks_since: node.lacks_since(now),
        };
        let step = step(node, pool, situation)?;
        let is_due = !(view.target.is_pending && step.is_promotion(node));
        is_due.then(|| take(pools, view.object, pool.clone(), node, step).boxed())
    });
    take_all(due.collect()).await
}

/// Cancels the rollouts of nodes that came from another pool.
///
/// The settings of the pool are not valid, or its tag was never resolved, so its other nodes stay as they are.
///
/// # Errors
///
/// The first error of a patch; the other patches are made all the same.
async fn cancel_strays<R: Registry>(
    pools: &Arc<NodePools<R>>,
    object: &NodePool,
) -> Result<(), ClusterError> {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    pools.drains.stop_pool(name);
    let Share { nodes, .. } = pools.share(name);
    let due = nodes.iter().filter_map(|node| {
        let pool = Pool { name: name.to_owned(), ..Pool::default() };
        Some(take(pools, object, pool, node, stray_step(node, name)?).boxed())
    });
    take_all(due.collect()).await
}

/// Takes steps, a few at a time.
///
/// # Errors
///
/// The first error; the other steps are taken all the same.
async fn take_all(steps: Vec<BoxFuture<'_, Result<(), ClusterError>>>) -> Result<(), ClusterError> {
    let results: Vec<Result<(), ClusterError>> =
        stream::iter(steps).buffer_unordered(PATCHES).collect().await;
    results.into_iter().collect()
}

/// Takes a step of a node: one patch.
///
/// A promotion is not taken if the spec has changed since it was read.
async fn take<R: Registry>(
    pools: &NodePools<R>,
    object: &NodePool,
    mut pool: Pool,
    node: &Node,
    step: Step,
) -> Result<(), ClusterError> {
    if step.is_promotion(node) && !pools.is_current(object) {
        pools.enqueue(&pool.name);
        return Ok(());
    }
    if step.to != Stage::Draining {
        // Before the patch: no eviction follows a cancellation.
        pools.drains.stop(&node.name);
    }
    // The keys of both pools are removed from a node that has moved.
    let left = node.annotation(keys::POOL).filter(|_| node.is_of_another_pool(&pool.name));
    if let Some(hooks) = left.and_then(|left| pools.with_claims(|claims| claims.hooks(left).cloned())) {
        pool.hooks.add(hooks);
    }
    let now = pools.now();
    let patch = patch(node, &pool, &step, now);
    if !pools.fleet.patch(&node.name, &patch, |change| pools.node_changed(change)).await? {
        // The write that came first may have changed nothing that makes the pool due, such as a taint.
        pools.enqueue(&pool.name);
        return Ok(());
    }
    let before = node.stage().unwrap_or(Stage::Idle);
    if before != step.to {
        let (from, to, canceled) = (before.as_str(), step.to.as_str(), step.canceled);
        tracing::info!(node = node.name, from, to, canceled = ?canceled, "the node is in another stage");
        if before.holds_slot()
            && let Some(since) = node.since()
        {
            let time = Duration::try_from(now.duration_since(since)).unwrap_or_default();
            pools.kind.context.metrics.node_stage_ended(before.as_str(), time);
        }
    }
    if step.is_deployment() {
        announce::node_updated(&pools.kind, object, node, now).await;
    }
    Ok(())
}

/// The facts of a pool that its status is made of.
struct View<'v> {
    object: &'v NodePool,
    settings: Result<&'v Settings, &'v InvalidSpec>,
    pool: Option<&'v Pool>,
    target: &'v Target,
}

impl View<'_> {
    fn status(&self, share: &Share, blocked: &BTreeMap<String, String>, now: Timestamp) -> NodePoolStatus {
        let nodes: Vec<&Node> = share.nodes.iter().map(AsRef::as_ref).collect();
        let observation = Observation {
            name: self.object.metadata.name.as_deref().unwrap_or_default(),
            generation: self.object.metadata.generation.unwrap_or_default(),
            nodes: &nodes,
            pool: self.pool,
            tag: self.tag(),
            next_tag_resolution: self.target.resolution.next,
            resolution_error: self.target.resolution.error.as_deref(),
            invalid: self.settings.err(),
            conflicts: &share.conflicts,
            blocked: Some(blocked),
        };
        pool_status(&observation, self.object.status.as_ref(), now)
    }

    fn metrics(&self, share: &Share, status: &NodePoolStatus) -> NodePoolState {
        let is_known = self.settings.err().is_none_or(|invalid| !invalid.hides_nodes());
        let stages = is_known.then(|| {
            let mut stages: BTreeMap<&str, u64> =
                Stage::ALL.iter().map(|stage| (stage.as_str(), 0)).collect();
            for node in &share.nodes {
                *stages.entry(node.stage().unwrap_or(Stage::Idle).as_str()).or_default() += 1;
            }
            stages
        });
        let mut conditions = status.conditions.iter();
        let is_degraded = conditions.any(|found| found.type_ == DEGRADED && found.status == "True");
        NodePoolState { stages, is_degraded }
    }

    fn tag(&self) -> Option<&Tag> {
        self.settings.ok()?.target.as_ref()?.tag.as_ref()
    }

    /// Returns the time of the next change that no event reports.
    fn next_change(&self, share: &Share, now: Timestamp) -> Option<Timestamp> {
        let limits = self.pool.map(|pool| pool.limits).unwrap_or_default();
        let deadlines = share.nodes.iter().filter_map(|node| next_deadline(node, limits, now));
        let nodes: Vec<&Node> = share.nodes.iter().map(AsRef::as_ref).collect();
        let of_pool = self.pool.and_then(|pool| {
            let delayed = match availability(&nodes, pool, now) {
                Availability::Delayed(end) => Some(end),
                _ => None,
            };
            next_window_change(&pool.windows, now).into_iter().chain(delayed).min()
        });
        deadlines.chain(of_pool).chain(self.target.next).min()
    }
}

/// Announces the events of a pool, writes its status, and returns its requeue delay.
///
/// While the image of another reference is not known yet, the status stays that of the spec before: a pool that had its
/// former image everywhere is not up to date.
async fn report<R: Registry>(
    pools: &NodePools<R>,
    view: &View<'_>,
) -> Result<Option<Duration>, ClusterError> {
    let (now, name) = (pools.now(), view.object.metadata.name.as_deref().unwrap_or_default());
    let share = pools.share(name);
    let next = view.next_change(&share, now);
    let next = next.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
    if view.target.is_pending {
        return Ok(next);
    }
    let status = view.status(&share, &pools.drains.blocked(), now);
    let metrics = &pools.kind.context.metrics;
    metrics.node_pool(name, Some(view.metrics(&share, &status)));
    let limits = view.pool.map(|pool| pool.limits).unwrap_or_default();
    announce::failures(pools, view.object, &share.nodes, limits).await;
    let events = pool_events(view.object.status.as_ref(), &status);
    let wait = write_status(pools, view.object, &status, &events).await?;
    Ok(wait.into_iter().chain(next).min())
}

/// Announces events, and writes a status if it is another one.
///
/// Returns the time until it may be written, if the last write is too recent.
async fn write_status<R: Registry>(
    pools: &NodePools<R>,
    object: &NodePool,
    status: &NodePoolStatus,
    events: &[PoolEvent],
) -> Result<Option<Duration>, ClusterError> {
    if object.status.as_ref() == Some(status) {
        return Ok(None);
    }
    let name = ObjectName::of(object);
    let written = pools.with_memory(&name, |memory| memory.written);
    let wait = written.map_or(Duration::ZERO, |at| STATUS_INTERVAL.saturating_sub(at.elapsed()));
    if !wait.is_zero() {
        return Ok(Some(wait));
    }
    pools.with_memory(&name, |memory| memory.written = Some(Instant::now()));
    // Before the status: after a kill in between, the next process finds the same difference.
    for event in events {
        announce::pool_event(&pools.kind, object, event.clone()).await;
    }
    patch_status(pools, object, &|_: &NodePool| status.clone()).await?;
    Ok(None)
}
