//! An object of a kind without a type of its own.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::Deserialize;
use serde_json::Value;

use super::metadata;

/// An object of any kind.
///
/// Its kind is known from its list only. Spec and status are kept whole: the spec may have the image anywhere, and
/// the fields of the status depend on the kind.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct GenericObject {
    /// The metadata, with the kept labels and annotations only.
    #[serde(deserialize_with = "metadata::metadata")]
    pub metadata: ObjectMeta,
    /// The desired state.
    pub spec: Value,
    /// The observed state.
    pub status: Value,
}

impl Resource for GenericObject {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
