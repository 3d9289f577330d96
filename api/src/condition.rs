//! Conditions, the list in a status that says how an object is doing, and the reasons that stand in them.

use std::fmt;

use schemars::{Schema, SchemaGenerator, json_schema};

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// What a condition or an event says in one word, for programs.
///
/// Users alert on these names, so none ever changes. All are Flux's but
/// [`InvalidSettings`](Self::InvalidSettings), for Flux has no settings in annotations, and those of the conditions that
/// Flux has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// All went well.
    Succeeded,
    /// Something failed that has no reason of its own.
    Failed,
    /// Work is going on.
    Progressing,
    /// Work failed and is tried again.
    ProgressingWithRetry,
    /// The object may not use what it refers to.
    AccessDenied,
    /// The object needs a feature that is switched off.
    FeatureGateDisabled,
    /// An annotation of ours has a name or a value that does not exist.
    InvalidSettings,

    /// Automations: there is no such update strategy.
    InvalidUpdateStrategy,
    /// Automations: the reference to the source, or the source itself, makes no sense.
    InvalidSourceConfiguration,
    /// Automations: what is needed to reach the repository could not be put together.
    SourceManagerFailed,
    /// Automations: the repository could not be read or written.
    GitOperationFailed,
    /// Automations: the files could not be updated.
    UpdateFailed,
    /// Automations: the selector of policies cannot be understood.
    InvalidPolicySelector,
    /// Automations: no marker is without effect. This one and the next are not Flux's.
    MarkersResolved,
    /// Automations: markers have no effect, or marked files cannot be read.
    MarkersUnresolved,
    /// Automations: the message template names a field that newer versions of Flux do not have.
    RemovedTemplateField,

    /// Repositories: the address of the image is malformed.
    ImageURLInvalid,
    /// Repositories: there are no credentials for the registry, or it does not take them.
    AuthenticationFailed,
    /// Repositories: the registry could not be read.
    ReadOperationFailed,
    /// Repositories and policies: the stored tags could not be used.
    Failure,
    /// Policies: the repository that is referred to is not there or not scanned yet.
    DependencyNotReady,
    /// Policies: the digest is to be looked up again, but it is not said how often.
    IntervalNotConfigured,
    /// Policies: the rule of choice cannot be understood.
    InvalidPolicy,

    /// Policies, in `RegressionHeld`: the list of tags has a lower winner than the present one.
    LowerWinner,
    /// Policies, in `RegressionHeld`: the list of tags is empty, and the present tag stays.
    EmptyTagList,
    /// Policies, in `Stale`: the registry does not say which digest a tag has.
    RegistryUnavailable,
    /// Policies, in `Stale`: the registry lists a tag, or once had it, and does not know its manifest.
    TagNotFound,
    /// Policies, in `Stale`: the digest of another policy of the group is not known.
    GroupIncomplete,
}

/// Prints the name of the variant, which is the reason's name as well.
impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

/// The schema of a list of conditions; the type itself comes without the limits that an API server checks.
pub(crate) fn list_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "description": "One aspect of the object's state, as last observed.",
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "description": "When the status of this condition last became another.",
                    "type": "string",
                    "format": "date-time",
                },
                "message": {
                    "description": "What happened, for people. May be empty.",
                    "type": "string",
                    "maxLength": 32768,
                },
                "observedGeneration": {
                    "description": "Generation of the object that the condition speaks of.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
                "reason": {
                    "description": "What happened, in one word for programs.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "status": {
                    "description": "Whether the condition holds.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "type": {
                    "description": "Which aspect the condition is about, such as Ready.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                },
            },
        },
    })
}

/// The schema of a point in time; the type's own would bring a description of Go's type along.
pub(crate) fn time_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}
