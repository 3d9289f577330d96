//! DeploymentStatus: reports whether the image of an ImagePolicy is running.
//!
//! Tagboat makes one object per ImagePolicy, with the policy's name, and is the only writer of its status. A component
//! of the status is a workload that runs the image, or an applier in a cluster that Tagboat does not watch.
//!
//! Three parts have the form of other projects. The states, their order and the form of an error are those of the
//! Margo specification (Deployment Status). The conditions are those of kstatus: `Ready`, `Reconciling`, `Stalled`.
//! The history of deployments replaces a pair of fields such as "deployed digest" and "update available": it says the
//! same about the present, and more about the past.
//!
//! Unlike those of Flux's kinds, the enumerations are closed: the schema refuses other values, and no other program
//! writes the status. Every text has a maximum length in the schema, because many come from a cluster.
//!
//! | file | contents |
//! |---|---|
//! | `state` | states, and the reasons and errors that come with them |
//! | `component` | the components of a deployment |
//! | `history` | the history of deployments, and commits |
//! | `limits` | the maximum lengths of texts and lists |

mod component;
mod history;
mod limits;
mod state;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::{self, Condition};
use crate::reference::LocalObjectReference;

pub use self::component::ComponentStatus;
pub use self::history::{CommitRef, HistoryEntry};
pub use self::limits::{MAX_CODE, MAX_COMPONENTS, MAX_HISTORY, MAX_MESSAGE, MAX_TEXT};
pub use self::state::{BlockReason, State, StatusError, Summary, Tie};
pub use crate::reference::ImageRef as Target;

/// Desired state of a deployment status: the policy that it describes.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "tagboat.dev",
    version = "v1alpha1",
    kind = "DeploymentStatus",
    plural = "deploymentstatuses",
    namespaced,
    status = "DeploymentStatusStatus",
    derive = "PartialEq",
    doc = "Reports whether the image of an image policy is running.",
    shortname = "dst",
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Progress", type_ = "string", json_path = ".status.progress"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.target.tag"),
    printcolumn(name = "Since", type_ = "date", json_path = ".status.since")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "self == oldSelf", "message": "spec is immutable" },
]))]
pub struct DeploymentStatusSpec {
    /// Reference to the image policy, in the same namespace.
    #[schemars(schema_with = "policy_reference_schema")]
    pub policy_ref: LocalObjectReference,
}

/// Returns the schema of the reference to a policy.
///
/// The name has the bounds of an object's name. Without a maximum length, the API server could not limit the cost of the rule on the spec.
fn policy_reference_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {
                "description": "Name of the image policy.",
                "type": "string",
                "minLength": 1,
                "maxLength": 253,
            },
        },
    })
}

/// Observed state of a deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentStatusStatus {
    /// Identity of the deployment: the uid of the image policy.
    #[schemars(length(min = 1, max = 64))]
    pub deployment_id: String,
    /// Time of the last change of any other field of the status.
    #[schemars(schema_with = "condition::time_schema")]
    pub time_stamp: Time,
    /// Fields to which the time stamp applies.
    #[serde(flatten)]
    pub report: Report,
}

/// Content of a status: all fields to which its time stamp applies.
///
/// The document of the REST API has the same fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Aggregate state: the most severe state of the components.
    pub state: State,
    /// Reason why the wanted image is not in the cluster yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<BlockReason>,
    /// Message for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_MESSAGE))]
    pub message: Option<String>,
    /// Time since which the target has this state.
    #[schemars(schema_with = "condition::time_schema")]
    pub since: Time,
    /// Time of the rollout's failure, until the target is installed with all pods ready.
    ///
    /// An outage in between changes nothing: the failure is announced once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "condition::time_schema")]
    pub failed_since: Option<Time>,
    /// Error before the rollout, with the state `failed` only; components have their own errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StatusError>,
    /// Image that the policy has selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// Commit of the target, if Tagboat pushed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitRef>,
    /// Git revision that the status describes, such as `main@sha1:…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TEXT))]
    pub revision: Option<String>,
    /// Number of components, and of those in each state.
    pub summary: Summary,
    /// Ready pods with the wanted image, and desired pods, of all components; for example `2/3`.
    #[schemars(length(max = 64))]
    pub progress: String,
    /// Components, from the most to the least severe state; at most 500.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_COMPONENTS))]
    pub components: Vec<ComponentStatus>,
    /// Number of components that are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub omitted: i64,
    /// Images that were deployed, from the last to the first; at most 3.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_HISTORY))]
    pub deploy_history: Vec<HistoryEntry>,
    /// Conditions of kstatus: `Ready`, and `Reconciling` or `Stalled` while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "condition::list_schema")]
    pub conditions: Vec<Condition>,
}

/// Returns true for zero.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}
