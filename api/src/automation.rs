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
use crate::open_enum::open_enum;
use crate::reference::{self, ImageRef, LocalObjectReference};

/// What an automation is to do: where the manifests are, which policies count, and how to commit.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "image.toolkit.fluxcd.io",
    version = "v1",
    kind = "ImageUpdateAutomation",
    plural = "imageupdateautomations",
    namespaced,
    status = "ImageUpdateAutomationStatus",
    derive = "PartialEq",
    doc = "Writes the images that policies chose into the marked lines of a git repository.",
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
    /// Object that says where the repository is and how to reach it.
    pub source_ref: SourceReference,
    /// How to work with git: what to check out, what to commit, where to push. An automation without it stalls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSpec>,
    /// Time from the end of one run to the next.
    pub interval: GoDuration,
    /// Labels of the image policies that count; without it, all of the namespace do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "policy_selector_schema")]
    pub policy_selector: Option<LabelSelector>,
    /// How the files are found and changed.
    #[serde(default, deserialize_with = "null::as_default")]
    pub update: UpdateSpec,
    /// Whether the automation rests; a run that has begun goes on.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

open_enum! {
    /// A kind of object that can be the source of an automation.
    SourceKind {
        /// A git repository.
        #[default]
        GitRepository = "GitRepository",
    }
}

/// Names the object that says where the repository is.
// Flux's schema calls the kind required though it has a default; a derived one would not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["kind", "name"]))]
pub struct SourceReference {
    /// API version of the object; taken for the sake of old manifests, never read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the object.
    #[serde(default, deserialize_with = "null::as_default")]
    pub kind: SourceKind,
    /// Name of the object.
    pub name: String,
    /// Namespace of the object; without it, the automation's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl SourceReference {
    /// The namespace that the reference leads to from an automation in the namespace `own`.
    #[must_use]
    pub fn effective_namespace<'a>(&'a self, own: &'a str) -> &'a str {
        reference::effective_namespace(self.namespace.as_deref(), own)
    }
}

/// How an automation works with git.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitSpec {
    /// What to check out; without it, what the GitRepository says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<CheckoutSpec>,
    /// Who commits, with which message, and signed by which key.
    pub commit: CommitSpec,
    /// Where to push; without it, to the branch that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<PushSpec>,
}

/// What an automation checks out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckoutSpec {
    /// The git reference to start from.
    #[serde(rename = "ref")]
    pub reference: GitRepositoryRef,
}

/// What the commits of an automation look like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitSpec {
    /// Author of the commits.
    pub author: CommitAuthor,
    /// Template of the commit message; without it, a message of the controller's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_template: Option<String>,
    /// Further values that the template can name.
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
    /// The sort of a signing key.
    SigningKeyType {
        /// An OpenPGP key.
        #[default]
        Gpg = "gpg",
        /// An SSH key.
        Ssh = "ssh",
    }
}

/// The key that signs commits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SigningKey {
    /// Secret in the automation's namespace that holds the key.
    pub secret_ref: LocalObjectReference,
    /// Sort of the key; without it, `gpg`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<SigningKeyType>,
}

impl SigningKey {
    /// The sort of the key, where none is given the default one.
    #[must_use]
    pub fn effective_type(&self) -> SigningKeyType {
        self.type_.clone().unwrap_or_default()
    }
}

/// Where an automation pushes to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PushSpec {
    /// Branch to push to; made where it does not exist.
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
    /// A way of changing files.
    UpdateStrategy {
        /// The lines that carry a marker comment are changed.
        #[default]
        Setters = "Setters",
    }
}

/// How files are found and changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateSpec {
    /// Way of changing files.
    #[serde(default, deserialize_with = "null::as_default")]
    pub strategy: UpdateStrategy,
    /// Directory to search for files; without it, the root of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// What came of the automation's runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageUpdateAutomationStatus {
    /// When the latest run began, whether it succeeded or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "condition::time_schema")]
    pub last_automation_run_time: Option<Time>,
    /// Hash of the commit that was last pushed for this automation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_push_commit: Option<String>,
    /// When the last push was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "condition::time_schema")]
    pub last_push_time: Option<Time>,
    /// Generation of the object that the status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How the automation is doing.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "condition::list_schema")]
    pub conditions: Vec<Condition>,
    /// Images that the last run took from the policies, by the policy's name.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub observed_policies: BTreeMap<String, ImageRef>,
    /// Revision of the repository that the last run started from, as `reference@sha1:hash`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_source_revision: Option<String>,
    /// Last request for a reconcile at once that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

/// The schema of a label selector that is replaced as a whole when two writers meet.
fn policy_selector_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchExpressions": {
                "description": "Requirements on labels, all of which have to be met.",
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "description": "One requirement on a label.",
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": { "description": "Name of the label.", "type": "string" },
                        "operator": {
                            "description": "How the label relates to the values: In, NotIn, Exists or DoesNotExist.",
                            "type": "string",
                        },
                        "values": {
                            "description": "Values for In and NotIn; none for the other operators.",
                            "type": "array",
                            "items": { "type": "string" },
                            "x-kubernetes-list-type": "atomic",
                        },
                    },
                },
            },
            "matchLabels": {
                "description": "Labels with the value that each has to have.",
                "type": "object",
                "additionalProperties": { "type": "string" },
            },
        },
    })
}
