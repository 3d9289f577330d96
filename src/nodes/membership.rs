//! The pool of each node: the oldest one that selects it.
//!
//! A pool whose selector is not valid any more keeps the nodes of the last valid one. After a restart that selector is
//! not known, so then the nodes on which the pool is recorded stay as they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use tagboat_api::NodePool;

use super::{Conflict, Hooks, Node, NodeObject, Pool, Settings, keys};

/// The claim of a pool to nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The name of the pool.
    pub pool: String,
    /// The time at which it was created.
    created: Option<Timestamp>,
    /// `true` for a pool that is being deleted: it has no nodes.
    is_deleted: bool,
    /// The selector of its nodes, or the last valid one, if one is known.
    selector: Option<Selector>,
    /// `true` if its selector is valid now.
    is_decided: bool,
    /// `true` if the object cannot be read.
    is_unreadable: bool,
    /// The valid keys of its hooks, which are removed from a node that leaves it.
    hooks: Hooks,
}

impl Claim {
    /// Returns the claim of a pool.
    #[must_use]
    pub fn of(object: &NodePool) -> Self {
        let selector = Settings::node_selector(&object.spec).ok();
        Self {
            pool: object.name_any(),
            created: object.metadata.creation_timestamp.as_ref().map(|time| time.0),
            is_deleted: object.metadata.deletion_timestamp.is_some(),
            is_decided: selector.is_some(),
            is_unreadable: false,
            selector,
            hooks: Settings::valid_hooks(&object.spec),
        }
    }

    /// Returns the claim of a pool of which only the metadata can be read.
    #[must_use]
    pub fn unreadable(metadata: &ObjectMeta) -> Self {
        Self {
            pool: metadata.name.clone().unwrap_or_default(),
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            is_deleted: metadata.deletion_timestamp.is_some(),
            is_decided: false,
            is_unreadable: true,
            selector: None,
            hooks: Hooks::default(),
        }
    }

    fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selector.as_ref().is_some_and(|selector| selector.matches(labels))
    }

    /// Returns `true` for a live pool whose nodes are not known.
    fn is_undecided(&self) -> bool {
        !self.is_deleted && !self.is_decided
    }
}

/// The claims of all pools of a cluster, the oldest first.
#[derive(Clone, Debug, Default)]
pub struct Claims(Vec<Claim>);

/// The nodes of a pool.
#[derive(Clone, Debug, Default)]
pub struct Share {
    /// The nodes of the pool.
    pub nodes: Vec<Arc<Node>>,
    /// The nodes that it and another pool select.
    pub conflicts: Vec<Conflict>,
}

impl Claims {
    /// Sets the claim of a pool, and returns `true` if it changed.
    ///
    /// Without a valid selector, the last one counts, and without a spec that can be read, the last hooks too.
    pub fn insert(&mut self, mut claim: Claim) -> bool {
        let known = self.claim(&claim.pool).filter(|known| known.created == claim.created);
        if let Some(known) = known.filter(|_| !claim.is_decided) {
            claim.selector.clone_from(&known.selector);
            if claim.is_unreadable {
                claim.hooks.clone_from(&known.hooks);
            }
        }
        if self.0.contains(&claim) {
            return false;
        }
        self.0.retain(|other| other.pool != claim.pool);
        let is_older = |other: &Claim| (other.created, &other.pool) < (claim.created, &claim.pool);
        self.0.insert(self.0.partition_point(is_older), claim);
        true
    }

    /// Removes the claim of a pool that is gone.
    ///
    /// Returns `true` if there was one. A pool that cannot be read is not gone.
    pub fn remove(&mut self, pool: &str) -> bool {
        self.remove_if(|claim| claim.pool == pool && !claim.is_unreadable)
    }

    /// Removes the claim of a pool that could not be read, and is gone.
    pub fn remove_unreadable(&mut self, pool: &str) -> bool {
        self.remove_if(|claim| claim.pool == pool && claim.is_unreadable)
    }

    fn remove_if(&mut self, is_removed: impl Fn(&Claim) -> bool) -> bool {
        let count = self.0.len();
        self.0.retain(|claim| !is_removed(claim));
        self.0.len() < count
    }

    /// Returns the hooks of a pool; none if it is gone.
    #[must_use]
    pub fn hooks(&self, pool: &str) -> Option<&Hooks> {
        self.claim(pool).map(|claim| &claim.hooks)
    }

    fn claim(&self, pool: &str) -> Option<&Claim> {
        self.0.iter().find(|claim| claim.pool == pool)
    }

    /// Returns the pool of a node with these labels.
    #[must_use]
    pub fn owner<'c>(&'c self, labels: &'c BTreeMap<String, String>) -> Option<&'c str> {
        self.selecting(labels).next()
    }

    /// Returns the pool that holds a node.
    ///
    /// That is its pool, or the deleted one that it leaves. A node that the controller has not labeled is in no pool yet.
    #[must_use]
    pub fn holder<'c>(&'c self, node: &'c NodeObject) -> Option<&'c str> {
        let labels = node.labels.as_ref();
        let leaves = || self.0.iter().find(|claim| claim.is_deleted && claim.selects(labels));
        let holder = || {
            let owner = self.owner(labels);
            let recorded = self.recorded(node.annotations.get(keys::POOL).map(String::as_str), owner);
            recorded.or(owner).or_else(|| leaves().map(|claim| claim.pool.as_str()))
        };
        labels.contains_key(keys::STATE).then(holder).flatten()
    }

    /// Returns the live pools that select a node, the oldest first.
    fn selecting<'c>(&'c self, labels: &'c BTreeMap<String, String>) -> impl Iterator<Item = &'c str> {
        self.0
            .iter()
            .filter(|claim| !claim.is_deleted && claim.selects(labels))
            .map(|claim| claim.pool.as_str())
    }

    /// Returns all pools, also deleted ones, that select any of two sets of labels.
    pub fn concerned<'c>(
        &'c self,
        old: &'c BTreeMap<String, String>,
        new: &'c BTreeMap<String, String>,
    ) -> impl Iterator<Item = &'c str> {
        self.0
            .iter()
            .filter(|claim| claim.selects(old) || claim.selects(new))
            .map(|claim| claim.pool.as_str())
    }

    /// Returns `true` if the nodes of each live pool are known.
    ///
    /// Otherwise a node without a pool may be one of a pool whose selector is not valid.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.undecided().is_none()
    }

    /// Returns a live pool whose nodes are not known.
    #[must_use]
    pub fn undecided(&self) -> Option<&str> {
        self.0.iter().find(|claim| claim.is_undecided()).map(|claim| claim.pool.as_str())
    }

    /// Returns the pool on whose record a node stays, although another pool selects it.
    ///
    /// It is older, and its selector was never valid in this process.
    fn recorded<'c>(&'c self, recorded: Option<&str>, owner: Option<&str>) -> Option<&'c str> {
        let recorded = recorded?;
        let older = self.0.iter().take_while(|claim| owner != Some(claim.pool.as_str()));
        let mut undecided = older.filter(|claim| claim.is_undecided() && claim.selector.is_none());
        undecided.find(|claim| claim.pool == recorded).map(|claim| claim.pool.as_str())
    }

    /// Returns the nodes of a pool among those of the cluster.
    #[must_use]
    pub fn share<'n>(&self, pool: &str, nodes: impl Iterator<Item = &'n Arc<Node>>) -> Share {
        let mut share = Share::default();
        let Some(own) = self.0.iter().find(|claim| claim.pool == pool && !claim.is_deleted) else {
            return share;
        };
        for node in nodes.filter(|node| own.selects(&node.labels)) {
            let mut pools = self.selecting(&node.labels);
            let recorded = node.annotation(keys::POOL).filter(|_| node.is_labeled());
            let owner = self.recorded(recorded, Some(pool)).or_else(|| pools.next());
            // The owner names the pool after it, and another one names the owner.
            let (is_own, other) = if owner == Some(pool) { (true, pools.next()) } else { (false, owner) };
            if let Some(other) = other {
                share.conflicts.push(Conflict { node: node.name.clone(), pool: other.to_owned() });
            }
            if is_own {
                share.nodes.push(node.clone());
            }
        }
        share
    }

    /// Returns the nodes of the cluster that a deleted pool has not released yet.
    ///
    /// `None` if its deletion is not known here: the cache of the pools is updated before the claims are.
    #[must_use]
    pub fn unreleased<'n>(&self, pool: &str, nodes: &'n [Arc<Node>]) -> Option<Vec<&'n Node>> {
        let deleted = self.claim(pool).filter(|claim| claim.is_deleted)?;
        let is_left = |node: &&Node| {
            node.is_labeled() && deleted.selects(&node.labels) && self.owner(&node.labels).is_none()
        };
        Some(nodes.iter().map(AsRef::as_ref).filter(is_left).collect())
    }

    /// Returns a pool with the hooks of the pools that a node leaves.
    ///
    /// They select it, or are recorded on it.
    #[must_use]
    pub fn released(&self, node: &Node) -> Pool {
        let recorded = node.annotation(keys::POOL);
        let is_left = |claim: &&Claim| claim.selects(&node.labels) || recorded == Some(claim.pool.as_str());
        let mut hooks = Hooks::default();
        self.0.iter().filter(is_left).for_each(|claim| hooks.add(claim.hooks.clone()));
        Pool { hooks, ..Pool::default() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pool(name: &str, created: &str, spec: &Value) -> NodePool {
        let mut object = json!({
            "apiVersion": "tagboat.dev/v1alpha1", "kind": "NodePool",
            "metadata": {"name": name, "creationTimestamp": created},
            "spec": {"nodeSelector": {"matchLabels": {"role": name}}},
        });
        for (key, value) in spec.as_object().into_iter().flatten() {
            object["spec"][key] = value.clone();
        }
        serde_json::from_value(object).unwrap()
    }

    fn claims(pools: &[NodePool]) -> Claims {
        let mut claims = Claims::default();
        pools.iter().for_each(|pool| assert!(claims.insert(Claim::of(pool))));
        claims
    }

    fn node(name: &str, roles: &[(&str, &str)]) -> Arc<Node> {
        let labels: BTreeMap<_, _> =
            roles.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Arc::new(Node { name: name.to_owned(), labels: Arc::new(labels), ..Node::default() })
    }

    fn by_zone() -> Value {
        json!({"nodeSelector": {"matchLabels": {"zone": "a"}}})
    }

    const EARLY: &str = "2026-11-23T10:00:00Z";
    const LATE: &str = "2026-11-23T11:00:00Z";

    #[test]
    fn a_node_stays_with_the_older_pool_and_both_name_the_conflict() {
        let claims = claims(&[pool("x", LATE, &by_zone()), pool("y", EARLY, &json!({}))]);
        let nodes = [
            node("a", &[("zone", "a")]),
            node("b", &[("zone", "a"), ("role", "y")]),
            node("c", &[("role", "y")]),
        ];
        let share = |pool: &str| {
            let Share { nodes, conflicts } = claims.share(pool, nodes.iter());
            let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
            let conflicts: Vec<String> = conflicts.iter().map(|c| format!("{} {}", c.node, c.pool)).collect();
            (names.join(" "), conflicts.join(", "))
        };
        assert_eq!(share("x"), ("a".to_owned(), "b y".to_owned()));
        assert_eq!(share("y"), ("b c".to_owned(), "b x".to_owned()));
        assert_eq!(share("unknown"), Default::default());
        assert_eq!(claims.owner(&nodes[1].labels), Some("y"));
        let both: Vec<&str> = claims.concerned(&nodes[0].labels, &nodes[2].labels).collect();
        assert_eq!(both, ["y", "x"]);
    }

    #[test]
    fn pools_of_the_same_second_are_ordered_by_name() {
        let claims = claims(&[pool("z", EARLY, &by_zone()), pool("y", EARLY, &by_zone())]);
        assert_eq!(claims.owner(&node("a", &[("zone", "a")]).labels), Some("y"));
    }

    #[test]
    fn a_deleted_pool_has_no_nodes_and_leaves_its_hooks() {
        let mut deleted = pool("x", EARLY, &json!({"hooks": {"beforeReboot": ["a"], "beforeDrain": ["b"]}}));
        let mut claims = claims(&[deleted.clone()]);
        let node = node("a", &[("role", "x")]);
        assert_eq!(claims.owner(&node.labels), Some("x"));
        deleted.metadata.deletion_timestamp = deleted.metadata.creation_timestamp.clone();
        assert!(claims.insert(Claim::of(&deleted)) && !claims.insert(Claim::of(&deleted)));
        assert_eq!(claims.owner(&node.labels), None);
        assert!(claims.share("x", [node.clone()].iter()).nodes.is_empty());
        assert_eq!(claims.released(&node).hooks.all().collect::<Vec<_>>(), ["b", "a"]);
    }

    /// Returns a node that the controller has labeled, with a record of its pool.
    fn member(name: &str, roles: &[(&str, &str)], pool: Option<&str>) -> Arc<Node> {
        let mut node = Arc::unwrap_or_clone(node(name, roles));
        Arc::make_mut(&mut node.labels).insert(keys::STATE.to_owned(), "idle".to_owned());
        let recorded = pool.map(|pool| (keys::POOL.to_owned(), pool.to_owned()));
        Arc::make_mut(&mut node.annotations).extend(recorded);
        Arc::new(node)
    }

    /// A pool that was due in between lost its finalizer while nodes were held.
    #[test]
    fn a_deleted_pool_waits_for_its_nodes_and_for_the_claims_to_know_that_it_is_deleted() {
        let mut x = pool("x", EARLY, &json!({}));
        let mut claims = claims(&[x.clone(), pool("y", LATE, &by_zone())]);
        let nodes = [
            member("a", &[("role", "x")], Some("x")),
            node("without-keys", &[("role", "x")]),
            member("of-another-pool-now", &[("role", "x"), ("zone", "a")], Some("x")),
            member("of-another-pool", &[("zone", "a")], Some("y")),
        ];
        let unreleased = |claims: &Claims, nodes: &[Arc<Node>]| {
            let nodes = claims.unreleased("x", nodes)?;
            Some(nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(unreleased(&claims, &nodes), None);
        x.metadata.deletion_timestamp = x.metadata.creation_timestamp.clone();
        assert!(claims.insert(Claim::of(&x)));
        assert_eq!(unreleased(&claims, &nodes).as_deref(), Some("a"));
        assert_eq!(unreleased(&claims, &nodes[1..]).as_deref(), Some(""));
        claims.remove("x");
        assert_eq!(unreleased(&claims, &nodes), None);
    }

    /// The pool is `InvalidSpec`, and each node that left any pool lost the label.
    #[test]
    fn an_invalid_hook_key_removes_no_label_from_a_node_that_leaves() {
        let hooks = json!({
            "beforeDrain": ["role", "example.com/backup"], "beforeUncordon": ["tagboat.dev/pause", "a b"],
            "beforeReboot": ["node-role.kubernetes.io/control-plane", "example.com/volumes"],
        });
        let claims = claims(&[pool("x", EARLY, &json!({"hooks": hooks}))]);
        let valid = ["example.com/backup", "example.com/volumes"];
        assert_eq!(claims.hooks("x").unwrap().all().collect::<Vec<_>>(), valid);
        let node = node("a", &[("role", "x")]);
        assert_eq!(claims.released(&node).hooks.all().collect::<Vec<_>>(), valid);
    }

    #[test]
    fn the_hooks_of_a_pool_stay_on_a_node_that_was_never_in_it() {
        let hooks = |key: &str| json!({"hooks": {"beforeDrain": [key]}});
        let claims = claims(&[pool("x", EARLY, &hooks("x-hook")), pool("y", LATE, &hooks("y-hook"))]);
        let of = |node: &Node| claims.released(node).hooks.all().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!(of(&node("a", &[("role", "x")])), "x-hook");
        assert_eq!(of(&member("a", &[], Some("y"))), "y-hook", "its labels have changed");
        assert_eq!(of(&member("a", &[("role", "x")], Some("y"))), "x-hook y-hook");
        assert_eq!(of(&member("a", &[], None)), "");
    }

    #[test]
    fn an_older_pool_whose_selector_becomes_invalid_keeps_the_nodes_that_a_younger_one_selects() {
        let invalid = json!({"nodeSelector": {"matchLabels": {"a b": "c"}}});
        let mut claims = claims(&[pool("x", EARLY, &by_zone()), pool("y", LATE, &by_zone())]);
        let nodes = [member("a", &[("zone", "a")], Some("x")), node("b", &[("zone", "a")])];
        let share = |claims: &Claims, pool: &str| {
            let Share { nodes, conflicts } = claims.share(pool, nodes.iter());
            (nodes.len(), conflicts.len())
        };
        assert!(claims.insert(Claim::of(&pool("x", EARLY, &invalid))));
        assert!(!claims.insert(Claim::of(&pool("x", EARLY, &invalid))));
        assert_eq!(claims.undecided(), Some("x"));
        assert_eq!((share(&claims, "x"), share(&claims, "y")), ((2, 2), (0, 2)));
        assert_eq!(claims.owner(&nodes[0].labels), Some("x"));
        // Another pool of that name has no nodes.
        assert!(claims.insert(Claim::of(&pool("x", LATE, &invalid))));
        assert_eq!(share(&claims, "x"), (0, 0));
    }

    #[test]
    fn a_pool_that_cannot_be_read_keeps_its_nodes_until_it_is_gone() {
        let hooks =
            json!({"hooks": {"beforeDrain": ["hook"]}, "nodeSelector": {"matchLabels": {"zone": "a"}}});
        let (x, y) = (pool("x", EARLY, &hooks), pool("y", LATE, &by_zone()));
        let mut claims = claims(&[x.clone(), y]);
        let node = node("a", &[("zone", "a")]);
        assert!(!claims.remove_unreadable("x"));
        let unreadable = Claim::unreadable(&x.metadata);
        assert!(claims.insert(unreadable.clone()) && !claims.insert(unreadable.clone()));
        assert!(!claims.remove("x"), "the cache of the watch does not have it");
        assert_eq!((claims.owner(&node.labels), claims.undecided()), (Some("x"), Some("x")));
        assert_eq!(claims.released(&node).hooks.all().collect::<Vec<_>>(), ["hook"]);
        assert!(claims.insert(Claim::of(&x)) && !claims.remove_unreadable("x"), "it can be read again");
        assert!(claims.insert(unreadable) && claims.remove_unreadable("x"));
        assert_eq!((claims.owner(&node.labels), claims.undecided()), (Some("y"), None));
        // It could never be read.
        assert!(claims.insert(Claim::unreadable(&x.metadata)));
        assert_eq!((claims.owner(&node.labels), claims.undecided()), (Some("y"), Some("x")));
        let mut deleted = x.metadata.clone();
        deleted.deletion_timestamp = deleted.creation_timestamp.clone();
        assert!(claims.insert(Claim::unreadable(&deleted)) && claims.is_complete());
    }

    #[test]
    fn after_a_restart_a_younger_pool_takes_no_node_of_a_pool_whose_selector_is_invalid() {
        let invalid = json!({"nodeSelector": {"matchLabels": {"a b": "c"}}});
        let [early, late] = [EARLY, LATE].map(|created| pool("x", created, &invalid));
        let taken = |node: &Arc<Node>, x: &NodePool| {
            let claims = claims(&[x.clone(), pool("y", "2026-11-23T10:30:00Z", &by_zone())]);
            let Share { nodes, conflicts } = claims.share("y", [node.clone()].iter());
            assert_eq!(nodes.is_empty(), conflicts.iter().any(|conflict| conflict.pool == "x"));
            !nodes.is_empty()
        };
        for (recorded, expected) in
            [(Some("x"), false), (Some("y"), true), (Some("gone"), true), (None, true)]
        {
            let node = member("a", &[("zone", "a")], recorded);
            assert_eq!(taken(&node, &early), expected, "{recorded:?}");
            assert!(taken(&node, &late), "it is the younger one");
        }
        let mut released = Arc::unwrap_or_clone(member("a", &[("zone", "a")], Some("x")));
        Arc::make_mut(&mut released.labels).remove(keys::STATE);
        assert!(taken(&Arc::new(released), &early), "it is in no pool");
        let mut deleted = early.clone();
        deleted.metadata.deletion_timestamp = deleted.metadata.creation_timestamp.clone();
        assert!(taken(&member("a", &[("zone", "a")], Some("x")), &deleted));
    }

    #[test]
    fn a_live_pool_without_a_valid_selector_may_have_any_node() {
        let invalid = json!({"nodeSelector": {"matchLabels": {"a b": "c"}}});
        let mut invalid = pool("x", EARLY, &invalid);
        let mut claims = claims(&[invalid.clone(), pool("y", EARLY, &json!({}))]);
        assert!(!claims.is_complete());
        assert_eq!(claims.undecided(), Some("x"));
        invalid.metadata.deletion_timestamp = invalid.metadata.creation_timestamp.clone();
        claims.insert(Claim::of(&invalid));
        assert!(claims.is_complete());
    }
}
