//! Kustomization of Flux.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::custom_kind::custom_kind;
use super::readable::or_default;
use super::{Condition, Readable, metadata, readable};

/// A Kustomization of Flux.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Kustomization {
    /// The metadata, with the kept labels and annotations only.
    #[serde(deserialize_with = "metadata::metadata")]
    pub metadata: ObjectMeta,
    /// The desired state.
    #[serde(deserialize_with = "readable::spec")]
    pub spec: Readable<KustomizationSpec>,
    /// The observed state.
    #[serde(deserialize_with = "readable::status")]
    pub status: Readable<KustomizationStatus>,
}

custom_kind!(Kustomization: "kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations");

/// The desired state of a Kustomization.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct KustomizationSpec {
    /// The directory in the source; the root if absent.
    pub path: Option<String>,
    /// The source.
    pub source_ref: SourceReference,
    /// Suspends the controller's work.
    #[serde(deserialize_with = "or_default")]
    pub suspend: bool,
    /// Set if the objects are applied to another cluster.
    pub kube_config: Option<IgnoredAny>,
}

/// A reference to a source of Flux.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SourceReference {
    /// The kind, such as `GitRepository`.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The namespace; that of the reference if absent.
    pub namespace: Option<String>,
}

/// The observed state of a Kustomization.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct KustomizationStatus {
    /// The generation that this status describes.
    pub observed_generation: Option<i64>,
    /// The revision that was last applied without an error.
    pub last_applied_revision: Option<String>,
    /// The conditions.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
}
