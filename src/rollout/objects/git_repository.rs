//! GitRepository of Flux.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::custom_kind::custom_kind;
use super::{Readable, metadata, readable};

/// A GitRepository of Flux. Its status is not in use.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct GitRepository {
    /// The metadata, with the kept labels and annotations only.
    #[serde(deserialize_with = "metadata::metadata")]
    pub metadata: ObjectMeta,
    /// The desired state.
    #[serde(deserialize_with = "readable::spec")]
    pub spec: Readable<GitRepositorySpec>,
}

custom_kind!(GitRepository: "source.toolkit.fluxcd.io", "v1", "GitRepository", "gitrepositories");

/// The desired state of a GitRepository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GitRepositorySpec {
    /// The address of the repository.
    pub url: String,
}
