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

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::{self, Condition};
use crate::reference::LocalObjectReference;

pub use crate::reference::ImageRef as Target;

/// The maximum number of components in a status.
pub const MAX_COMPONENTS: usize = 500;

/// The maximum number of entries in the history of a status.
pub const MAX_HISTORY: usize = 3;

/// The maximum length of a message, in characters.
pub const MAX_MESSAGE: usize = 300;

/// The maximum length of an error code, in characters.
pub const MAX_CODE: usize = 128;

/// The maximum length of any other text, in characters.
pub const MAX_TEXT: usize = 1024;

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

/// State of a component or a deployment, as in the Margo specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The object does not have the wanted image, or does not exist.
    Pending,
    /// The object has the wanted image, and its rollout is not complete.
    Installing,
    /// The rollout is complete.
    Installed,
    /// The rollout, or a step before it, failed.
    Failed,
    /// The object is being deleted.
    Removing,
    /// The object is gone.
    Removed,
}

impl State {
    /// All states, from the most to the least severe.
    pub const BY_SEVERITY: [Self; 6] =
        [Self::Failed, Self::Removing, Self::Installing, Self::Pending, Self::Removed, Self::Installed];

    /// Returns the rank of the state by severity: 0 is the most severe.
    #[must_use]
    pub fn severity_rank(self) -> usize {
        match self {
            Self::Failed => 0,
            Self::Removing => 1,
            Self::Installing => 2,
            Self::Pending => 3,
            Self::Removed => 4,
            Self::Installed => 5,
        }
    }

    /// Returns the state as in a status.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Installing => "installing",
            Self::Installed => "installed",
            Self::Failed => "failed",
            Self::Removing => "removing",
            Self::Removed => "removed",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Reason why an object does not have the wanted image yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum BlockReason {
    /// The policy has selected no image.
    NotChosen,
    /// The automation is suspended, failed, or has not run.
    NotCommitted,
    /// The commit was pushed to another branch.
    AwaitingMerge,
    /// The applier is at another revision, is suspended, or does not synchronize automatically.
    NotApplied,
    /// The object does not exist.
    NotFound,
}

/// Formats the reason, which is the name of the variant.
impl fmt::Display for BlockReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

/// Key that matched a workload to a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tie {
    /// The marked document is the object.
    Object,
    /// The marked document is the object's HelmRelease.
    Release,
    /// The applier of the marked file owns the object.
    Applier,
    /// The object uses the image repository.
    Image,
}

/// Error of a component or a deployment; no member is empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusError {
    /// Code for programs, such as `ImagePullBackOff`.
    #[schemars(length(min = 1, max = MAX_CODE))]
    pub code: String,
    /// Name of the component, applier or object that has the error.
    #[schemars(length(min = 1, max = MAX_TEXT))]
    pub source: String,
    /// Message for users.
    #[schemars(length(min = 1, max = MAX_MESSAGE))]
    pub message: String,
}

/// Commit that Tagboat pushed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitRef {
    /// Hash of the commit.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// Branch to which it was pushed.
    #[schemars(length(max = MAX_TEXT))]
    pub branch: String,
    /// Time of the push.
    #[schemars(schema_with = "condition::time_schema")]
    pub time: Time,
    /// Name of the automation that made it.
    #[schemars(length(max = MAX_TEXT))]
    pub automation: String,
}

impl CommitRef {
    /// Returns the beginning of the hash, for messages.
    #[must_use]
    pub fn short_id(&self) -> &str {
        short_hash(&self.id)
    }
}

/// Returns the first 7 characters of a commit's hash, as git abbreviates it.
fn short_hash(hash: &str) -> &str {
    hash.char_indices().nth(7).map_or(hash, |(end, _)| &hash[..end])
}

/// Number of items, and of those in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    /// Number of items in all states.
    pub total: i64,
    /// Number of items that failed.
    pub failed: i64,
    /// Number of items that are being removed.
    pub removing: i64,
    /// Number of items whose rollout is in progress.
    pub installing: i64,
    /// Number of items without the wanted image.
    pub pending: i64,
    /// Number of items that were removed.
    pub removed: i64,
    /// Number of items whose rollout is complete.
    pub installed: i64,
}

impl Summary {
    /// Returns the number of items in a state.
    #[must_use]
    pub fn count(&self, state: State) -> i64 {
        match state {
            State::Pending => self.pending,
            State::Installing => self.installing,
            State::Installed => self.installed,
            State::Failed => self.failed,
            State::Removing => self.removing,
            State::Removed => self.removed,
        }
    }
}

/// Counts states.
impl FromIterator<State> for Summary {
    fn from_iter<I: IntoIterator<Item = State>>(states: I) -> Self {
        let mut summary = Self::default();
        for state in states {
            summary.total += 1;
            *match state {
                State::Failed => &mut summary.failed,
                State::Removing => &mut summary.removing,
                State::Installing => &mut summary.installing,
                State::Pending => &mut summary.pending,
                State::Removed => &mut summary.removed,
                State::Installed => &mut summary.installed,
            } += 1;
        }
        summary
    }
}

/// State of a workload, or of an applier in a cluster that is not watched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentStatus {
    /// `Kind/namespace/name`, or `Kind/name` without a namespace; `CLUSTER/` precedes it for another cluster.
    #[schemars(length(min = 1, max = MAX_TEXT))]
    pub name: String,
    /// State of the component.
    pub state: State,
    /// Reason why the object does not have the wanted image yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<BlockReason>,
    /// Message for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_MESSAGE))]
    pub message: Option<String>,
    /// Image as in the spec of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TEXT))]
    pub image: Option<String>,
    /// Number of desired pods.
    #[serde(default)]
    pub desired: i64,
    /// Number of pods that have the pod template of the object's spec.
    #[serde(default)]
    pub updated: i64,
    /// Number of ready pods.
    #[serde(default)]
    pub ready: i64,
    /// Least number of ready pods among the updated ones. Objects do not report it exactly.
    ///
    /// Absent while the object is not observed, for example because its cluster does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_ready: Option<i64>,
    /// Time since which the component has its state.
    #[schemars(schema_with = "condition::time_schema")]
    pub since: Time,
    /// Time at which Tagboat observed the end of the last rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "condition::time_schema")]
    pub last_deployed: Option<Time>,
    /// Time since which the rollout of the image is complete, in other states than `installed`.
    ///
    /// A component that becomes `installed` again with the same image was not deployed again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "condition::time_schema")]
    pub complete_since: Option<Time>,
    /// Name of the automation that updates the marker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TEXT))]
    pub automation: Option<String>,
    /// Location of the marker, as `file:line`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TEXT))]
    pub place: Option<String>,
    /// Key that matched the object to the marker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tie: Option<Tie>,
    /// Kustomization, HelmRelease or Application that applies the object, as `Kind/namespace/name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TEXT))]
    pub applier: Option<String>,
    /// Revision that the applier has applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TEXT))]
    pub applied_revision: Option<String>,
    /// Error, with the state `failed` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StatusError>,
}

impl ComponentStatus {
    /// Creates a component without image, pods and error.
    #[must_use]
    pub fn new(name: impl Into<String>, state: State, since: Time) -> Self {
        Self {
            name: name.into(),
            state,
            reason: None,
            message: None,
            image: None,
            desired: 0,
            updated: 0,
            ready: 0,
            updated_ready: None,
            since,
            last_deployed: None,
            complete_since: None,
            automation: None,
            place: None,
            tie: None,
            applier: None,
            applied_revision: None,
            error: None,
        }
    }

    /// Returns the cluster in the name; none for the cluster of Tagboat.
    ///
    /// A name begins with a kind, which begins with a capital letter, or with a cluster before it. The name of a place
    /// without an object may be that of its file, which has no cluster.
    #[must_use]
    pub fn cluster(&self) -> Option<&str> {
        let (cluster, object) = self.name.split_once('/')?;
        let is_kind = |text: &str| text.starts_with(|letter: char| letter.is_ascii_uppercase());
        let file = self.place.as_deref().and_then(|place| Some(place.rsplit_once(':')?.0));
        let is_file = file == Some(self.name.as_str());
        (!is_kind(cluster) && is_kind(object) && !is_file).then_some(cluster)
    }
}

/// Image that was deployed, with the number of objects and the last time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// Digest of the image; absent if the policy reports none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TEXT))]
    pub digest: Option<String>,
    /// Tag of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TEXT))]
    pub version: Option<String>,
    /// Largest number of objects that had the image at the same time.
    pub object_count: i64,
    /// Last time at which the rollout of an object ended with the image.
    #[schemars(schema_with = "condition::time_schema")]
    pub last_deployed: Time,
    /// Hash of the commit that brought the image, if Tagboat pushed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub commit: Option<String>,
}

impl HistoryEntry {
    /// Returns the beginning of the hash of the commit, for messages.
    #[must_use]
    pub fn short_commit(&self) -> Option<&str> {
        self.commit.as_deref().map(short_hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_component_begins_with_its_cluster_its_kind_or_its_file() {
        let since: Time = serde_json::from_value("2026-01-01T00:00:00Z".into()).unwrap();
        for (name, place, expected) in [
            ("Deployment/apps/web", "a.yaml:1", None),
            ("ClusterThing/web", "a.yaml:1", None),
            ("edge-1/Deployment/apps/web", "a.yaml:1", Some("edge-1")),
            ("1st/Kind/web", "a.yaml:1", Some("1st")),
            ("apps/web.yaml", "apps/web.yaml:1", None),
            ("apps/Web/a.yaml", "apps/Web/a.yaml:1", None),
            ("web.yaml", "web.yaml:1", None),
        ] {
            let mut component = ComponentStatus::new(name, State::Pending, since.clone());
            component.place = Some(place.to_owned());
            assert_eq!(component.cluster(), expected, "{name}");
        }
    }

    #[test]
    fn a_hash_is_abbreviated_to_seven_characters() {
        for (hash, expected) in
            [("0123456789", "0123456"), ("0123456", "0123456"), ("ab", "ab"), ("ääääääää", "äääääää")]
        {
            assert_eq!(short_hash(hash), expected);
        }
    }

    #[test]
    fn ranks_are_the_order_of_severity() {
        for (rank, state) in State::BY_SEVERITY.into_iter().enumerate() {
            assert_eq!(state.severity_rank(), rank, "{state}");
        }
    }

    #[test]
    fn names_are_those_of_a_status() {
        for state in State::BY_SEVERITY {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        assert_eq!(serde_json::to_value(Tie::Applier).unwrap(), "applier");
        for reason in [BlockReason::NotChosen, BlockReason::AwaitingMerge, BlockReason::NotFound] {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.to_string());
        }
    }

    #[test]
    fn a_summary_counts_every_state() {
        let summary = Summary::from_iter([State::Failed, State::Installed, State::Installed]);
        assert_eq!(summary, Summary { total: 3, failed: 1, installed: 2, ..Summary::default() });
        let one_each = Summary::from_iter(State::BY_SEVERITY);
        let json = serde_json::to_value(one_each).unwrap();
        for state in State::BY_SEVERITY {
            assert_eq!(json[state.as_str()], 1, "{state}");
        }
    }
}
