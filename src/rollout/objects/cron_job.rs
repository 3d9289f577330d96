//! CronJob.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;

use super::{JobSpec, Readable, metadata, readable};

/// A CronJob. Its status is not in use.
#[derive(Clone, Debug, Default, Deserialize, Resource)]
#[resource(inherit = k8s_openapi::api::batch::v1::CronJob)]
#[serde(default)]
pub struct CronJob {
    /// The metadata, with the kept labels and annotations only.
    #[serde(deserialize_with = "metadata::metadata")]
    pub metadata: ObjectMeta,
    /// The desired state.
    #[serde(deserialize_with = "readable::spec")]
    pub spec: Readable<CronJobSpec>,
}

/// The desired state of a CronJob.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CronJobSpec {
    /// The template of its Jobs.
    pub job_template: JobTemplate,
}

/// The template of a CronJob's Jobs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JobTemplate {
    /// The spec of the Jobs.
    pub spec: JobSpec,
}
