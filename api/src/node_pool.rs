//! NodePool: rolls out an OS image on nodes, a few at a time.
//!
//! A pool is cluster-scoped, and written by users. Its status is a function of the nodes and of the status before; the
//! stage of a node is a label of the node itself.
//!
//! As in DeploymentStatus, the enumerations are closed, and every list and every text has a bound in the schema. The
//! rules refuse values without a meaning, such as a window without length, and say what to write. They cannot know time zones
//! and keys of labels; the controller reports those as [`DegradedReason::InvalidSpec`].

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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

/// The pattern of a reference: a tag, a digest, or both follow the name.
const REFERENCE_PATTERN: &str =
    r"^[^\s@]+(:[A-Za-z0-9_.-]{1,128}(@sha256:[0-9a-f]{64})?|@sha256:[0-9a-f]{64})$";

/// The pattern of a label's key, except for the length of its prefix.
const KEY_PATTERN: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";

/// The pattern of the value of a label.
const VALUE_PATTERN: &str = "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$";

/// The message for a text that is no duration.
/// The durations of pools. Their numbers are bounded, so that the sum cannot exceed the longest duration of the API
/// server, which would answer with another error.
const DURATION_PATTERN: &str = r"^([0-9]{1,5}(\.[0-9]+)?h|[0-9]{1,7}(\.[0-9]+)?m|[0-9]{1,9}(\.[0-9]+)?m?s)+$";

const DURATION_ADVICE: &str =
    "write a duration of h, m, s and ms, such as 90s, 5m or 1h30m, of at most 99999h";

/// The maximum length of a label's key: a prefix, a slash, and a name.
const MAX_KEY: usize = 253 + 1 + 63;

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
    #[schemars(schema_with = "selector_schema")]
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
    #[schemars(schema_with = "reference_schema")]
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
    #[schemars(schema_with = "max_unavailable_schema")]
    pub max_unavailable: Option<IntOrString>,
    /// Time limit of the stage `draining`; defaults to none.
    ///
    /// After it, the node counts as degraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "limit_schema")]
    pub drain_timeout: Option<GoDuration>,
    /// Time limit of the stage `rebooting`; defaults to none.
    ///
    /// After it, the node counts as degraded. Without it, a node that is not ready does after 15 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "limit_schema")]
    pub reboot_timeout: Option<GoDuration>,
    /// Time between the end of one node and the next begin; defaults to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration_schema")]
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
    #[schemars(schema_with = "days_schema")]
    pub days: Vec<String>,
    /// Hours and minutes at which the window opens, such as `23:00`.
    #[schemars(schema_with = "start_schema")]
    pub start: String,
    /// Time for which the window stays open; at most a week.
    #[schemars(schema_with = "window_length_schema")]
    pub length: GoDuration,
    /// Time zone of the IANA database, such as `Europe/Berlin`; defaults to UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "zone_schema")]
    pub time_zone: Option<String>,
}

/// Labels or annotations of a node that hooks set to `true`, by stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolHooks {
    /// Keys that end the stage `before-drain`.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "hook_keys_schema")]
    pub before_drain: Vec<String>,
    /// Keys that end the stage `before-reboot`.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "hook_keys_schema")]
    pub before_reboot: Vec<String>,
    /// Keys that end the stage `before-uncordon`.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "hook_keys_schema")]
    pub before_uncordon: Vec<String>,
    /// Time limit of each of these stages; defaults to none.
    ///
    /// After it, the node counts as degraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "limit_schema")]
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
    #[schemars(schema_with = "selector_schema")]
    pub skip: Option<LabelSelector>,
    /// Time that pods get to end; defaults to that of each pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration_schema")]
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

/// Returns the schema of a text that matches a pattern.
///
/// It is a rule with a message: the error of a `pattern` would show the expression, which tells few users what to write.
fn text_schema(max_length: usize, pattern: &str, advice: &str) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": max_length,
        "x-kubernetes-validations": [rule(&matches(pattern), advice)],
    })
}

fn rule(rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "message": message })
}

/// Returns an expression that is true for a text that matches a pattern.
fn matches(pattern: &str) -> String {
    format!("self.matches(r'{pattern}')")
}

fn reference_schema(_: &mut SchemaGenerator) -> Schema {
    text_schema(
        MAX_REFERENCE,
        REFERENCE_PATTERN,
        "write an image with a tag, a digest, or both: NAME:TAG, NAME@sha256:DIGEST or NAME:TAG@sha256:DIGEST, with 64 \
         hexadecimal digits",
    )
}

fn start_schema(_: &mut SchemaGenerator) -> Schema {
    text_schema(5, "^([01][0-9]|2[0-3]):[0-5][0-9]$", "write a time of the day, such as 09:00 or 23:30")
}

fn key_schema() -> Schema {
    text_schema(
        MAX_KEY,
        KEY_PATTERN,
        "write a key of a label, such as role or example.com/role: at most 63 letters, digits, '-', '_' and '.', after a \
         domain in lower case or none",
    )
}

fn value_schema() -> Schema {
    text_schema(
        63,
        VALUE_PATTERN,
        "write a value of a label: at most 63 letters, digits, '-', '_' and '.', with a letter or a digit at both ends",
    )
}

/// Returns the schema of a label selector that selects by at least one requirement.
///
/// The keys of `matchLabels` have no pattern: the API server could not limit the cost of a rule on them.
fn selector_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-validations": [{
            "rule": "(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
            "message": "an empty selector is invalid: write matchLabels or matchExpressions",
        }],
        "properties": {
            "matchExpressions": {
                "description": "Requirements on labels, all of which must be met.",
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "maxItems": MAX_REQUIREMENTS,
                "items": {
                    "description": "Requirement on a label.",
                    "type": "object",
                    "required": ["key", "operator"],
                    "x-kubernetes-validations": [{
                        "rule": "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
                        "message": "In and NotIn need values; Exists and DoesNotExist take none",
                    }],
                    "properties": {
                        "key": described("Name of the label.", key_schema()),
                        "operator": {
                            "description": "Operator.",
                            "type": "string",
                            "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                        },
                        "values": {
                            "description": "Values for In and NotIn; none for other operators.",
                            "type": "array",
                            "items": value_schema(),
                            "maxItems": MAX_REQUIREMENTS,
                            "x-kubernetes-list-type": "atomic",
                        },
                    },
                },
            },
            "matchLabels": {
                "description": "Required labels with their values.",
                "type": "object",
                "maxProperties": MAX_REQUIREMENTS,
                "additionalProperties": value_schema(),
            },
        },
    })
}

/// Adds a description to a schema.
fn described(description: &str, mut schema: Schema) -> Schema {
    schema.insert("description".to_owned(), description.into());
    schema
}

/// Returns the schema of a number, or of a percentage.
fn max_unavailable_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "maxLength": 16,
        "x-kubernetes-validations": [rule(
            &format!("type(self) == int ? self >= 0 && self <= {} : {}", i32::MAX, matches("^(100|[1-9]?[0-9])%$")),
            "write a number of nodes, such as 1, or a percentage from \"0%\" to \"100%\"",
        )],
    })
}

fn duration_schema(_: &mut SchemaGenerator) -> Schema {
    text_schema(MAX_DURATION, DURATION_PATTERN, DURATION_ADVICE)
}

/// Returns the schema of a duration of which a condition must be true.
///
/// The condition is not evaluated for a text that is no duration, as its evaluation would be another error.
fn bounded_duration_schema(condition: &str, advice: &str) -> Schema {
    let is_duration = matches(DURATION_PATTERN);
    json_schema!({
        "type": "string",
        "maxLength": MAX_DURATION,
        "x-kubernetes-validations": [
            rule(&is_duration, DURATION_ADVICE),
            rule(&format!("!{is_duration} || ({condition})"), advice),
        ],
    })
}

/// Returns the schema of the time limit of a stage.
fn limit_schema(_: &mut SchemaGenerator) -> Schema {
    let condition = "duration(self) > duration('0s')";
    bounded_duration_schema(condition, "must be more than 0; for no limit, leave it out")
}

fn window_length_schema(_: &mut SchemaGenerator) -> Schema {
    let condition = "duration(self) > duration('0s') && duration(self) <= duration('168h')";
    bounded_duration_schema(condition, "must be more than 0 and at most a week, which is 168h")
}

fn days_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 7,
        "x-kubernetes-list-type": "set",
        "items": { "type": "string", "enum": ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] },
    })
}

fn zone_schema(_: &mut SchemaGenerator) -> Schema {
    let pattern = "^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$";
    text_schema(64, pattern, "write a time zone of the IANA database, such as Europe/Berlin")
}

/// Returns the schema of the keys of hooks: keys of labels, except Tagboat's own.
fn hook_keys_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": MAX_HOOKS,
        "x-kubernetes-list-type": "set",
        "items": {
            "type": "string",
            "maxLength": MAX_KEY,
            "x-kubernetes-validations": [
                rule(
                    &matches(KEY_PATTERN),
                    "write a key of a label, such as example.com/drained: at most 63 letters, digits, '-', '_' and '.', \
                     after a domain in lower case or none",
                ),
                rule("self.indexOf('/') <= 253", "the prefix of a key has at most 253 characters"),
                rule(
                    &format!("!self.startsWith('{OWN_PREFIX}')"),
                    "a hook cannot confirm with a key of Tagboat's own: use one of your own, such as example.com/drained",
                ),
            ],
        },
    })
}
