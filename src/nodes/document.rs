//! Documents of pools with their nodes: the REST API, the page, the command line.
//!
//! A node is shown with the pool that holds it, as the controller decides. Text that agents write is foreign, so it is
//! shortened, and its control characters are made visible.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use tagboat_api::node_pool::{MAX_VERSION, NodePoolStatus};
use tagboat_api::{Condition, NodePool};

use super::node::reboots;
use super::{AgentState, Claim, Claims, Node, NodeObject, Problem, Stage, keys};
use crate::printable::printable;
use crate::rollout::bounds::{cut, whole_seconds};
use crate::rollout::message::{MAX_LENGTH, message_with_end};

/// Pools of nodes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PoolList {
    /// Pools, sorted by name.
    pub items: Vec<PoolDocument>,
}

/// Pool of nodes: its status, and its nodes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolDocument {
    /// Name of the pool.
    pub name: String,
    /// Generation of the spec; the status describes it if `observedGeneration` is the same.
    pub generation: i64,
    /// Reference of the image; absent if the pool only coordinates reboots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Pool that begins no reboots.
    pub paused: bool,
    /// Time since which the pool is being deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub deletion_timestamp: Option<Time>,
    /// Fields of the status.
    #[serde(flatten)]
    pub status: NodePoolStatus,
    /// Nodes of the pool, sorted by name.
    pub nodes: Vec<NodeDocument>,
}

/// Node of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeDocument {
    /// Name of the node.
    pub name: String,
    /// Stage of the node.
    pub stage: Stage,
    /// Time since which the node is in its stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub since: Option<Time>,
    /// State that the agent reports; absent if it reports none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentState>,
    /// Digest of the booted image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub booted_digest: Option<String>,
    /// Version of the booted image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub booted_version: Option<String>,
    /// Digest of the staged image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staged_digest: Option<String>,
    /// Message of the agent; else, that the node is not ready or lacks a report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Returns the schema of a time.
///
/// The derived one would have the description of a type of Go's.
fn time_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// A pool with its nodes.
#[derive(Debug, Clone)]
pub struct PoolView {
    /// The pool.
    pub pool: Arc<NodePool>,
    /// Its nodes, in the given order.
    pub nodes: Vec<Arc<NodeObject>>,
}

impl PoolView {
    /// Returns each pool with its nodes.
    #[must_use]
    pub fn all(pools: Vec<Arc<NodePool>>, nodes: Vec<Arc<NodeObject>>) -> Vec<Self> {
        let claims = claims(&pools);
        let mut by_pool: BTreeMap<String, Vec<Arc<NodeObject>>> = BTreeMap::new();
        for node in nodes {
            if let Some(pool) = claims.holder(&node) {
                by_pool.entry(pool.to_owned()).or_default().push(node);
            }
        }
        let with_nodes = |pool: Arc<NodePool>| {
            let nodes = by_pool.remove(&pool.name_any()).unwrap_or_default();
            Self { pool, nodes }
        };
        pools.into_iter().map(with_nodes).collect()
    }

    /// Returns the document of the pool.
    #[must_use]
    pub fn document(&self) -> PoolDocument {
        let Self { pool, nodes } = self;
        PoolDocument {
            name: pool.name_any(),
            generation: pool.metadata.generation.unwrap_or_default(),
            image: pool.spec.image.as_ref().map(|image| image.reference.clone()),
            paused: pool.spec.paused,
            deletion_timestamp: pool.metadata.deletion_timestamp.clone(),
            status: pool.status.clone().unwrap_or_default(),
            nodes: nodes.iter().map(|node| NodeDocument::new(node)).collect(),
        }
    }
}

/// Returns the claims of pools to nodes.
#[must_use]
pub fn claims(pools: &[Arc<NodePool>]) -> Claims {
    let mut claims = Claims::default();
    for pool in pools {
        claims.insert(Claim::of(pool));
    }
    claims
}

impl PoolDocument {
    /// Returns a condition of the pool.
    #[must_use]
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.type_ == type_)
    }

    /// Returns the version that was deployed last.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.status.deploy_history.first()?.version.as_deref()
    }
}

impl NodeDocument {
    /// Returns the document of a node.
    #[must_use]
    pub fn new(object: &NodeObject) -> Self {
        let annotation = |key: &str| object.annotations.get(key).filter(|text| !text.is_empty());
        let text = |key: &str| annotation(key).map(|text| cut(printable(text).into(), MAX_VERSION));
        let label = |key: &str| object.labels.get(key);
        let stage = label(keys::STATE).and_then(|text| Stage::parse(text)).unwrap_or(Stage::Idle);
        let agent = label(keys::AGENT).and_then(|text| AgentState::parse(text));
        // A node that reboots is not ready for a while.
        let is_missing = !object.status.readiness.is_ready && !reboots(stage, agent);
        let not_ready = || is_missing.then(|| Problem::NotReady.to_string());
        // Its label is older than what the node wants: the state in it is not that of the wanted image.
        let is_outdated = Node::from(object).awaits_agent()
            && matches!(agent, None | Some(AgentState::UpToDate | AgentState::UpdateStaged));
        let no_report =
            || is_outdated.then(|| "its agent has not reported on the wanted image yet".to_owned());
        let since = annotation(keys::STATE_SINCE).and_then(|text| text.parse().ok());
        Self {
            name: object.name_any(),
            stage,
            since: since.map(whole_seconds),
            agent,
            booted_digest: text(keys::BOOTED_DIGEST),
            booted_version: text(keys::BOOTED_VERSION),
            staged_digest: text(keys::STAGED_DIGEST),
            message: annotation(keys::MESSAGE)
                .map(|text| message_with_end(text, MAX_LENGTH))
                .or_else(not_ready)
                .or_else(no_report),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pool(name: &str, created: &str, is_deleted: bool) -> Arc<NodePool> {
        let deleted = is_deleted.then_some("2026-11-23T12:00:00Z");
        let object = json!({
            "apiVersion": "tagboat.dev/v1alpha1", "kind": "NodePool",
            "metadata": {"name": name, "creationTimestamp": created, "deletionTimestamp": deleted, "generation": 2},
            "spec": {"nodeSelector": {"matchLabels": {"role": "worker"}}, "image": {"ref": "r/os:1"}},
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn node(name: &str, labels: &Value, annotations: &Value, is_ready: bool) -> Arc<NodeObject> {
        let ready = if is_ready { "True" } else { "Unknown" };
        let object = json!({
            "metadata": {"name": name, "labels": labels, "annotations": annotations},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_document_has_the_keys_of_the_node() {
        let labels = json!({"tagboat.dev/state": "before-reboot", "tagboat.dev/agent": "update-staged"});
        let annotations = json!({
            "tagboat.dev/state-since": "2026-11-23T10:00:00.5Z", "tagboat.dev/booted-digest": "sha256:1",
            "tagboat.dev/booted-version": "v1", "tagboat.dev/staged-digest": "sha256:2", "tagboat.dev/message": "m",
        });
        let document = NodeDocument::new(&node("a", &labels, &annotations, false));
        let expected = json!({
            "name": "a", "stage": "before-reboot", "since": "2026-11-23T10:00:00Z", "agent": "update-staged",
            "bootedDigest": "sha256:1", "bootedVersion": "v1", "stagedDigest": "sha256:2", "message": "m",
        });
        assert_eq!(serde_json::to_value(document).unwrap(), expected);
    }

    #[test]
    fn missing_and_unknown_values_are_left_out() {
        let labels = json!({"tagboat.dev/state": "x", "tagboat.dev/agent": "x"});
        let annotations = json!({"tagboat.dev/state-since": "x", "tagboat.dev/message": ""});
        let document = NodeDocument::new(&node("a", &labels, &annotations, true));
        let message = "its agent has not reported on the wanted image yet";
        let expected = json!({"name": "a", "stage": "idle", "message": message});
        assert_eq!(serde_json::to_value(document).unwrap(), expected);
    }

    #[test]
    fn a_node_that_is_not_ready_says_so_unless_it_reboots_or_its_agent_says_more() {
        let message = |stage: &str, annotations: &Value| {
            let labels = json!({"tagboat.dev/state": stage, "tagboat.dev/agent": "rebooting"});
            NodeDocument::new(&node("a", &labels, annotations, false)).message
        };
        assert_eq!(message("draining", &json!({})).unwrap(), "the node is not ready");
        assert_eq!(message("rebooting", &json!({})), None);
        assert_eq!(
            message("draining", &json!({"tagboat.dev/message": "bootc is missing"})).unwrap(),
            "bootc is missing"
        );
    }

    /// The label is that of the image before.
    #[test]
    fn a_node_that_wants_another_image_says_that_its_agent_has_not_reported_on_it() {
        let labels = json!({"tagboat.dev/state": "idle", "tagboat.dev/agent": "up-to-date"});
        for (booted, expected) in
            [("sha256:1", Some("its agent has not reported on the wanted image yet")), ("sha256:2", None)]
        {
            let annotations =
                json!({"tagboat.dev/desired-image": "r/os@sha256:2", "tagboat.dev/booted-digest": booted});
            let found = NodeDocument::new(&node("a", &labels, &annotations, true));
            assert_eq!(found.message.as_deref(), expected);
        }
    }

    #[test]
    fn text_of_agents_is_short_and_printable() {
        let long = "\u{1b}[2J".to_owned() + &"x".repeat(5000);
        let annotations = json!({
            "tagboat.dev/booted-digest": long, "tagboat.dev/booted-version": long, "tagboat.dev/staged-digest": long,
            "tagboat.dev/message": long,
        });
        let document = NodeDocument::new(&node("a", &json!({}), &annotations, true));
        let NodeDocument { booted_digest, booted_version, staged_digest, message, .. } = document;
        for text in [booted_digest, booted_version, staged_digest, message].map(Option::unwrap) {
            assert!(text.starts_with(r"\u{1b}[2Jxx") && text.chars().count() <= 300, "{text}");
        }
    }

    #[test]
    fn states_are_written_as_their_labels() {
        for stage in Stage::ALL {
            assert_eq!(serde_json::to_value(stage).unwrap(), stage.as_str());
        }
        for state in AgentState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
    }

    #[test]
    fn a_labeled_node_is_shown_with_the_older_pool_and_one_that_leaves_with_the_deleted_one() {
        const EARLY: &str = "2026-11-23T10:00:00Z";
        const LATE: &str = "2026-11-23T11:00:00Z";
        let labels = json!({"role": "worker", "tagboat.dev/state": "idle"});
        let nodes = || {
            vec![
                node("a", &labels, &json!({"tagboat.dev/pool": "y"}), true),
                node("b", &json!({"role": "worker"}), &json!({}), true),
                node("c", &json!({"tagboat.dev/state": "idle"}), &json!({}), true),
            ]
        };
        let shown = |pools: Vec<Arc<NodePool>>| -> Vec<String> {
            let views = PoolView::all(pools, nodes());
            let text = |view: &PoolView| {
                let document = view.document();
                let names: Vec<String> = document.nodes.into_iter().map(|node| node.name).collect();
                format!("{}: {}", document.name, names.join(" "))
            };
            views.iter().map(text).collect()
        };
        assert_eq!(shown(vec![pool("x", LATE, false), pool("y", EARLY, false)]), ["x: ", "y: a"]);
        assert_eq!(shown(vec![pool("x", LATE, false), pool("y", EARLY, true)]), ["x: a", "y: "]);
        assert_eq!(shown(vec![pool("y", EARLY, true)]), ["y: a"]);
        // The controller keeps the nodes of an older pool whose selector is not valid.
        let invalid = |created: &str| {
            let mut object = serde_json::to_value(pool("y", created, false).as_ref()).unwrap();
            object["spec"]["nodeSelector"] = json!({"matchLabels": {"a b": "c"}});
            Arc::new(serde_json::from_value::<NodePool>(object).unwrap())
        };
        assert_eq!(shown(vec![pool("x", LATE, false), invalid(EARLY)]), ["x: ", "y: a"]);
        assert_eq!(shown(vec![pool("x", EARLY, false), invalid(LATE)]), ["x: a", "y: "]);
        assert_eq!(shown(vec![invalid(EARLY)]), ["y: a"]);
    }
}
