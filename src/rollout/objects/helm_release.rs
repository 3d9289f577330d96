//! HelmRelease of Flux.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::custom_kind::custom_kind;
use super::readable::or_default;
use super::{Condition, Readable, metadata, readable};

/// A HelmRelease of Flux.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct HelmRelease {
    /// The metadata, with the kept labels and annotations only.
    #[serde(deserialize_with = "metadata::metadata")]
    pub metadata: ObjectMeta,
    /// The desired state.
    #[serde(deserialize_with = "readable::spec")]
    pub spec: Readable<HelmReleaseSpec>,
    /// The observed state.
    #[serde(deserialize_with = "readable::status")]
    pub status: Readable<HelmReleaseStatus>,
}

custom_kind!(HelmRelease: "helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases");

/// The desired state of a HelmRelease.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, from = "WholeSpec")]
pub struct HelmReleaseSpec {
    /// Suspends the controller's work.
    pub suspend: bool,
    /// Set if the release is installed in another cluster.
    pub is_remote: bool,
    /// The values of a remote release, or null.
    ///
    /// A remote release is assessed by its own spec; of others, the values are not in use.
    pub values: Value,
}

/// The desired state of a HelmRelease, with the values of every release.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WholeSpec {
    #[serde(deserialize_with = "or_default")]
    suspend: bool,
    kube_config: Option<IgnoredAny>,
    values: Value,
}

impl From<WholeSpec> for HelmReleaseSpec {
    fn from(whole: WholeSpec) -> Self {
        let is_remote = whole.kube_config.is_some();
        let values = if is_remote { whole.values } else { Value::Null };
        Self { suspend: whole.suspend, is_remote, values }
    }
}

/// The observed state of a HelmRelease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HelmReleaseStatus {
    /// The generation that this status describes.
    pub observed_generation: Option<i64>,
    /// The releases, newest first.
    #[serde(deserialize_with = "or_default")]
    pub history: Vec<ReleaseSnapshot>,
    /// The conditions.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
}

/// One release in the history of a HelmRelease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReleaseSnapshot {
    /// The version of the chart.
    pub chart_version: Option<String>,
    /// Helm's status of the release, such as `deployed`.
    pub status: Option<String>,
}
