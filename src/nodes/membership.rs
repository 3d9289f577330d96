//! The pool of each node: the oldest one that selects it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use tagboat_api::NodePool;

use super::{Conflict, Hooks, Node, Pool, Settings, keys};

/// The claim of a pool to nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The name of the pool.
    pub pool: String,
    /// The time at which it was created.
    created: Option<Timestamp>,
    /// `true` for a pool that is being deleted: it has no nodes.
    is_deleted: bool,
    /// The selector of its nodes; none if it is not valid.
    selector: Option<Selector>,
    /// The keys of its hooks, which are removed from a node that leaves it.
    hooks: Hooks,
}

impl Claim {
    /// Returns the claim of a pool.
    #[must_use]
    pub fn of(object: &NodePool) -> Self {
        let hooks = object.spec.hooks.clone().unwrap_or_default();
        Self {
            pool: object.name_any(),
            created: object.metadata.creation_timestamp.as_ref().map(|time| time.0),
            is_deleted: object.metadata.deletion_timestamp.is_some(),
            selector: Settings::node_selector(&object.spec).ok(),
            hooks: Hooks {
                before_drain: hooks.before_drain,
                before_reboot: hooks.before_reboot,
                before_uncordon: hooks.before_uncordon,
            },
        }
    }

    fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selector.as_ref().is_some_and(|selector| selector.matches(labels))
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
    pub fn insert(&mut self, claim: Claim) -> bool {
        if self.0.contains(&claim) {
            return false;
        }
        self.remove(&claim.pool);
        let is_older = |other: &Claim| (other.created, &other.pool) < (claim.created, &claim.pool);
        self.0.insert(self.0.partition_point(is_older), claim);
        true
    }

    /// Removes the claim of a pool.
    pub fn remove(&mut self, pool: &str) {
        self.0.retain(|claim| claim.pool != pool);
    }

    /// Returns the hooks of a pool; none if it is gone.
    #[must_use]
    pub fn hooks(&self, pool: &str) -> Option<&Hooks> {
        self.0.iter().find(|claim| claim.pool == pool).map(|claim| &claim.hooks)
    }

    /// Returns the pool of a node with these labels.
    #[must_use]
    pub fn owner<'c>(&'c self, labels: &'c BTreeMap<String, String>) -> Option<&'c str> {
        self.selecting(labels).next()
    }

    /// Returns the pool that holds a node with these labels.
    ///
    /// That is its pool, or the deleted one that it leaves. A node that the controller has not labeled is in no pool yet.
    #[must_use]
    pub fn holder<'c>(&'c self, labels: &'c BTreeMap<String, String>) -> Option<&'c str> {
        let leaves = || self.0.iter().find(|claim| claim.is_deleted && claim.selects(labels));
        let owner = || self.owner(labels).or_else(|| leaves().map(|claim| claim.pool.as_str()));
        labels.contains_key(keys::STATE).then(owner).flatten()
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
        let mut unknown = self.0.iter().filter(|claim| !claim.is_deleted && claim.selector.is_none());
        unknown.next().map(|claim| claim.pool.as_str())
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
            let owner = pools.next();
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

    /// Returns `true` if a pool, which may be deleted, selects a node with these labels.
    #[must_use]
    pub fn selects(&self, pool: &str, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().any(|claim| claim.pool == pool && claim.selects(labels))
    }

    /// Returns a pool with the hooks of all pools, for nodes without one.
    #[must_use]
    pub fn released(&self) -> Pool {
        let mut hooks = Hooks::default();
        for claim in &self.0 {
            hooks.before_drain.extend(claim.hooks.all().cloned());
        }
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
        assert!(claims.selects("x", &node.labels));
        assert_eq!(claims.released().hooks.all().collect::<Vec<_>>(), ["b", "a"]);
        claims.remove("x");
        assert!(!claims.selects("x", &node.labels));
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
