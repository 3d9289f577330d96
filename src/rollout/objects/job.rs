//! Job.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use serde::Deserialize;

use super::readable::or_default;
use super::{Condition, PodSelector, PodTemplate, Readable, metadata, readable};

/// A Job.
#[derive(Clone, Debug, Default, Deserialize, Resource)]
#[resource(inherit = k8s_openapi::api::batch::v1::Job)]
#[serde(default)]
pub struct Job {
    /// The metadata, with the kept labels and annotations only.
    #[serde(deserialize_with = "metadata::metadata")]
    pub metadata: ObjectMeta,
    /// The desired state.
    #[serde(deserialize_with = "readable::spec")]
    pub spec: Readable<JobSpec>,
    /// The observed state.
    #[serde(deserialize_with = "readable::status")]
    pub status: Readable<JobStatus>,
}

/// The desired state of a Job.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JobSpec {
    /// The number of pods that must succeed; absent for a work queue.
    pub completions: Option<i64>,
    /// The labels of its pods.
    pub selector: PodSelector,
    /// The pod template.
    #[serde(deserialize_with = "or_default")]
    pub template: PodTemplate,
}

/// The observed state of a Job.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JobStatus {
    /// The number of running and pending pods.
    pub active: i64,
    /// The number of pods that succeeded.
    pub succeeded: i64,
    /// The time at which the Job completed; absent for a failed one.
    pub completion_time: Option<Time>,
    /// The conditions.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
}
