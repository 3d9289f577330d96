//! The kinds that are read, and their required fields.

use serde_json::{Value, json};
use tagboat_api::{DEPRECATED_VERSION, Kind, VERSION};

/// A kind that is read from manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ManifestKind {
    /// A Flux kind.
    Flux(Kind),
    Secret,
    ServiceAccount,
    Namespace,
}

/// A field that a cluster requires and that is not needed here.
///
/// It has a path and a default.
pub(super) type Placeholder = (&'static str, fn() -> Value);

impl ManifestKind {
    /// Returns the kind of a name in an API group; the core group is empty.
    pub(super) fn of(group: &str, name: &str) -> Option<Self> {
        match (group, name) {
            ("", "Secret") => Some(Self::Secret),
            ("", "ServiceAccount") => Some(Self::ServiceAccount),
            ("", "Namespace") => Some(Self::Namespace),
            _ => Kind::of(group, name).map(Self::Flux),
        }
    }

    /// Returns the name of the kind.
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

    /// Returns the fields that may be absent, outer ones first.
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
