//! The kinds that are read, and what each is known by.

use serde_json::{Value, json};
use tagboat_api::{DEPRECATED_VERSION, Kind, VERSION};

/// A kind that is read from manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ManifestKind {
    /// One of Flux's.
    Flux(Kind),
    Secret,
    ServiceAccount,
    Namespace,
}

/// A field on which a cluster would insist and which is not needed here: its path, and what is put in its place.
pub(super) type Placeholder = (&'static str, fn() -> Value);

impl ManifestKind {
    /// The kind of that name in that API group; that of Kubernetes itself has no name.
    pub(super) fn of(group: &str, name: &str) -> Option<Self> {
        match (group, name) {
            ("", "Secret") => Some(Self::Secret),
            ("", "ServiceAccount") => Some(Self::ServiceAccount),
            ("", "Namespace") => Some(Self::Namespace),
            _ => Kind::of(group, name).map(Self::Flux),
        }
    }

    /// The name of the kind.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Flux(kind) => kind.name(),
            Self::Secret => "Secret",
            Self::ServiceAccount => "ServiceAccount",
            Self::Namespace => "Namespace",
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
            Self::Flux(Kind::Automation) => &[
                ("spec", || json!({})),
                ("spec.sourceRef", || json!({"kind": "GitRepository", "name": ""})),
                ("spec.interval", || json!("0s")),
            ],
            Self::Flux(Kind::Policy) => &[
                ("spec", || json!({})),
                ("spec.imageRepositoryRef", || json!({"name": ""})),
                ("spec.policy", || json!({})),
            ],
            _ => &[],
        }
    }
}
