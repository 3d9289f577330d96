//! ImageUpdateAutomation: writes the images that policies chose into a git repository.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::condition::{self, Condition};
use crate::duration::GoDuration;
use crate::git_repository::GitRepositoryRef;
use crate::null;
use crate::object_name::ObjectName;
use crate::open_enum::open_enum;
use crate::reference::{self, ImageRef, LocalObjectReference};

/// Desired state of an automation: source, policies, and how to commit and push.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "image.toolkit.fluxcd.io",
    version = "v1",
    kind = "ImageUpdateAutomation",
    plural = "imageupdateautomations",
    namespaced,
    status = "ImageUpdateAutomationStatus",
    derive = "PartialEq",
    doc = "Updates the marked lines of a git repository with the images that policies chose.",
    shortname = "iua",
    shortname = "imgupd",
    shortname = "imgauto",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-images",
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
        name = "Last run",
        type_ = "string",
        json_path = ".status.lastAutomationRunTime",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ImageUpdateAutomationSpec {
    /// Reference to the source object of the git repository.
    pub source_ref: SourceReference,
    /// Git settings: checkout, commit and push. An automation without them stalls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSpec>,
    /// Interval between two runs.
    pub interval: GoDuration,
    /// Label selector of the image policies; defaults to all policies of the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "policy_selector_schema")]
    pub policy_selector: Option<LabelSelector>,
    /// Strategy of finding and changing files.
    #[serde(default, deserialize_with = "null::as_default")]
    pub update: UpdateSpec,
    /// Suspends the automation; a run in progress continues.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

open_enum! {
    /// Kind of the source of an automation.
    SourceKind {
        /// A git repository.
        #[default]
        GitRepository = "GitRepository",
    }
}

/// Reference to the source object of a git repository.
// Flux's schema marks the kind as required though it has a default; a derived schema would not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["kind", "name"]))]
pub struct SourceReference {
    /// API version of the object; accepted for compatibility and ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the object.
    #[serde(default, deserialize_with = "null::as_default")]
    pub kind: SourceKind,
    /// Name of the object.
    pub name: String,
    /// Namespace of the object; defaults to the automation's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl ImageUpdateAutomation {
    /// Returns the full name of its GitRepository.
    #[must_use]
    pub fn git_repository(&self) -> ObjectName {
        let own = self.metadata.namespace.as_deref().unwrap_or_default();
        let reference = &self.spec.source_ref;
        let namespace = reference.effective_namespace(own).to_owned();
        ObjectName { namespace, name: reference.name.clone() }
    }
}

impl SourceReference {
    /// Returns the namespace of the reference for an automation in the namespace `own`.
    #[must_use]
    pub fn effective_namespace<'a>(&'a self, own: &'a str) -> &'a str {
        reference::effective_namespace(self.namespace.as_deref(), own)
    }
}

/// Git settings of an automation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitSpec {
    /// Reference to check out; defaults to the reference of the GitRepository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<CheckoutSpec>,
    /// Author, message and signing key of the commits.
    pub commit: CommitSpec,
    /// Target of pushes; defaults to the branch that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<PushSpec>,
}

/// Checkout settings of an automation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckoutSpec {
    /// Git reference to check out.
    #[serde(rename = "ref")]
    pub reference: GitRepositoryRef,
}

/// Commit settings of an automation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitSpec {
    /// Author of the commits.
    pub author: CommitAuthor,
    /// Template of the commit message; the default is a message of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_template: Option<String>,
    /// Additional values for the template.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub message_template_values: BTreeMap<String, String>,
    /// Key that signs the commits; without it, they are not signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_key: Option<SigningKey>,
}

/// The author of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitAuthor {
    /// E-mail address of the author.
    pub email: String,
    /// Name of the author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

open_enum! {
    /// Type of a signing key.
    SigningKeyType {
        /// An OpenPGP key.
        #[default]
        Gpg = "gpg",
        /// An SSH key.
        Ssh = "ssh",
    }
}

/// Key that signs commits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SigningKey {
    /// Secret in the automation's namespace that holds the key.
    pub secret_ref: LocalObjectReference,
    /// Type of the key; defaults to `gpg`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<SigningKeyType>,
}

impl SigningKey {
    /// Returns the type of the key, or the default type if it is absent.
    #[must_use]
    pub fn effective_type(&self) -> SigningKeyType {
        self.type_.clone().unwrap_or_default()
    }
}

/// Target of an automation's pushes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PushSpec {
    /// Branch to push to; created if it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Refspec to push, in addition to the branch if both are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refspec: Option<String>,
    /// Push options that are sent to the server.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
}

open_enum! {
    /// Strategy of updating files.
    UpdateStrategy {
        /// Changes values on the lines that have a marker comment.
        #[default]
        Setters = "Setters",
    }
}

/// Update settings of an automation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateSpec {
    /// Update strategy.
    #[serde(default, deserialize_with = "null::as_default")]
    pub strategy: UpdateStrategy,
    /// Directory of the files; defaults to the root of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Observed state of an automation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageUpdateAutomationStatus {
    /// Start time of the latest run, successful or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "condition::time_schema")]
    pub last_automation_run_time: Option<Time>,
    /// Hash of the last commit that was pushed for this automation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_push_commit: Option<String>,
    /// Time of the last push.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "condition::time_schema")]
    pub last_push_time: Option<Time>,
    /// Generation of the object to which the status applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of the automation.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "condition::list_schema")]
    pub conditions: Vec<Condition>,
    /// Images of the policies in the last run, by policy name.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub observed_policies: BTreeMap<String, ImageRef>,
    /// Source revision of the last run, as `reference@sha1:hash`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_source_revision: Option<String>,
    /// Last handled request for an immediate reconcile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

/// Returns the schema of a label selector.
///
/// A selector is replaced as a whole when two writers conflict.
fn policy_selector_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchExpressions": {
                "description": "Requirements on labels, all of which must be met.",
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "description": "Requirement on a label.",
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": { "description": "Name of the label.", "type": "string" },
                        "operator": {
                            "description": "Operator: In, NotIn, Exists or DoesNotExist.",
                            "type": "string",
                        },
                        "values": {
                            "description": "Values for In and NotIn; none for other operators.",
                            "type": "array",
                            "items": { "type": "string" },
                            "x-kubernetes-list-type": "atomic",
                        },
                    },
                },
            },
            "matchLabels": {
                "description": "Required labels with their values.",
                "type": "object",
                "additionalProperties": { "type": "string" },
            },
        },
    })
}
