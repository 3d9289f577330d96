//! The state that all reconciles of pools share, and the effects of changes on it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::{Mutex, RwLock};
use tagboat_api::{NodePool, ObjectName};
use tokio::sync::Notify;

use super::drains::Drains;
use super::fleet::{Fleet, NodeChange};
use super::target::Resolving;
use crate::controller::engine::kind::{Kind, Reconciler};
use crate::nodes::{Claim, Claims, NodeObject, Resolution, Share};
use crate::objects::cluster::Change;
use crate::reconcile::tags::Registry;
use crate::secrets::Fingerprint;

/// The options of the nodes controller.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// The time between two resolutions of the tag of a pool.
    pub tag_interval: Duration,
    /// The namespace and name of the pod of this process, which is not evicted.
    pub own_pod: (String, String),
    /// Returns the current time.
    pub clock: fn() -> Timestamp,
}

/// The state that all reconciles of pools share.
pub(super) struct NodePools<R> {
    pub(super) kind: Arc<Kind<NodePool>>,
    pub(super) fleet: Fleet,
    pub(super) drains: Drains,
    pub(super) registry: R,
    pub(super) options: NodeOptions,
    /// Woken when a node may have left its pool.
    pub(super) released: Notify,
    claims: RwLock<Claims>,
    memory: Mutex<BTreeMap<ObjectName, Memory>>,
}

/// The state of a pool that is kept between two reconciles.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The last resolution of its tag; none before the first reconcile.
    pub(super) resolution: Option<Resolution>,
    /// The resolution of its tag that is in progress.
    pub(super) resolving: Option<Resolving>,
    /// The time of the last write of its status.
    pub(super) written: Option<Instant>,
    /// The problems of nodes that were announced, by node.
    pub(super) announced: BTreeMap<String, Fingerprint>,
}

impl<R: Registry> NodePools<R> {
    pub(super) fn new(kind: Arc<Kind<NodePool>>, registry: R, options: NodeOptions) -> Self {
        Self {
            fleet: Fleet::new(&kind.context.objects),
            kind,
            drains: Drains::default(),
            registry,
            options,
            released: Notify::new(),
            claims: RwLock::default(),
            memory: Mutex::default(),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.options.clock)()
    }

    /// Returns the nodes of a pool.
    pub(super) fn share(&self, pool: &str) -> Share {
        self.claims.read().share(pool, self.fleet.nodes().iter())
    }

    /// Reads the claims of all pools.
    pub(super) fn with_claims<T>(&self, read: impl FnOnce(&Claims) -> T) -> T {
        read(&self.claims.read())
    }

    /// Reads or changes the memory of a pool.
    pub(super) fn with_memory<T>(&self, name: &ObjectName, work: impl FnOnce(&mut Memory) -> T) -> T {
        work(self.memory.lock().entry(name.clone()).or_default())
    }

    /// Reads or changes the memory of a pool, unless the pool is gone.
    pub(super) fn with_known_memory(&self, name: &ObjectName, work: impl FnOnce(&mut Memory)) {
        if let Some(memory) = self.memory.lock().get_mut(name) {
            work(memory);
        }
    }

    /// Returns `true` if the spec of a pool is still that of `object`.
    pub(super) fn is_current(&self, object: &NodePool) -> bool {
        let name = ObjectName::of(object);
        let known = self.kind.cache.get(&name).filter(|_| self.kind.is_live(&name));
        known.is_some_and(|known| has_same_spec(&known.metadata, &object.metadata))
    }

    /// Ends the drains of nodes that are in another pool by now, or in none.
    pub(super) fn stop_stray_drains(&self) {
        self.drains.stop_strays(|node, pool| {
            let node = self.fleet.node(node);
            node.is_some_and(|node| self.with_claims(|claims| claims.owner(&node.labels) == Some(pool)))
        });
    }

    /// Ends all drains and resolutions.
    pub(super) fn stop_tasks(&self) {
        self.drains.clear();
        self.memory.lock().values_mut().for_each(|memory| memory.resolving = None);
    }

    /// Makes a pool due.
    pub(super) fn enqueue(&self, pool: &str) {
        self.kind.enqueue(pool_name(pool));
    }

    fn enqueue_all(&self) {
        self.kind.cache.all().iter().for_each(|pool| self.kind.enqueue(ObjectName::of(pool.as_ref())));
    }

    /// Handles a change of the claims: nodes can change from one pool to another.
    fn claims_changed(&self, is_changed: bool) {
        if is_changed {
            self.stop_stray_drains();
            self.enqueue_all();
            self.released.notify_one();
        }
    }

    /// Handles a change of a node, reported by the watch or made by a patch.
    pub(super) fn node_changed(&self, change: &Change<NodeObject>) {
        let Some(NodeChange { old, new }) = self.fleet.apply(change) else { return };
        self.drains.node_changed(&change.name.name, old.as_deref(), new.as_deref());
        let none = BTreeMap::new();
        let [before, after] = [&old, &new].map(|node| node.as_ref().map_or(&none, |node| &node.labels));
        // The drains are locked first elsewhere, so not within the claims.
        let owner = self.with_claims(|claims| claims.owner(after).map(str::to_owned));
        self.drains.stop_stray(&change.name.name, owner.as_deref());
        let is_of_control_plane = [&old, &new].into_iter().flatten().any(|node| node.is_control_plane());
        if is_of_control_plane {
            // All pools share its slot.
            self.enqueue_all();
        } else {
            self.with_claims(|claims| claims.concerned(before, after).for_each(|pool| self.enqueue(pool)));
        }
        if new.is_some() && self.with_claims(|claims| claims.owner(after).is_none()) {
            self.released.notify_one();
        }
    }
}

impl<R: Registry> Reconciler for NodePools<R> {
    type Object = NodePool;

    fn kind(&self) -> &Kind<NodePool> {
        &self.kind
    }

    fn forget(&self, name: &ObjectName) {
        self.memory.lock().remove(name);
        self.kind.context.metrics.node_pool(&name.name, None);
    }

    fn related_changes(&self, change: &Change<NodePool>) {
        let is_changed = match &change.new {
            Some(pool) => self.claims.write().insert(Claim::of(pool)),
            None => self.claims.write().remove(&change.name.name),
        };
        self.claims_changed(is_changed);
    }

    fn unreadable(&self, metadata: &ObjectMeta) {
        let is_changed = self.claims.write().insert(Claim::unreadable(metadata));
        self.drains.stop_pool(metadata.name.as_deref().unwrap_or_default());
        self.claims_changed(is_changed);
    }

    fn no_longer_unreadable(&self, name: &ObjectName) {
        let is_changed = self.claims.write().remove_unreadable(&name.name);
        self.claims_changed(is_changed);
    }
}

/// Returns the name of a pool as that of an object.
pub(super) fn pool_name(pool: &str) -> ObjectName {
    ObjectName { namespace: String::new(), name: pool.to_owned() }
}

/// Returns `true` if an object still has the spec that was read.
fn has_same_spec(known: &ObjectMeta, read: &ObjectMeta) -> bool {
    known.uid == read.uid && known.generation == read.generation
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A pause or another image of that time was ignored, and a reboot approved.
    #[test]
    fn a_step_that_was_decided_by_an_older_spec_is_not_taken() {
        let read = json!({"uid": "u", "generation": 3, "resourceVersion": "7"});
        let metadata = |change: &Value| -> ObjectMeta {
            let mut object = read.clone();
            object.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            serde_json::from_value(object).unwrap()
        };
        for (change, expected) in [
            (json!({}), true),
            (json!({"resourceVersion": "8"}), true),
            (json!({"generation": 4}), false),
            (json!({"uid": "v"}), false),
        ] {
            assert_eq!(has_same_spec(&metadata(&change), &metadata(&json!({}))), expected, "{change}");
        }
    }
}
