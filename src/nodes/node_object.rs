//! The Node as the API server has it, without what is not in use.
//!
//! A node has a list of all its images, and a heartbeat that changes it every few minutes; neither is kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Deserializer};

use super::{AGENT_FIELD_MANAGER, Node, keys};

/// A Node.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource)]
#[resource(inherit = k8s_openapi::api::core::v1::Node)]
#[serde(from = "WholeNode")]
pub struct NodeObject {
    /// The metadata, without labels and annotations.
    pub metadata: ObjectMeta,
    /// The labels, which the [`Node`] made from the object shares.
    pub labels: Arc<BTreeMap<String, String>>,
    /// The annotations in use, which are shared as well.
    pub annotations: Arc<BTreeMap<String, String>>,
    /// The time of the agent's last write, from the managed fields.
    pub agent_wrote: Option<Timestamp>,
    /// The desired state.
    pub spec: NodeSpec,
    /// The observed state.
    pub status: NodeStatus,
}

/// A Node as the API server sends it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WholeNode {
    metadata: ObjectMeta,
    spec: NodeSpec,
    status: NodeStatus,
}

/// Drops managed fields but for the time of the agent's, and annotations of other programs.
///
/// Hooks confirm with any annotation that is `true`.
impl From<WholeNode> for NodeObject {
    fn from(WholeNode { mut metadata, spec, status }: WholeNode) -> Self {
        let managed = metadata.managed_fields.take().unwrap_or_default();
        let mut of_agent =
            managed.into_iter().filter(|entry| entry.manager.as_deref() == Some(AGENT_FIELD_MANAGER));
        let agent_wrote = of_agent.find_map(|entry| entry.time).map(|time| time.0);
        let labels = metadata.labels.take().unwrap_or_default();
        let mut annotations = metadata.annotations.take().unwrap_or_default();
        annotations.retain(|key, value| {
            keys::ANNOTATIONS.contains(&key.as_str())
                || keys::AUTOSCALER_GUARDS.contains(&key.as_str())
                || value == "true"
        });
        Self {
            metadata,
            labels: Arc::new(labels),
            annotations: Arc::new(annotations),
            agent_wrote,
            spec,
            status,
        }
    }
}

/// The desired state of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    /// `true` for a cordoned node.
    pub unschedulable: bool,
}

/// The observed state of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeStatus {
    /// The condition `Ready`.
    #[serde(rename = "conditions", deserialize_with = "readiness")]
    pub readiness: Readiness,
    /// Facts about the host.
    pub node_info: NodeInfo,
}

/// The condition `Ready` of a node, without its heartbeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// `true` if its status is `True`.
    pub is_ready: bool,
    /// The time of its last change of status.
    pub since: Option<Timestamp>,
}

/// Facts about the host of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeInfo {
    /// The ID of the current boot.
    #[serde(rename = "bootID")]
    pub boot_id: String,
}

impl From<&NodeObject> for Node {
    fn from(object: &NodeObject) -> Self {
        let NodeObject { metadata, labels, annotations, agent_wrote, spec, status } = object;
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            labels: labels.clone(),
            annotations: annotations.clone(),
            agent_wrote: *agent_wrote,
            is_unschedulable: spec.unschedulable,
            is_ready: status.readiness.is_ready,
            ready_since: status.readiness.since,
            boot_id: status.node_info.boot_id.clone(),
        }
    }
}

/// Deserializes the conditions to the one that says if the node is ready.
fn readiness<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Readiness, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Condition {
        #[serde(rename = "type")]
        kind: String,
        status: String,
        #[serde(default)]
        last_transition_time: Option<String>,
    }
    let conditions = Option::<Vec<Condition>>::deserialize(deserializer)?.unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition.kind == "Ready");
    Ok(Readiness {
        is_ready: ready.is_some_and(|ready| ready.status == "True"),
        since: ready.and_then(|ready| ready.last_transition_time.as_ref()?.parse().ok()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(status: &serde_json::Value) -> Node {
        let object = json!({
            "metadata": {
                "name": "a", "resourceVersion": "7", "uid": "u",
                "labels": {"tagboat.dev/state": "draining", "kubernetes.io/arch": "arm64"},
                "annotations": {
                    "tagboat.dev/desired-image": "r/os@sha256:2", "example.com/backup": "true",
                    "karpenter.sh/do-not-disrupt": "mine", "csi.volume.kubernetes.io/nodeid": "{…}",
                },
                "managedFields": [
                    {"manager": "kubelet", "time": "2026-11-23T11:00:00Z"},
                    {"manager": "tagboat-agent", "time": "2026-11-23T10:00:00Z"},
                ],
            },
            "spec": {"unschedulable": true, "podCIDR": "10.0.0.0/24"},
            "status": status,
        });
        (&serde_json::from_value::<NodeObject>(object).unwrap()).into()
    }

    #[test]
    fn a_node_has_only_what_decides() {
        let node = node(&json!({
            "conditions": [{"type": "DiskPressure", "status": "False"}, {
                "type": "Ready", "status": "True",
                "lastHeartbeatTime": "2026-11-23T12:00:00Z", "lastTransitionTime": "2026-11-23T09:00:00Z",
            }],
            "nodeInfo": {"bootID": "b-1", "machineID": "m"}, "images": [{"names": ["a"]}],
        }));
        assert_eq!((node.name.as_str(), node.boot_id.as_str(), node.is_ready), ("a", "b-1", true));
        assert!(node.is_unschedulable && node.labels.len() == 2);
        assert_eq!(node.ready_since, Some("2026-11-23T09:00:00Z".parse().unwrap()));
        assert_eq!(node.agent_wrote, Some("2026-11-23T10:00:00Z".parse().unwrap()));
        let kept: Vec<&str> = node.annotations.keys().map(String::as_str).collect();
        assert_eq!(kept, ["example.com/backup", "karpenter.sh/do-not-disrupt", "tagboat.dev/desired-image"]);
    }

    #[test]
    fn a_node_without_a_true_condition_is_not_ready() {
        for conditions in [
            json!(null),
            json!([]),
            json!([{"type": "Ready", "status": "Unknown"}]),
            json!([{"type": "Other", "status": "True"}]),
        ] {
            assert!(!node(&json!({"conditions": conditions})).is_ready, "{conditions}");
        }
        assert!(!node(&json!({})).is_ready);
    }
}
