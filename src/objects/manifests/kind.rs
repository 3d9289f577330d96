//! The kinds that are read, and what each is known by.

use serde_json::{Value, json};
use tagboat_api::{DEPRECATED_VERSION, IMAGE_GROUP, SOURCE_GROUP, VERSION};

/// A kind that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Automation,
    Policy,
    Repository,
    GitRepository,
    Secret,
    ServiceAccount,
    Namespace,
}

/// A field on which a cluster would insist and which is not needed here: its path, and what is put in its place.
pub(super) type Placeholder = (&'static str, fn() -> Value);

impl Kind {
    const ALL: [Self; 7] = [
        Self::Automation,
        Self::Policy,
        Self::Repository,
        Self::GitRepository,
        Self::Secret,
        Self::ServiceAccount,
        Self::Namespace,
    ];

    /// The kind of that name in that group.
    pub(super) fn of(group: &str, name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.group() == group && kind.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Automation => "ImageUpdateAutomation",
            Self::Policy => "ImagePolicy",
            Self::Repository => "ImageRepository",
            Self::GitRepository => "GitRepository",
            Self::Secret => "Secret",
            Self::ServiceAccount => "ServiceAccount",
            Self::Namespace => "Namespace",
        }
    }

    /// The API group; that of Kubernetes itself has no name.
    pub(super) fn group(self) -> &'static str {
        match self {
            Self::Automation | Self::Policy | Self::Repository => IMAGE_GROUP,
            Self::GitRepository => SOURCE_GROUP,
            Self::Secret | Self::ServiceAccount | Self::Namespace => "",
        }
    }

    pub(super) fn versions(self) -> &'static [&'static str] {
        match self {
            Self::Secret | Self::ServiceAccount | Self::Namespace => &["v1"],
            _ => &[VERSION, DEPRECATED_VERSION],
        }
    }

    /// The fields that may be absent, outer ones first.
    pub(super) fn placeholders(self) -> &'static [Placeholder] {
        match self {
            Self::Automation => &[
                ("spec", || json!({})),
                ("spec.sourceRef", || json!({"kind": "GitRepository", "name": ""})),
                ("spec.interval", || json!("0s")),
            ],
            Self::Policy => &[
                ("spec", || json!({})),
                ("spec.imageRepositoryRef", || json!({"name": ""})),
                ("spec.policy", || json!({})),
            ],
            Self::Repository
            | Self::GitRepository
            | Self::Secret
            | Self::ServiceAccount
            | Self::Namespace => &[],
        }
    }
}
