//! DaemonSet.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;

use super::readable::or_default;
use super::{PodSelector, PodTemplate, Readable, metadata, readable};

/// A DaemonSet.
#[derive(Clone, Debug, Default, Deserialize, Resource)]
#[resource(inherit = k8s_openapi::api::apps::v1::DaemonSet)]
#[serde(default)]
pub struct DaemonSet {
    /// The metadata, with the kept labels and annotations only.
    #[serde(deserialize_with = "metadata::metadata")]
    pub metadata: ObjectMeta,
    /// The desired state.
    #[serde(deserialize_with = "readable::spec")]
    pub spec: Readable<DaemonSetSpec>,
    /// The observed state.
    #[serde(deserialize_with = "readable::status")]
    pub status: Readable<DaemonSetStatus>,
}

/// The desired state of a DaemonSet.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DaemonSetSpec {
    /// The labels of its pods.
    pub selector: PodSelector,
    /// The pod template.
    #[serde(deserialize_with = "or_default")]
    pub template: PodTemplate,
}

/// The observed state of a DaemonSet.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DaemonSetStatus {
    /// The generation that this status describes.
    pub observed_generation: Option<i64>,
    /// The number of nodes that should have a pod.
    pub desired_number_scheduled: i64,
    /// The number of nodes that should have a pod, and have one.
    pub current_number_scheduled: i64,
    /// The number of those nodes with a pod of the current template.
    pub updated_number_scheduled: i64,
    /// The number of those nodes with a ready pod, of any template.
    pub number_ready: i64,
    /// The number of those nodes with an available pod, of any template.
    pub number_available: i64,
}
