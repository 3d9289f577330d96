//! GitRepository: the address, reference and access of a git repository.
//!
//! The kind belongs to Flux's source controller. It has only the fields that an automation reads; all others are
//! ignored, and our CRD of the kind tells an API server to keep them.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::duration::{self, GoDuration};
use crate::null;
use crate::open_enum::open_enum;
use crate::reference::LocalObjectReference;

/// Address of a git repository, and access to it.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "source.toolkit.fluxcd.io",
    version = "v1",
    kind = "GitRepository",
    plural = "gitrepositories",
    namespaced,
    status = "GitRepositoryStatus",
    derive = "PartialEq",
    doc = "Defines the address of a git repository and the access to it.",
    shortname = "gitrepo",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-sources",
    printcolumn(name = "URL", type_ = "string", json_path = ".spec.url"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.serviceAccountName) || (has(self.provider) && self.provider in ['azure', 'aws'])",
        "message": "spec.serviceAccountName is only accepted when spec.provider is set to 'azure' or 'aws'",
    },
]))]
pub struct GitRepositorySpec {
    /// Address of the repository, over HTTP or SSH.
    #[schemars(regex(pattern = r"^(http|https|ssh)://.*$"))]
    pub url: String,
    /// Interval of the source controller; an automation has its own.
    pub interval: GoDuration,
    /// Branch, tag or commit to check out; defaults to the branch `master`.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<GitRepositoryRef>,
    /// Timeout of one git operation.
    #[serde(default = "default_timeout", deserialize_with = "timeout")]
    #[schemars(schema_with = "duration::schema_without_hours")]
    pub timeout: GoDuration,
    /// Secret in the same namespace with the credentials for the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// Secret in the same namespace with the address and credentials of a proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalObjectReference>,
    /// Provider of the identity for logging in; defaults to `generic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<GitProvider>,
    /// Service account whose identity at the provider is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Suspends the source controller's work; automations are not affected.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

impl GitRepositorySpec {
    /// Returns the provider, or `generic` if it is absent.
    #[must_use]
    pub fn effective_provider(&self) -> GitProvider {
        self.provider.clone().unwrap_or_default()
    }
}

/// Returns the default timeout.
fn default_timeout() -> GoDuration {
    GoDuration::new("60s")
}

/// Parses the timeout; null is treated as absent.
fn timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<GoDuration, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_else(default_timeout))
}

open_enum! {
    /// Provider of an identity for logging in to a git server.
    GitProvider {
        /// No provider: secrets only.
        #[default]
        Generic = "generic",
        /// Amazon Web Services.
        Aws = "aws",
        /// Microsoft Azure.
        Azure = "azure",
        /// A GitHub App.
        GitHub = "github",
    }
}

/// Branch, tag or commit of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRepositoryRef {
    /// Name of a branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Name of a tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Range of semantic versions, of which the highest tag is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semver: Option<String>,
    /// Full name of a reference, such as `refs/heads/main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Hash of a commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// Status of the source controller, of which no field is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct GitRepositoryStatus {}
