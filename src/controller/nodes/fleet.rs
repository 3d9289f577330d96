//! The nodes of the cluster, as the watch and our own patches show them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tagboat_api::ObjectName;

use super::NAME;
use crate::nodes::{Node, NodeObject};
use crate::objects::cluster::{ApiGuard, Cache, Change, ClusterError, ClusterObjects};

/// The nodes of the cluster.
pub(super) struct Fleet {
    pub(super) cache: Cache<NodeObject>,
    nodes: RwLock<BTreeMap<String, Arc<Node>>>,
    /// The nodes with a patch whose effect is not known, or that lost.
    ///
    /// The value is the number of the last such patch.
    uncertain: Mutex<BTreeMap<String, u64>>,
    /// The number of patches after which a node was uncertain.
    uncertain_patches: AtomicU64,
    client: Client,
    guard: ApiGuard,
}

/// A change of a node that is not only one of its version.
pub(super) struct NodeChange {
    /// The node before; none if it is new.
    pub(super) old: Option<Arc<Node>>,
    /// The node now; none if it was deleted.
    pub(super) new: Option<Arc<Node>>,
}

impl Fleet {
    pub(super) fn new(objects: &ClusterObjects) -> Self {
        Self {
            cache: Cache::default(),
            nodes: RwLock::default(),
            uncertain: Mutex::default(),
            uncertain_patches: AtomicU64::default(),
            client: objects.client().clone(),
            guard: objects.guard().clone(),
        }
    }

    /// Returns all nodes, sorted by name.
    pub(super) fn nodes(&self) -> Vec<Arc<Node>> {
        self.nodes.read().values().cloned().collect()
    }

    /// Returns `true` if a node of the control plane is unavailable.
    pub(super) fn is_control_plane_busy(&self) -> bool {
        self.nodes.read().values().any(|node| node.is_control_plane() && node.is_unavailable())
    }

    /// Returns a node.
    pub(super) fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.nodes.read().get(name).cloned()
    }

    /// Applies a change of the cache; returns none if nothing changed that decides.
    ///
    /// The state is that of the cache by now: changes that two tasks report can arrive here in another order.
    pub(super) fn apply(&self, change: &Change<NodeObject>) -> Option<NodeChange> {
        let name = &change.name.name;
        let mut nodes = self.nodes.write();
        let new = self.cache.get(&change.name);
        let new = new.map(|object| Arc::new(Node::from(&*object)));
        let old = match &new {
            Some(node) => nodes.insert(name.clone(), node.clone()),
            None => nodes.remove(name),
        };
        let is_same = match (&old, &new) {
            (Some(old), Some(new)) => {
                Node { resource_version: String::new(), ..Node::clone(old) }
                    == Node { resource_version: String::new(), ..Node::clone(new) }
            }
            (None, None) => true,
            _ => false,
        };
        (!is_same).then_some(NodeChange { old, new })
    }

    /// Patches a node, and calls `changed` unless the watch was faster.
    ///
    /// Returns `false` if another client changed or deleted the node meanwhile, so the patch was not made. The node is
    /// read again before the next step then, because that write may have changed nothing that makes a pool due.
    ///
    /// # Errors
    ///
    /// The API server refuses the patch, or its answer is not known.
    pub(super) async fn patch(
        &self,
        node: &str,
        patch: &Value,
        changed: impl Fn(&Change<NodeObject>),
    ) -> Result<bool, ClusterError> {
        let parameters = PatchParams { field_manager: Some(NAME.to_owned()), ..PatchParams::default() };
        let merge = Patch::Merge(patch);
        let api = self.api();
        match self.guard.send("", api.patch(node, &parameters, &merge)).await {
            Ok(object) => {
                self.cache.apply_written(object).iter().for_each(changed);
                Ok(true)
            }
            Err(error) if error.is_conflict() || error.is_not_found() => {
                self.set_uncertain(node);
                Ok(false)
            }
            Err(error) => {
                if !matches!(error, ClusterError::Rejected(_) | ClusterError::Fenced) {
                    self.set_uncertain(node);
                }
                Err(error)
            }
        }
    }

    /// Reads the nodes again whose last patch had no answer, or lost to another write.
    ///
    /// Otherwise a slot could be given away that the first has taken, and the second would lose again.
    ///
    /// # Errors
    ///
    /// A node cannot be read.
    pub(super) async fn read_uncertain(
        &self,
        changed: impl Fn(&Change<NodeObject>),
    ) -> Result<(), ClusterError> {
        loop {
            let first = self.uncertain.lock().first_key_value().map(|(name, patch)| (name.clone(), *patch));
            let Some((name, patch)) = first else { return Ok(()) };
            let api = self.api();
            let known = ObjectName { namespace: String::new(), name: name.clone() };
            let change = match self.guard.send("", api.get_opt(&name)).await? {
                Some(object) => self.cache.apply_written(object),
                None => self.cache.remove(&known),
            };
            change.iter().for_each(&changed);
            // Another patch since the read began makes the node uncertain again.
            let mut uncertain = self.uncertain.lock();
            if uncertain.get(&name) == Some(&patch) {
                uncertain.remove(&name);
            }
        }
    }

    fn set_uncertain(&self, node: &str) {
        let patch = self.uncertain_patches.fetch_add(1, Ordering::Relaxed);
        self.uncertain.lock().insert(node.to_owned(), patch);
    }

    fn api(&self) -> Api<NodeObject> {
        Api::all(self.client.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Weak;
    use std::sync::atomic::AtomicUsize;

    use axum::body::Body;
    use axum::http::{Request, Response};
    use kube::runtime::watcher::Event;
    use serde_json::json;
    use tower::service_fn;

    use super::*;

    fn object(version: &str, stage: &str) -> NodeObject {
        let metadata =
            json!({"name": "a", "resourceVersion": version, "labels": {"tagboat.dev/state": stage}});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    /// The pools and the release of nodes read and patch at the same time.
    #[tokio::test]
    async fn a_node_whose_patch_fails_during_a_read_is_read_again() {
        let fleet = Arc::new_cyclic(|fleet: &Weak<Fleet>| {
            let (fleet, reads) = (fleet.clone(), Arc::new(AtomicUsize::new(0)));
            let service = service_fn(move |_: Request<kube::client::Body>| {
                let read = reads.fetch_add(1, Ordering::Relaxed);
                if read == 0 {
                    fleet.upgrade().unwrap().set_uncertain("a");
                }
                let version = (read + 1).to_string();
                let node = json!({
                    "apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "resourceVersion": version},
                });
                async move { Ok::<_, Infallible>(Response::new(Body::from(node.to_string()))) }
            });
            Fleet::new(&ClusterObjects::with_guard(Client::new(service, "default"), ApiGuard::default()))
        });
        fleet.cache.observe(Event::Apply(object("0", "idle")));
        fleet.set_uncertain("a");
        fleet.read_uncertain(|change| drop(fleet.apply(change))).await.unwrap();
        assert_eq!(fleet.node("a").unwrap().resource_version, "2");
        assert!(fleet.uncertain.lock().is_empty());
    }

    #[tokio::test]
    async fn a_change_that_arrives_late_replaces_no_newer_node() {
        let service = service_fn(|_: Request<kube::client::Body>| async {
            Ok::<_, Infallible>(Response::new(Body::empty()))
        });
        let client = Client::new(service, "default");
        let fleet = Fleet::new(&ClusterObjects::with_guard(client, ApiGuard::default()));
        let [first, second] = [("1", "idle"), ("2", "paused")]
            .map(|(version, stage)| fleet.cache.observe(Event::Apply(object(version, stage))).remove(0));
        // The watch and the answer to a patch are handled by two tasks.
        assert!(fleet.apply(&second).is_some());
        assert!(fleet.apply(&first).is_none());
        assert_eq!(fleet.node("a").unwrap().resource_version, "2");
        let deleted = fleet.cache.observe(Event::Delete(object("3", "paused"))).remove(0);
        assert!(fleet.apply(&deleted).is_some() && fleet.apply(&second).is_none());
        assert_eq!(fleet.nodes(), []);
    }
}
