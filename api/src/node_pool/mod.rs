//! NodePool: rolls out an OS image on nodes, a few at a time.
//!
//! A pool is cluster-scoped, and written by users. Its status is a function of the nodes and of the status before; the
//! stage of a node is a label of the node itself.
//!
//! As in DeploymentStatus, the enumerations are closed, and every list and every text has a bound in the schema. The
//! rules refuse values without a meaning, such as a window without length, and say what to write. They cannot know time zones
//! and keys of labels; the controller reports those as [`DegradedReason::InvalidSpec`].

mod schemas;

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::{self, Condition};
use crate::duration::GoDuration;
use crate::null;

pub use crate::deployment_status::MAX_HISTORY;

/// The finalizer: a pool is removed after its nodes are released.
pub const FINALIZER: &str = "tagboat.dev/nodes";

/// The prefix of Tagboat's own labels and annotations.
pub const OWN_PREFIX: &str = "tagboat.dev/";

/// The type of the condition that says whether all nodes have the image.
pub const UP_TO_DATE: &str = "UpToDate";

/// The type of the condition that says whether the pool has a problem.
pub const DEGRADED: &str = "Degraded";

/// The maximum number of keys of the hooks of a stage.
pub const MAX_HOOKS: usize = 16;

/// The maximum number of windows.
pub const MAX_WINDOWS: usize = 16;

/// The maximum number of labels, expressions, and values of an expression in a selector.
pub const MAX_REQUIREMENTS: usize = 32;

/// The maximum length of a reference, in characters.
pub const MAX_REFERENCE: usize = 1024;

/// The maximum length of a duration, in characters.
pub const MAX_DURATION: usize = 32;

/// The maximum length of a digest or a version, in characters.
pub const MAX_VERSION: usize = 256;

/// Desired state of a pool of nodes.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "tagboat.dev",
    version = "v1alpha1",
    kind = "NodePool",
    plural = "nodepools",
    status = "NodePoolStatus",
    derive = "PartialEq",
    doc = "Rolls out an OS image on nodes, a few at a time.",
    shortname = "tnp",
    printcolumn(name = "Nodes", type_ = "integer", json_path = ".status.nodeCount"),
    printcolumn(name = "Updated", type_ = "integer", json_path = ".status.updatedCount"),
    printcolumn(name = "Updating", type_ = "integer", json_path = ".status.updatingCount"),
    printcolumn(name = "Degraded", type_ = "integer", json_path = ".status.degradedCount"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.deployHistory[0].version"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="UpToDate")].message"#
    )
)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolSpec {
    /// Label selector of the nodes; an empty one is invalid.
    #[schemars(schema_with = "schemas::selector")]
    pub node_selector: LabelSelector,
    /// Image of the nodes; without one, the pool only coordinates reboots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<PoolImage>,
    /// Stops new reboots, and cancels those that are not approved yet.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Pace of the rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<PoolRollout>,
    /// Labels or annotations of a node with which hooks confirm its stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<PoolHooks>,
    /// Settings of the drain of a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<PoolDrain>,
}

/// Image of the nodes of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolImage {
    /// Reference with a tag, a digest, or both, such as `quay.io/org/os:v1.2@sha256:…`.
    #[serde(rename = "ref")]
    #[schemars(schema_with = "schemas::reference")]
    pub reference: String,
    /// Secret with the login at the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_secret_ref: Option<PullSecretReference>,
}

/// Reference to a Secret in any namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PullSecretReference {
    /// Namespace of the Secret.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Pace of the rollout of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolRollout {
    /// Number of nodes that may be unavailable, or percentage, rounded up; defaults to 1.
    ///
    /// With 0, no node begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::max_unavailable")]
    pub max_unavailable: Option<IntOrString>,
    /// Time limit of the stage `draining`; defaults to none.
    ///
    /// After it, the node counts as degraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::limit")]
    pub drain_timeout: Option<GoDuration>,
    /// Time limit of the stage `rebooting`; defaults to none.
    ///
    /// After it, the node counts as degraded. Without it, a node that is not ready does after 15 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::limit")]
    pub reboot_timeout: Option<GoDuration>,
    /// Time between the end of one node and the next begin; defaults to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::duration")]
    pub post_complete_delay: Option<GoDuration>,
    /// Times at which nodes may begin; always, without windows.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_WINDOWS))]
    pub windows: Vec<PoolWindow>,
}

/// Time of day at which nodes may begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolWindow {
    /// Days on which the window opens; every day, if empty.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schemas::days")]
    pub days: Vec<String>,
    /// Hours and minutes at which the window opens, such as `23:00`.
    #[schemars(schema_with = "schemas::start")]
    pub start: String,
    /// Time for which the window stays open; at most a week.
    #[schemars(schema_with = "schemas::window_length")]
    pub length: GoDuration,
    /// Time zone of the IANA database, such as `Europe/Berlin`; defaults to UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::zone")]
    pub time_zone: Option<String>,
}

/// Labels or annotations of a node that hooks set to `true`, by stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolHooks {
    /// Keys that end the stage `before-drain`.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schemas::hook_keys")]
    pub before_drain: Vec<String>,
    /// Keys that end the stage `before-reboot`.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schemas::hook_keys")]
    pub before_reboot: Vec<String>,
    /// Keys that end the stage `before-uncordon`.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schemas::hook_keys")]
    pub before_uncordon: Vec<String>,
    /// Time limit of each of these stages; defaults to none.
    ///
    /// After it, the node counts as degraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::limit")]
    pub timeout: Option<GoDuration>,
}

/// Settings of the drain of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolDrain {
    /// Evicts no pods; the node is cordoned.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// Label selector of pods that stay on the node; an empty one is invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::selector")]
    pub skip: Option<LabelSelector>,
    /// Time that pods get to end; defaults to that of each pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::duration")]
    pub grace_period: Option<GoDuration>,
}

/// Observed state of a pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// Generation of the spec that the status describes.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub observed_generation: i64,
    /// Digest of the image that is rolled out; absent without an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_VERSION))]
    pub target_digest: Option<String>,
    /// Time at which the tag is resolved again; absent for a reference with a digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "condition::time_schema")]
    pub next_tag_resolution_time: Option<Time>,
    /// Number of nodes.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub node_count: i64,
    /// Number of nodes without a slot that have booted the image, or need no reboot.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub updated_count: i64,
    /// Number of nodes that hold a slot: from `before-drain` through `before-uncordon`.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub updating_count: i64,
    /// Number of nodes with a problem, in any stage.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub degraded_count: i64,
    /// Images that were deployed, from the last to the first; at most 3.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_HISTORY))]
    pub deploy_history: Vec<PoolHistoryEntry>,
    /// Conditions `UpToDate` and `Degraded`.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "condition::list_schema")]
    pub conditions: Vec<Condition>,
}

/// Image that was deployed, with the number of nodes and the last time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolHistoryEntry {
    /// Digest of the image; absent for a pool without an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_VERSION))]
    pub digest: Option<String>,
    /// Version that the host reports, or the tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_VERSION))]
    pub version: Option<String>,
    /// Largest number of nodes with the image as last deployment at the same time.
    #[schemars(range(min = 0))]
    pub node_count: i64,
    /// Last time at which a node was done with the image.
    #[schemars(schema_with = "condition::time_schema")]
    pub last_deployed: Time,
}

/// Reason of the condition `UpToDate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UpToDateReason {
    /// All nodes have booted the image, or need no reboot.
    AllUpdated,
    /// Nodes are updated, or wait for it.
    RolloutInProgress,
    /// The pool is paused.
    Paused,
    /// No window is open, and no node holds a slot.
    OutsideWindow,
}

/// Formats the reason, which is the name of the variant.
impl fmt::Display for UpToDateReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

/// Reason of the condition `Degraded`; of several, the greatest is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DegradedReason {
    /// There is no problem.
    Healthy,
    /// A node has a problem.
    NodeDegraded,
    /// Another pool selects the same node.
    NodeConflict,
    /// Two nodes in slots have problems, so no other node begins.
    RolloutHalted,
    /// A field of the spec is invalid.
    InvalidSpec,
    /// The tag cannot be resolved.
    TagResolutionError,
}

/// Formats the reason, which is the name of the variant.
impl fmt::Display for DegradedReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}
