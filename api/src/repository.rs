//! ImageRepository: scans a container image's tags.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use crate::condition::{self, Condition};
use crate::duration::{self, DurationError, GoDuration};
use crate::null;
use crate::open_enum::open_enum;
use crate::reference::LocalObjectReference;

/// The tags that are excluded by default: signatures of cosign.
///
/// Cosign stores them beside an image.
pub const DEFAULT_EXCLUSION: &str = r"^.*\.sig$";

/// The minimum timeout of a scan, as in Flux.
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);

/// Desired state of an image repository: the image, the scan interval, and access to the registry.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "image.toolkit.fluxcd.io",
    version = "v1",
    kind = "ImageRepository",
    plural = "imagerepositories",
    namespaced,
    status = "ImageRepositoryStatus",
    derive = "PartialEq",
    doc = "Scans the tags of a container image.",
    shortname = "imgrepo",
    shortname = "imagerepo",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-images",
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.image"),
    printcolumn(name = "Tags", type_ = "string", json_path = ".status.lastScanResult.tagCount"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#
    ),
    printcolumn(
        name = "Last scan",
        type_ = "string",
        json_path = ".status.lastScanResult.scanTime",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ImageRepositorySpec {
    /// Address of the image, without scheme, tag and digest.
    pub image: String,
    /// Interval between two scans.
    pub interval: GoDuration,
    /// Timeout of a scan; defaults to the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration::schema_without_hours")]
    pub timeout: Option<GoDuration>,
    /// Secret in the same namespace with the credentials for the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// Secret in the same namespace with the address and credentials of a proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalObjectReference>,
    /// Service account whose image pull secrets or provider identity are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub service_account_name: Option<String>,
    /// Secret in the same namespace with TLS certificates for the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,
    /// Suspends the scans.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
    /// Namespaces that may refer to this object; defaults to none but its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_from: Option<AccessFrom>,
    /// Regular expressions of tags to exclude.
    #[serde(default = "default_exclusion_list", deserialize_with = "exclusion_list")]
    #[schemars(length(max = 25))]
    pub exclusion_list: Vec<String>,
    /// Cloud provider of the identity for logging in.
    #[serde(default, deserialize_with = "null::as_default")]
    pub provider: ImageProvider,
    /// Allows connections to the registry without TLS.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
}

impl ImageRepositorySpec {
    /// Returns the timeout of a scan: the timeout or else the interval.
    ///
    /// It is at least one second.
    pub fn effective_timeout(&self) -> Result<Duration, DurationError> {
        let timeout = match &self.timeout {
            Some(timeout) => timeout.to_duration_without_hours()?,
            None => self.interval.to_duration()?,
        };
        Ok(timeout.max(SHORTEST_TIMEOUT))
    }

    /// Returns the regular expressions of tags to exclude.
    ///
    /// An empty list means the default, as in Flux.
    #[must_use]
    pub fn effective_exclusion_list(&self) -> Vec<String> {
        if self.exclusion_list.is_empty() { default_exclusion_list() } else { self.exclusion_list.clone() }
    }
}

/// Returns the default exclusion list.
fn default_exclusion_list() -> Vec<String> {
    vec![DEFAULT_EXCLUSION.to_owned()]
}

/// Parses the list; null is treated as absent.
fn exclusion_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_else(default_exclusion_list))
}

open_enum! {
    /// Cloud provider of an identity for logging in to a registry.
    ImageProvider {
        /// No provider: secrets only.
        #[default]
        Generic = "generic",
        /// Amazon Web Services.
        Aws = "aws",
        /// Microsoft Azure.
        Azure = "azure",
        /// Google Cloud.
        Gcp = "gcp",
    }
}

/// Namespaces that may refer to an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessFrom {
    /// Selectors of namespaces; a namespace that matches one of them may refer to the object.
    pub namespace_selectors: Vec<NamespaceSelector>,
}

/// Selects namespaces by their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceSelector {
    /// Required labels with their values; an empty map matches every namespace.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
}

/// Observed state of an image repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageRepositoryStatus {
    /// Conditions of the repository.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "condition::list_schema")]
    pub conditions: Vec<Condition>,
    /// Generation of the object to which the status applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Full name of the image, with the registry's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canonical_image_name: Option<String>,
    /// Result of the last successful scan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_scan_result: Option<ScanResult>,
    /// Regular expressions of tags that the last scan excluded.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "Vec::is_empty")]
    pub observed_exclusion_list: Vec<String>,
    /// Last handled request for an immediate reconcile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

/// Result of a scan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScanResult {
    /// Checksum of the tags that were found.
    // Flux writes this field even if it is empty; the second attribute keeps a default out of the schema.
    #[serde(default, deserialize_with = "null::as_default")]
    #[schemars(skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// Number of tags that were found and not excluded.
    #[schemars(schema_with = "count_schema")]
    pub tag_count: i64,
    /// Time of the scan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "condition::time_schema")]
    pub scan_time: Option<Time>,
    /// The first tags in descending alphabetical order.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "Vec::is_empty")]
    pub latest_tags: Vec<String>,
}

/// Returns the schema of a Go `int`, which has no format.
fn count_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer" })
}
