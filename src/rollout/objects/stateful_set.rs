//! StatefulSet.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;

use super::readable::or_default;
use super::{PodSelector, PodTemplate, Readable, metadata, readable};

/// A StatefulSet.
#[derive(Clone, Debug, Default, Deserialize, Resource)]
#[resource(inherit = k8s_openapi::api::apps::v1::StatefulSet)]
#[serde(default)]
pub struct StatefulSet {
    /// The metadata, with the kept labels and annotations only.
    #[serde(deserialize_with = "metadata::metadata")]
    pub metadata: ObjectMeta,
    /// The desired state.
    #[serde(deserialize_with = "readable::spec")]
    pub spec: Readable<StatefulSetSpec>,
    /// The observed state.
    #[serde(deserialize_with = "readable::status")]
    pub status: Readable<StatefulSetStatus>,
}

/// The desired state of a StatefulSet.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StatefulSetSpec {
    /// The desired number of pods; 1 if absent.
    pub replicas: Option<i64>,
    /// The labels of its pods.
    pub selector: PodSelector,
    /// The pod template.
    #[serde(deserialize_with = "or_default")]
    pub template: PodTemplate,
    /// The strategy of updates.
    #[serde(deserialize_with = "or_default")]
    pub update_strategy: StatefulSetUpdateStrategy,
}

/// The strategy of updates of a StatefulSet.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StatefulSetUpdateStrategy {
    /// `RollingUpdate` (the default) or `OnDelete`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The parameters of `RollingUpdate`.
    #[serde(deserialize_with = "or_default")]
    pub rolling_update: RollingUpdate,
}

/// The parameters of a rolling update of a StatefulSet.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RollingUpdate {
    /// The ordinal from which pods are updated; 0 if absent.
    pub partition: Option<i64>,
}

/// The observed state of a StatefulSet. Its controller sets no conditions.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StatefulSetStatus {
    /// The generation that this status describes.
    pub observed_generation: Option<i64>,
    /// The number of pods, terminating ones included.
    pub replicas: i64,
    /// The number of pods of the revision `currentRevision`.
    pub current_replicas: i64,
    /// The number of pods of the revision `updateRevision`.
    pub updated_replicas: i64,
    /// The number of ready pods, of any revision.
    pub ready_replicas: i64,
    /// The revision before the rollout; equal to `updateRevision` when it is complete.
    pub current_revision: Option<String>,
    /// The revision of the current template.
    pub update_revision: Option<String>,
}
