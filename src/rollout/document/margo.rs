//! The form of a DeploymentStatus that the current Margo specification defines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tagboat_api::DeploymentStatus;
use tagboat_api::deployment_status::{State, StatusError};

use crate::rollout::bounds;

/// The API version of the form `margo`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MargoVersion {
    /// The only one.
    #[default]
    #[serde(rename = "deployment.margo.org/v1alpha1")]
    V1Alpha1,
}

/// The kind of the form `margo`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MargoKind {
    /// The only one.
    #[default]
    DeploymentStatusManifest,
}

/// A DeploymentStatus in the form `margo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MargoManifest {
    /// The API version.
    pub api_version: MargoVersion,
    /// The kind.
    pub kind: MargoKind,
    /// The identity of the deployment: the uid of the image policy.
    pub deployment_id: String,
    /// The name of the cluster, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_id: Option<String>,
    /// The aggregate state.
    pub status: MargoStatus,
    /// The components.
    pub components: Vec<MargoComponent>,
}

/// The aggregate state in a [`MargoManifest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MargoStatus {
    /// The state.
    pub state: State,
    /// The error before the rollout, with the state `failed` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StatusError>,
}

/// A component in a [`MargoManifest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MargoComponent {
    /// The name of the component.
    pub name: String,
    /// The state.
    pub state: State,
    /// The error, with the state `failed` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StatusError>,
}

impl MargoManifest {
    /// Creates the manifest of an object, if it has a status.
    ///
    /// `device_id` is the name of the cluster; an empty one is treated as absent.
    #[must_use]
    pub fn new(object: &DeploymentStatus, device_id: Option<&str>) -> Option<Self> {
        let status = object.status.as_ref()?;
        let error = |error: Option<&StatusError>, state: State, source: &str| {
            let error = error.filter(|_| state == State::Failed)?;
            Some(bounds::error(error.clone(), source))
        };
        let report = &status.report;
        let components = report.components.iter().map(|component| MargoComponent {
            name: component.name.clone(),
            state: component.state,
            error: error(component.error.as_ref(), component.state, &component.name),
        });
        Some(Self {
            api_version: MargoVersion::V1Alpha1,
            kind: MargoKind::DeploymentStatusManifest,
            deployment_id: status.deployment_id.clone(),
            device_id: device_id.filter(|id| !id.is_empty()).map(str::to_owned),
            status: MargoStatus {
                state: report.state,
                error: error(report.error.as_ref(), report.state, &status.deployment_id),
            },
            components: components.collect(),
        })
    }
}
