//! The components of a deployment.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::{MAX_MESSAGE, MAX_TEXT};
use super::state::{BlockReason, State, StatusError, Tie};
use crate::condition;

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
}
