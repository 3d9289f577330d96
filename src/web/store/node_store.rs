//! The node pools and their nodes as last observed.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::ResourceExt;
use kube::api::ObjectMeta;
use parking_lot::RwLock;
use tagboat_api::NodePool;

use super::changes::{Changes, StatusChange};
use super::observe::{Missing, Observed};
use crate::nodes::{Claim, NodeDocument, NodeObject, PoolView, claims};
use crate::objects::cluster::{Cache, Change};

/// The node pools and their nodes as last observed. Clones share them.
#[derive(Clone)]
pub struct NodeStore {
    shared: Arc<Shared>,
}

struct Shared {
    pools: Cache<NodePool>,
    nodes: Cache<NodeObject>,
    changes: Changes,
    knowledge: RwLock<Knowledge>,
}

/// The state of the lists of pools and nodes.
#[derive(Debug, Default)]
struct Knowledge {
    /// The pools have been listed.
    pools: bool,
    /// The nodes have been listed.
    nodes: bool,
    /// The reason for which they cannot be.
    missing: Option<Missing>,
}

/// The node pools of the cluster are not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownPools {
    /// They have not been listed yet.
    #[error("the node pools have not been listed yet")]
    NotYet,
    /// They cannot be listed.
    #[error("the node pools cannot be listed: {0}")]
    Missing(Missing),
}

impl NodeStore {
    /// Creates an empty store, whose changes are added to these.
    #[must_use]
    pub fn new(changes: Changes) -> Self {
        let (pools, nodes) = (Cache::default(), Cache::default());
        Self { shared: Arc::new(Shared { pools, nodes, changes, knowledge: RwLock::default() }) }
    }

    /// Records that the objects cannot be listed.
    pub fn set_missing(&self, missing: Missing) {
        *self.shared.knowledge.write() = Knowledge { missing: Some(missing), ..Knowledge::default() };
    }

    /// Returns all pools with their nodes, sorted by name.
    ///
    /// # Errors
    ///
    /// If they are not known.
    pub fn all(&self) -> Result<Vec<PoolView>, UnknownPools> {
        let Shared { pools, nodes, knowledge, .. } = &*self.shared;
        match &*knowledge.read() {
            Knowledge { pools: true, nodes: true, .. } => Ok(PoolView::all(pools.all(), nodes.all())),
            Knowledge { missing: Some(missing), .. } => Err(UnknownPools::Missing(missing.clone())),
            _ => Err(UnknownPools::NotYet),
        }
    }

    /// Returns the number of pools; 0 if they are not known.
    #[must_use]
    pub fn count(&self) -> usize {
        let Shared { pools, knowledge, .. } = &*self.shared;
        if knowledge.read().pools { pools.all().len() } else { 0 }
    }

    /// Returns a pool with its nodes, if it exists.
    ///
    /// # Errors
    ///
    /// If the pools are not known.
    pub fn get(&self, name: &str) -> Result<Option<PoolView>, UnknownPools> {
        Ok(self.all()?.into_iter().find(|view| view.pool.name_any() == name))
    }

    /// Notes what is listed now; if all was not known before, everything may have changed.
    fn note(&self, set: impl FnOnce(&mut Knowledge)) {
        let mut knowledge = self.shared.knowledge.write();
        let was_known = knowledge.missing.take().is_none() && knowledge.pools && knowledge.nodes;
        set(&mut knowledge);
        let is_known = knowledge.pools && knowledge.nodes;
        drop(knowledge);
        if is_known && !was_known {
            self.shared.changes.reset();
        }
    }

    fn add_changes(&self, pools: impl IntoIterator<Item = String>) {
        let Knowledge { pools: true, nodes: true, .. } = &*self.shared.knowledge.read() else { return };
        pools.into_iter().for_each(|name| self.shared.changes.add(StatusChange::NodePool { name }));
    }
}

/// Returns texts that are different for different documents of a pool.
///
/// The API server gives each state of an object another version.
#[must_use]
pub fn pool_versions(view: &PoolView) -> Vec<String> {
    let nodes = view.nodes.iter().flat_map(|node| version(&node.metadata));
    pool_version(&view.pool).into_iter().chain(nodes).collect()
}

/// Returns texts that are different for different states of a pool without its nodes.
#[must_use]
pub fn pool_version(pool: &NodePool) -> [String; 3] {
    version(&pool.metadata)
}

fn version(metadata: &ObjectMeta) -> [String; 3] {
    [&metadata.name, &metadata.uid, &metadata.resource_version].map(|text| text.clone().unwrap_or_default())
}

impl Observed<NodePool> for NodeStore {
    fn cache(&self) -> &Cache<NodePool> {
        &self.shared.pools
    }

    /// Records a change of a pool; another selector may move nodes between all pools.
    fn record(&self, change: &Change<NodePool>) {
        let claim = |pool: &Option<Arc<NodePool>>| pool.as_deref().map(Claim::of);
        let name = change.name.name.clone();
        if claim(&change.old) == claim(&change.new) {
            self.add_changes([name]);
        } else {
            let pools = self.shared.pools.all();
            let all = pools.iter().map(|pool| pool.name_any()).chain([name]);
            self.add_changes(all.collect::<BTreeSet<_>>());
        }
    }

    fn set_known(&self) {
        self.note(|knowledge| knowledge.pools = true);
    }
}

impl Observed<NodeObject> for NodeStore {
    fn cache(&self) -> &Cache<NodeObject> {
        &self.shared.nodes
    }

    /// Records a change of a node, unless no document shows it, as of a heartbeat.
    fn record(&self, change: &Change<NodeObject>) {
        let claims = claims(&self.shared.pools.all());
        let shown = |node: &Option<Arc<NodeObject>>| {
            let node = node.as_deref()?;
            Some((claims.holder(node)?.to_owned(), NodeDocument::new(node)))
        };
        let (old, new) = (shown(&change.old), shown(&change.new));
        if old != new {
            let pools: BTreeSet<String> = old.into_iter().chain(new).map(|(pool, _)| pool).collect();
            self.add_changes(pools);
        }
    }

    fn set_known(&self) {
        self.note(|knowledge| knowledge.nodes = true);
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::watcher::Event;
    use serde_json::{Value, json};

    use super::*;

    fn observe<K>(store: &NodeStore, event: Event<K>)
    where
        K: ResourceExt + PartialEq,
        NodeStore: Observed<K>,
    {
        store.cache().observe(event).iter().for_each(|change| store.record(change));
    }

    fn pool(name: &str, role: &str, version: u64) -> Event<NodePool> {
        let object = json!({
            "apiVersion": "tagboat.dev/v1alpha1", "kind": "NodePool",
            "metadata": {"name": name, "uid": name, "resourceVersion": version.to_string()},
            "spec": {"nodeSelector": {"matchLabels": {"role": role}}},
        });
        Event::Apply(serde_json::from_value(object).unwrap())
    }

    fn node(labels: &Value, version: u64) -> Event<NodeObject> {
        let object = json!({"metadata": {"name": "a", "uid": "a", "resourceVersion": version.to_string(), "labels": labels}});
        Event::Apply(serde_json::from_value(object).unwrap())
    }

    fn in_stage(stage: &str, role: &str) -> Value {
        json!({"role": role, "tagboat.dev/state": stage})
    }

    /// Returns a store of two pools and a node, and a source of its changes.
    fn listed() -> (NodeStore, impl AsyncFnMut() -> String) {
        let store = NodeStore::new(Changes::default());
        let mut subscription = store.shared.changes.follow(store.shared.changes.last()).unwrap();
        observe(&store, pool("x", "x", 1));
        observe(&store, pool("y", "y", 2));
        Observed::<NodePool>::set_known(&store);
        observe(&store, node(&in_stage("idle", "x"), 3));
        assert_eq!(store.all().unwrap_err(), UnknownPools::NotYet);
        Observed::<NodeObject>::set_known(&store);
        let changes = store.shared.changes.clone();
        let next = async move || {
            changes.add(StatusChange::NodePool { name: "end".to_owned() });
            let mut names = Vec::new();
            while names.last().is_none_or(|last| last != "end") {
                names.extend(subscription.next().await.unwrap().iter().map(
                    |recorded| match &recorded.change {
                        StatusChange::NodePool { name } => name.clone(),
                        StatusChange::Reset => "reset".to_owned(),
                        other => panic!("{other:?}"),
                    },
                ));
            }
            names.pop();
            names.join(" ")
        };
        (store, next)
    }

    #[tokio::test]
    async fn clients_learn_of_what_a_document_shows() {
        let (store, mut next) = listed();
        assert_eq!(next().await, "reset", "nothing was known before");
        Observed::<NodeObject>::set_known(&store);
        observe(&store, node(&in_stage("idle", "x"), 4));
        assert_eq!(next().await, "", "a heartbeat");
        observe(&store, node(&in_stage("draining", "x"), 5));
        assert_eq!(next().await, "x");
        observe(&store, node(&in_stage("draining", "y"), 6));
        assert_eq!(next().await, "x y", "it is in another pool");
        observe(&store, node(&json!({"role": "y"}), 7));
        assert_eq!(next().await, "y", "it was released");
        observe(&store, pool("y", "x", 8));
        assert_eq!(next().await, "x y", "nodes may have changed between pools");
        let names = store.get("x").unwrap().unwrap().pool.name_any();
        assert_eq!((names.as_str(), store.get("z").unwrap().is_none()), ("x", true));
    }

    #[tokio::test]
    async fn pools_that_are_missing_are_unknown_until_both_kinds_are_listed_again() {
        let (store, mut next) = listed();
        let missing = Missing::NotServed("NodePool".to_owned());
        store.set_missing(missing.clone());
        assert_eq!(store.all().unwrap_err(), UnknownPools::Missing(missing));
        assert_eq!(next().await, "reset");
        observe(&store, node(&in_stage("draining", "x"), 9));
        Observed::<NodePool>::set_known(&store);
        assert_eq!(store.all().unwrap_err(), UnknownPools::NotYet);
        assert_eq!(next().await, "");
        Observed::<NodeObject>::set_known(&store);
        assert_eq!((store.all().unwrap().len(), next().await.as_str()), (2, "reset"));
    }
}
