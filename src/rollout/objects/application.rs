//! Application of Argo CD.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Deserialize;

use super::custom_kind::custom_kind;
use super::readable::or_default;
use super::{Readable, metadata, readable};

/// An Application of Argo CD.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Application {
    /// The metadata, with the kept labels and annotations only.
    #[serde(deserialize_with = "metadata::metadata")]
    pub metadata: ObjectMeta,
    /// The desired state.
    #[serde(deserialize_with = "readable::spec")]
    pub spec: Readable<ApplicationSpec>,
    /// The observed state.
    #[serde(deserialize_with = "readable::status")]
    pub status: Readable<ApplicationStatus>,
}

custom_kind!(Application: "argoproj.io", "v1alpha1", "Application", "applications");

/// The desired state of an Application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApplicationSpec {
    /// The source; absent with `sources`.
    pub source: Option<ApplicationSource>,
    /// The sources of an Application with several.
    #[serde(deserialize_with = "or_default")]
    pub sources: Vec<ApplicationSource>,
    /// The cluster to which the objects are applied.
    pub destination: ApplicationDestination,
    /// The policy of syncs.
    #[serde(deserialize_with = "or_default")]
    pub sync_policy: SyncPolicy,
}

impl ApplicationSpec {
    /// Returns the sources, in the order of their revisions.
    #[must_use]
    pub fn sources(&self) -> &[ApplicationSource] {
        if self.sources.is_empty() { self.source.as_slice() } else { &self.sources }
    }
}

/// A source of an Application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApplicationSource {
    /// The address of the repository.
    #[serde(rename = "repoURL")]
    pub repo_url: String,
    /// The directory in the repository.
    pub path: Option<String>,
}

/// The cluster of an Application, by its address or by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApplicationDestination {
    /// The address of the API server.
    pub server: Option<String>,
    /// The name of the cluster in Argo CD.
    pub name: Option<String>,
}

/// The policy of syncs of an Application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SyncPolicy {
    /// Set if Argo CD syncs by itself.
    pub automated: Option<Automated>,
}

/// The parameters of automated syncs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Automated {
    /// Set to `false` to disable automated syncs, since version 3.0.
    pub enabled: Option<bool>,
}

/// The observed state of an Application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApplicationStatus {
    /// The comparison of the cluster with the sources.
    pub sync: ApplicationSync,
    /// The health of the objects.
    pub health: ApplicationHealth,
    /// A summary of the objects.
    pub summary: ApplicationSummary,
    /// The last operation.
    pub operation_state: Option<OperationState>,
    /// The successful syncs, oldest first.
    #[serde(deserialize_with = "or_default")]
    pub history: Vec<ApplicationRevision>,
}

/// The comparison of the cluster with the sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApplicationSync {
    /// `Synced`, `OutOfSync` or `Unknown`.
    pub status: Option<String>,
    /// The compared revision.
    #[serde(flatten)]
    pub revision: ApplicationRevision,
}

/// A revision of an Application's source, or one for each of its sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApplicationRevision {
    /// The revision of the only source.
    pub revision: Option<String>,
    /// The revisions, in the order of the sources.
    #[serde(deserialize_with = "or_default")]
    pub revisions: Vec<String>,
}

impl ApplicationRevision {
    /// Returns the revision of a source.
    #[must_use]
    pub fn of_source(&self, source: usize) -> Option<&str> {
        let revision = if self.revisions.is_empty() {
            self.revision.as_deref()
        } else {
            self.revisions.get(source).map(String::as_str)
        };
        revision.filter(|revision| !revision.is_empty())
    }
}

/// The health of an Application's objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApplicationHealth {
    /// `Healthy`, `Progressing`, `Degraded`, `Suspended`, `Missing` or `Unknown`.
    pub status: Option<String>,
    /// The reason of the health.
    pub message: Option<String>,
    /// The time of the last change, in newer versions.
    pub last_transition_time: Option<Time>,
}

/// A summary of an Application's objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApplicationSummary {
    /// The images of all objects.
    #[serde(deserialize_with = "or_default")]
    pub images: Vec<String>,
}

/// The state of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OperationState {
    /// `Running`, `Succeeded`, `Failed`, `Error` or `Terminating`.
    pub phase: Option<String>,
    /// The result, or the error.
    pub message: Option<String>,
    /// The operation.
    pub operation: Operation,
    /// The result of a sync; absent if it failed before its start.
    pub sync_result: Option<ApplicationRevision>,
}

/// An operation on an Application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Operation {
    /// The requested sync.
    pub sync: Option<OperationSync>,
}

/// The revision of a requested sync.
pub type OperationSync = ApplicationRevision;
