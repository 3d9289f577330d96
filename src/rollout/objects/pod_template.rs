//! The pod template of a workload: its images.

use serde::Deserialize;

use super::readable::or_default;

/// The pod template of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PodTemplate {
    /// The spec of the pods.
    #[serde(deserialize_with = "or_default")]
    pub spec: PodSpec,
}

/// The spec of a pod, or of the pods of a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// The containers.
    #[serde(deserialize_with = "or_default")]
    pub containers: Vec<Container>,
    /// The init containers, among them sidecars.
    #[serde(deserialize_with = "or_default")]
    pub init_containers: Vec<Container>,
    /// `Always` (the default), `OnFailure` or `Never`.
    pub restart_policy: Option<String>,
}

impl PodSpec {
    /// Returns the images of all containers, init containers included.
    pub fn images(&self) -> impl Iterator<Item = &str> {
        let containers = self.containers.iter().chain(&self.init_containers);
        containers.filter_map(|container| container.image.as_deref())
    }
}

/// A container of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Container {
    /// The name, unique in the pod.
    pub name: String,
    /// The reference of the image.
    pub image: Option<String>,
}

/// A reference to an object in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectReference {
    /// The API version.
    pub api_version: Option<String>,
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
}
