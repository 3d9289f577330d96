//! Releases nodes that left their pool: cancels their rollout, and removes all keys of Tagboat.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::state::NodePools;
use crate::error::chain;
use crate::nodes::{Node, Pool, Release, keys, patch, release, removal};
use crate::objects::cluster::ClusterError;
use crate::reconcile::tags::Registry;

/// The time after which a failed patch is repeated.
const RETRY: Duration = Duration::from_secs(5);

/// The time after which a patch that lost to another write is repeated.
const AFTER_CONFLICT: SignedDuration = SignedDuration::from_secs(1);

/// Releases nodes without a pool, until dropped.
pub(super) async fn release_nodes<R: Registry>(pools: &NodePools<R>) {
    loop {
        let wait = match release_all(pools).await {
            Ok(None) => None,
            Ok(Some(at)) => Some(Duration::try_from(at.duration_since(pools.now())).unwrap_or_default()),
            Err(error) => {
                tracing::error!(error = chain(&error), "a node without a pool cannot be released, retrying");
                Some(RETRY)
            }
        };
        tokio::select! {
            () = pools.released.notified() => {}
            () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => {}
        }
    }
}

/// Takes the next step of all nodes without a pool.
///
/// Returns the time of a step that no change reports.
async fn release_all<R: Registry>(pools: &NodePools<R>) -> Result<Option<Timestamp>, ClusterError> {
    pools.fleet.read_uncertain(|change| pools.node_changed(change)).await?;
    let nodes = pools.fleet.nodes();
    let Some(left) = pools.with_claims(|claims| {
        let left = nodes.iter().filter(|node| has_keys(node) && claims.owner(&node.labels).is_none());
        claims.is_complete().then(|| left.map(|node| (node, claims.released(node))).collect::<Vec<_>>())
    }) else {
        return Ok(None);
    };
    let (mut next, mut failure) = (None::<Timestamp>, None);
    for (node, released) in left {
        let now = pools.now();
        let at = match due_patch(node, &released, now) {
            Ok(patch) => {
                pools.drains.stop(&node.name);
                let patched = pools.fleet.patch(&node.name, &patch, |change| pools.node_changed(change));
                match patched.await {
                    Ok(true) => None,
                    Ok(false) => now.checked_add(AFTER_CONFLICT).ok(),
                    Err(error) => {
                        failure = Some(error);
                        None
                    }
                }
            }
            Err(at) => Some(at),
        };
        next = next.into_iter().chain(at).min();
    }
    failure.map_or(Ok(next), Err)
}

/// Returns the patch of a node without a pool.
///
/// An error is the time until which its agent has something to finish.
fn due_patch(node: &Node, released: &Pool, now: Timestamp) -> Result<Value, Timestamp> {
    match release(node, now) {
        Release::Step(step) => Ok(patch(node, released, &step, now)),
        Release::Wait(until) => Err(until),
        Release::RemoveKeys => Ok(removal(node, released)),
    }
}

/// Returns `true` if a node has a label or an annotation of Tagboat.
///
/// The label by which users pause a node is theirs.
fn has_keys(node: &Node) -> bool {
    node.is_labeled()
        || node.labels.contains_key(keys::AGENT)
        || keys::ANNOTATIONS.iter().any(|key| node.annotations.contains_key(*key))
}
