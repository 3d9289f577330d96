//! The events of pools and of their nodes, on the NodePool.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use tagboat_api::{NodePool, ObjectName};

use super::state::NodePools;
use crate::controller::engine::kind::Kind;
use crate::controller::engine::reconcile_steps::{log_event, record};
use crate::nodes::{Node, PoolEvent, PoolEventReason, Problem, TimeLimits, problem};
use crate::objects::cluster::EventIdentity;
use crate::objects::{Event, EventType};
use crate::reconcile::tags::Registry;
use crate::rollout::message::{MAX_LENGTH, message, message_with_end};
use crate::secrets::Fingerprint;

/// Announces an event of a pool.
pub(super) async fn pool_event(kind: &Kind<NodePool>, pool: &NodePool, event: PoolEvent) {
    let PoolEvent { reason, message, key } = event;
    let type_ = match reason {
        PoolEventReason::RolloutHalted => EventType::Warning,
        PoolEventReason::RolloutStarted | PoolEventReason::RolloutCompleted => EventType::Normal,
    };
    announce(kind, pool, Event { type_, reason: reason.to_string(), message }, key).await;
}

/// Announces that a node has the image of its pool.
pub(super) async fn node_updated(kind: &Kind<NodePool>, pool: &NodePool, node: &Node, now: Timestamp) {
    let image = node.desired_digest().map_or_else(|| "its update".to_owned(), str::to_owned);
    let text = format!("{} has {image}", node.name);
    let event = Event { type_: EventType::Normal, reason: "NodeUpdated".to_owned(), message: text };
    announce(kind, pool, event, format!("NodeUpdated {} {now}", node.name)).await;
}

/// Announces that the drain of a node does not go on, once for each drain.
pub(super) async fn drain_blocked(kind: &Kind<NodePool>, pool: &NodePool, node: &Node, blocked: &str) {
    let text = format!("{} cannot be drained: {blocked}", node.name);
    let event =
        Event { type_: EventType::Warning, reason: "DrainBlocked".to_owned(), message: message(&text) };
    let since = node.since().map(|since| since.to_string()).unwrap_or_default();
    announce(kind, pool, event, format!("DrainBlocked {} {since}", node.name)).await;
}

/// Announces new problems of nodes.
///
/// A node that is not ready counts only while it holds a slot.
pub(super) async fn failures<R: Registry>(
    pools: &NodePools<R>,
    pool: &NodePool,
    nodes: &[Arc<Node>],
    limits: TimeLimits,
) {
    let (name, now) = (ObjectName::of(pool), pools.now());
    let mut known = pools.with_memory(&name, |memory| std::mem::take(&mut memory.announced));
    let mut announced = BTreeMap::new();
    for node in nodes {
        let found = problem(node, limits, now);
        let Some(found) = found.filter(|found| *found != Problem::NotReady || node.holds_slot()) else {
            continue;
        };
        let text = message_with_end(&format!("{}: {found}", node.name), MAX_LENGTH);
        let fingerprint = Fingerprint::of([text.as_str()]);
        if known.remove(&node.name) != Some(fingerprint) {
            let since = node.since().map(|since| since.to_string()).unwrap_or_default();
            let key = format!("NodeFailed {since} {text}");
            let event = Event { type_: EventType::Warning, reason: "NodeFailed".to_owned(), message: text };
            announce(&pools.kind, pool, event, key).await;
        }
        announced.insert(node.name.clone(), fingerprint);
    }
    pools.with_memory(&name, |memory| memory.announced = announced);
}

async fn announce(kind: &Kind<NodePool>, pool: &NodePool, event: Event, key: String) {
    log_event(&event);
    record(kind, pool, &event, EventIdentity::Once(key)).await;
}
