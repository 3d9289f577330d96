//! Conditions of an object's status, and their reasons.

use std::fmt;

use schemars::{Schema, SchemaGenerator, json_schema};

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// The reason of a condition or an event, in one word, for programs.
///
/// Users alert on these names, so none ever changes. All are Flux's except
/// [`InvalidSettings`](Self::InvalidSettings), because Flux has no settings in annotations, and the reasons of our
/// own conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The reconcile succeeded.
    Succeeded,
    /// A failure without a reason of its own.
    Failed,
    /// The reconcile is in progress.
    Progressing,
    /// The reconcile failed and is retried.
    ProgressingWithRetry,
    /// The object may not use an object that it references.
    AccessDenied,
    /// The object needs a feature that is disabled.
    FeatureGateDisabled,
    /// One of our annotations has an unknown name or an invalid value.
    InvalidSettings,

    /// Automations: the update strategy is unknown.
    InvalidUpdateStrategy,
    /// Automations: the source reference, or the source itself, is invalid.
    InvalidSourceConfiguration,
    /// Automations: the credentials or settings for the repository could not be prepared.
    SourceManagerFailed,
    /// Automations: the repository could not be read or written.
    GitOperationFailed,
    /// Automations: the files could not be updated.
    UpdateFailed,
    /// Automations: the selector of policies is invalid.
    InvalidPolicySelector,
    /// Automations: no marker is without effect. This reason and the next one are not Flux's.
    MarkersResolved,
    /// Automations: markers have no effect, or marked files cannot be read.
    MarkersUnresolved,
    /// Automations, in `Delivery`: the branches are as they should be.
    ///
    /// This reason and the next ones are not Flux's.
    Current,
    /// Automations, in `Delivery`: a branch has commits of others, and is left alone.
    EditedByOthers,
    /// Automations, in `Delivery`: a branch cannot have its name.
    InvalidBranch,
    /// Automations, in `Delivery`: the forge refuses the login, or a permission is missing.
    Forbidden,
    /// Automations, in `Delivery`: a rate limit of the forge applies.
    RateLimited,
    /// Automations, in `Delivery`: the forge does not answer, or not as its API promises.
    ForgeUnavailable,
    /// Automations, in `Delivery`: the forge does not merge a pull request, though it should.
    AutoMergeRefused,
    /// Automations, in events: a pull request was opened.
    PullRequestOpened,
    /// Automations, in events: the branch of a pull request was rebuilt.
    PullRequestRefreshed,
    /// Automations, in events: a pull request was closed.
    PullRequestClosed,
    /// Automations, in events: a pull request was merged.
    PullRequestMerged,
    /// Automations, in `UpdatesWaiting`: a freeze stops them, or a setting of their Namespace is invalid.
    Frozen,
    /// Automations, in `UpdatesWaiting`: a window is closed.
    WindowClosed,
    /// Automations, in `UpdatesWaiting`: the images have changed within the quiet period.
    QuietPeriod,
    /// Automations, in `UpdatesWaiting`: the policies of a release group have different values.
    ReleaseGroupIncomplete,
    /// Automations, in `UpdatesWaiting`: nothing waits.
    NothingWaiting,
    /// Automations, in `RevertHeld`: others took images back.
    TakenBack,
    /// Automations, in `RevertHeld`: no image is held.
    NothingHeld,
    /// Automations, in `CommitsSigned`: the forge signed the last commit.
    SignedByForge,
    /// Automations, in `CommitsSigned`: our own commit was pushed, without a signature of the forge.
    NotSignedByForge,
    /// Automations: the message template uses a field that newer versions of Flux removed.
    RemovedTemplateField,

    /// Repositories: the address of the image is malformed.
    ImageURLInvalid,
    /// Repositories: the registry's credentials are missing or were rejected.
    AuthenticationFailed,
    /// Repositories: the registry could not be read.
    ReadOperationFailed,
    /// Repositories and policies: the stored tags could not be used.
    Failure,
    /// Policies: the referenced repository does not exist or was not scanned yet.
    DependencyNotReady,
    /// Policies: the digest must be polled, but no interval is set.
    IntervalNotConfigured,
    /// Policies: the policy rule is invalid.
    InvalidPolicy,

    /// Policies, in `RegressionHeld`: the tag list has a lower winner than the present tag.
    LowerWinner,
    /// Policies, in `RegressionHeld`: the tag list is empty, and the present tag stays.
    EmptyTagList,
    /// Policies, in `Stale`: the registry does not return the digest of a tag.
    RegistryUnavailable,
    /// Policies, in `Stale`: the registry does not know the manifest of a tag.
    ///
    /// It lists the tag, or listed it once.
    TagNotFound,
    /// Policies, in `Stale`: another policy of the group keeps the image.
    ///
    /// Its digest is unknown, or the release group does not move.
    GroupIncomplete,
}

/// Formats the reason, which is the name of the variant.
impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

/// Returns the schema of a list of conditions.
///
/// The derived schema would lack the limits that an API server checks.
pub(crate) fn list_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "description": "Condition of the object, as last observed.",
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "description": "Time of the last change of the condition's status.",
                    "type": "string",
                    "format": "date-time",
                },
                "message": {
                    "description": "Message for users; may be empty.",
                    "type": "string",
                    "maxLength": 32768,
                },
                "observedGeneration": {
                    "description": "Generation of the object to which the condition applies.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
                "reason": {
                    "description": "Reason of the condition, in one word for programs.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "status": {
                    "description": "Status of the condition.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "type": {
                    "description": "Type of the condition, such as Ready.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                },
            },
        },
    })
}

/// Returns the schema of a point in time.
///
/// The derived schema would have the description of Go's type.
pub(crate) fn time_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}
