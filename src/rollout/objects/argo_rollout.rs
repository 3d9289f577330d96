//! Rollout of Argo Rollouts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::custom_kind::custom_kind;
use super::readable::or_default;
use super::{Condition, ObjectReference, PodSelector, PodTemplate, Readable, metadata, readable};

/// A Rollout of Argo Rollouts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ArgoRollout {
    /// The metadata, with the kept labels and annotations only.
    #[serde(deserialize_with = "metadata::metadata")]
    pub metadata: ObjectMeta,
    /// The desired state.
    #[serde(deserialize_with = "readable::spec")]
    pub spec: Readable<ArgoRolloutSpec>,
    /// The observed state.
    #[serde(deserialize_with = "readable::status")]
    pub status: Readable<ArgoRolloutStatus>,
}

custom_kind!(ArgoRollout: "argoproj.io", "v1alpha1", "Rollout", "rollouts");

/// The desired state of a Rollout.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ArgoRolloutSpec {
    /// The desired number of pods; 1 if absent.
    pub replicas: Option<i64>,
    /// The labels of its pods; absent with `workloadRef`.
    pub selector: PodSelector,
    /// The pod template; empty with `workloadRef`.
    #[serde(deserialize_with = "or_default")]
    pub template: PodTemplate,
    /// The workload whose pod template is used.
    pub workload_ref: Option<ObjectReference>,
}

/// The observed state of a Rollout.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ArgoRolloutStatus {
    /// The generation that this status describes: a number, or a hash of versions before 0.10.
    pub observed_generation: Option<String>,
    /// The generation of the workload of `workloadRef` that this status describes: a number.
    pub workload_observed_generation: Option<String>,
    /// `Healthy`, `Progressing`, `Paused` or `Degraded`; absent before version 1.0.
    pub phase: Option<String>,
    /// The reason of the phase.
    pub message: Option<String>,
    /// Set after an abort, until a retry or another template.
    pub abort: bool,
    /// The number of pods.
    pub replicas: i64,
    /// The number of pods of the current template.
    pub updated_replicas: i64,
    /// The number of ready pods, of any template.
    pub ready_replicas: i64,
    /// The hash of the current template.
    pub current_pod_hash: Option<String>,
    /// The hash of the template that is fully promoted.
    #[serde(rename = "stableRS")]
    pub stable_rs: Option<String>,
    /// The conditions.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
}
