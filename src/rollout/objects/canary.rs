//! Canary of Flagger.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Deserialize;

use super::custom_kind::custom_kind;
use super::readable::or_default;
use super::{Condition, ObjectReference, Readable, metadata, readable};

/// A Canary of Flagger.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Canary {
    /// The metadata, with the kept labels and annotations only.
    #[serde(deserialize_with = "metadata::metadata")]
    pub metadata: ObjectMeta,
    /// The desired state.
    #[serde(deserialize_with = "readable::spec")]
    pub spec: Readable<CanarySpec>,
    /// The observed state.
    #[serde(deserialize_with = "readable::status")]
    pub status: Readable<CanaryStatus>,
}

custom_kind!(Canary: "flagger.app", "v1beta1", "Canary", "canaries");

impl Canary {
    /// Returns the name of the workload that serves the promoted version.
    #[must_use]
    pub fn primary_name(spec: &CanarySpec) -> String {
        format!("{}-primary", spec.target_ref.name)
    }
}

/// The desired state of a Canary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CanarySpec {
    /// The workload that users change.
    pub target_ref: ObjectReference,
}

/// The observed state of a Canary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CanaryStatus {
    /// The phase, such as `Initialized`, `Progressing`, `Succeeded` or `Failed`.
    pub phase: Option<String>,
    /// The time of the last change of the phase.
    pub last_transition_time: Option<Time>,
    /// The conditions; `Promoted` is the only one.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
}
