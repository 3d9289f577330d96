//! Deployment.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;

use super::readable::or_default;
use super::{Condition, PodSelector, PodTemplate, Readable, metadata, readable};

/// A Deployment.
#[derive(Clone, Debug, Default, Deserialize, Resource)]
#[resource(inherit = k8s_openapi::api::apps::v1::Deployment)]
#[serde(default)]
pub struct Deployment {
    /// The metadata, with the kept labels and annotations only.
    #[serde(deserialize_with = "metadata::metadata")]
    pub metadata: ObjectMeta,
    /// The desired state.
    #[serde(deserialize_with = "readable::spec")]
    pub spec: Readable<DeploymentSpec>,
    /// The observed state.
    #[serde(deserialize_with = "readable::status")]
    pub status: Readable<DeploymentStatus>,
}

/// The desired state of a Deployment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeploymentSpec {
    /// The desired number of pods; 1 if absent.
    pub replicas: Option<i64>,
    /// The labels of its pods.
    pub selector: PodSelector,
    /// The pod template.
    #[serde(deserialize_with = "or_default")]
    pub template: PodTemplate,
    /// Stops rollouts.
    pub paused: bool,
    /// The time without progress after which a rollout has failed, in seconds.
    pub progress_deadline_seconds: Option<i64>,
}

/// The observed state of a Deployment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeploymentStatus {
    /// The generation that this status describes.
    pub observed_generation: Option<i64>,
    /// The number of pods.
    pub replicas: i64,
    /// The number of pods of the current template.
    pub updated_replicas: i64,
    /// The number of ready pods, of any template.
    pub ready_replicas: i64,
    /// The number of available pods, of any template.
    pub available_replicas: i64,
    /// The conditions.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
}
