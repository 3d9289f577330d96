//! The default form of a DeploymentStatus, and a list of them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use tagboat_api::DeploymentStatus;
use tagboat_api::deployment_status::{Report, State, Summary};

use crate::rollout::aggregate::most_severe;

/// The API version of the default form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DocumentVersion {
    /// The only one.
    #[default]
    #[serde(rename = "deployment.margo/v1")]
    V1,
}

/// The kind of the default form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DocumentKind {
    /// The only one.
    #[default]
    DeploymentStatus,
}

/// A DeploymentStatus in the default form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    /// The API version.
    pub api_version: DocumentVersion,
    /// The kind.
    pub kind: DocumentKind,
    /// The identity of the deployment, and the time of the status.
    pub metadata: DocumentMetadata,
    /// The status: all fields of the object's status that the metadata does not have.
    pub status: Report,
}

/// The metadata of a [`Document`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DocumentMetadata {
    /// The identity of the deployment: the uid of the image policy.
    pub deployment_id: String,
    /// The time of the last change of the status.
    #[schemars(schema_with = "time_schema")]
    pub time_stamp: Time,
    /// The namespace of the object.
    pub namespace: String,
    /// The name of the object, which is that of the image policy.
    pub name: String,
    /// The labels of the object, which are those of the image policy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Returns the schema of a time.
///
/// The derived one would have the description of a type of Go's.
fn time_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

impl Document {
    /// Creates the document of an object, if it has a status.
    #[must_use]
    pub fn new(object: &DeploymentStatus) -> Option<Self> {
        let status = object.status.as_ref()?;
        let metadata = DocumentMetadata {
            deployment_id: status.deployment_id.clone(),
            time_stamp: status.time_stamp.clone(),
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            labels: object.labels().clone(),
        };
        let status = status.report.clone();
        Some(Self {
            api_version: DocumentVersion::V1,
            kind: DocumentKind::DeploymentStatus,
            metadata,
            status,
        })
    }
}

/// A list of deployments, with their aggregate state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DocumentList {
    /// The most severe state of the deployments.
    pub state: State,
    /// The number of deployments, and of those in each state.
    pub summary: Summary,
    /// The deployments.
    pub items: Vec<Document>,
}

impl From<Vec<Document>> for DocumentList {
    fn from(items: Vec<Document>) -> Self {
        let states = || items.iter().map(|item| item.status.state);
        Self { state: most_severe(states()), summary: states().collect(), items }
    }
}
