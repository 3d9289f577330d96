//! Nodes for tests, and patches as an API server applies them.

use std::sync::Arc;

use serde_json::Value;

use super::{AgentState, Node, Stage, keys};

/// The image that nodes of tests want.
pub(super) const IMAGE: &str = "registry.example/os:v2@sha256:v2";

/// Returns a ready node that wants [`IMAGE`] and matches the state of its agent.
pub(super) fn node_of(stage: Stage, agent: AgentState) -> Node {
    let mut node = Node {
        name: "a".to_owned(),
        resource_version: "7".to_owned(),
        is_ready: true,
        boot_id: "1".to_owned(),
        ..Node::default()
    };
    Arc::make_mut(&mut node.labels).insert(keys::STATE.to_owned(), stage.to_string());
    Arc::make_mut(&mut node.labels).insert(keys::AGENT.to_owned(), agent.as_str().to_owned());
    let is_done = agent == AgentState::UpToDate;
    for (key, value) in [
        (keys::DESIRED_IMAGE, IMAGE),
        (keys::STATE_SINCE, "2026-11-23T10:00:00Z"),
        (keys::BOOTED_DIGEST, if is_done { "sha256:v2" } else { "sha256:v1" }),
        (keys::STAGED_DIGEST, "sha256:v2"),
    ] {
        Arc::make_mut(&mut node.annotations).insert(key.to_owned(), value.to_owned());
    }
    node
}

/// Applies a merge patch, as the API server does.
///
/// Returns `false` if the node has another resource version.
pub(super) fn apply(node: &mut Node, patch: &Value) -> bool {
    if patch["metadata"]["resourceVersion"].as_str() != Some(node.resource_version.as_str()) {
        return false;
    }
    for (map, changes) in [
        (Arc::make_mut(&mut node.labels), &patch["metadata"]["labels"]),
        (Arc::make_mut(&mut node.annotations), &patch["metadata"]["annotations"]),
    ] {
        for (key, value) in changes.as_object().into_iter().flatten() {
            match value.as_str() {
                Some(text) => drop(map.insert(key.clone(), text.to_owned())),
                None => drop(map.remove(key)),
            }
        }
    }
    if let Some(value) = patch["spec"].get("unschedulable") {
        node.is_unschedulable = value.as_bool().unwrap_or(false);
    }
    true
}
