//! Pod.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use serde::Deserialize;

use super::readable::or_default;
use super::{Condition, PodSpec, Readable, metadata, readable};

/// A pod.
#[derive(Clone, Debug, Default, Deserialize, Resource)]
#[resource(inherit = k8s_openapi::api::core::v1::Pod)]
#[serde(default)]
pub struct Pod {
    /// The metadata, with the kept labels and annotations only.
    #[serde(deserialize_with = "metadata::metadata")]
    pub metadata: ObjectMeta,
    /// The desired state.
    #[serde(deserialize_with = "readable::spec")]
    pub spec: Readable<PodSpec>,
    /// The observed state.
    #[serde(deserialize_with = "readable::status")]
    pub status: Readable<PodStatus>,
}

/// The observed state of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: Option<String>,
    /// The conditions.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
    /// The states of the containers.
    #[serde(deserialize_with = "or_default")]
    pub container_statuses: Vec<ContainerStatus>,
    /// The states of the init containers.
    #[serde(deserialize_with = "or_default")]
    pub init_container_statuses: Vec<ContainerStatus>,
}

/// The state of one container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    /// The name of the container.
    pub name: String,
    /// Readiness; for an init container, its success.
    pub ready: bool,
    /// The number of restarts.
    pub restart_count: i64,
    /// The current state.
    #[serde(deserialize_with = "or_default")]
    pub state: ContainerState,
    /// The state before the last restart.
    #[serde(deserialize_with = "or_default")]
    pub last_state: ContainerState,
}

/// The state of a container; at most one field is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerState {
    /// Set if the container waits to start.
    pub waiting: Option<Waiting>,
    /// Set if the container runs.
    pub running: Option<Running>,
    /// Set if the container has ended.
    pub terminated: Option<Terminated>,
}

/// The state of a container that waits to start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Waiting {
    /// The kubelet's reason, such as `ImagePullBackOff`.
    pub reason: Option<String>,
    /// The kubelet's message.
    pub message: Option<String>,
}

/// The state of a container that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Running {
    /// The time of its start.
    pub started_at: Option<Time>,
}

/// The state of a container that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Terminated {
    /// The exit code of its process.
    pub exit_code: i64,
    /// The kubelet's reason, such as `Error` or `OOMKilled`.
    pub reason: Option<String>,
    /// The time of its start.
    pub started_at: Option<Time>,
    /// The time of its end.
    pub finished_at: Option<Time>,
}
