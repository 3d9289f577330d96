//! Failed lookups of manifests, and the staleness that follows from them.

use std::time::Duration;

use tagboat_api::Reason;

/// The reason for which a reported digest or choice may be out of date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staleness {
    /// The reason of the condition.
    pub reason: Reason,
    /// The reason as a sentence.
    pub message: String,
}

/// The failure of a lookup of a manifest at its registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupFailure {
    /// The kind of the failure.
    pub kind: LookupFailureKind,
    /// The error as text.
    pub message: String,
    /// The time after which the registry accepts requests again (`Retry-After`).
    pub retry_after: Option<Duration>,
}

/// The kind of a failed lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LookupFailureKind {
    /// The manifest does not exist.
    Missing,
    /// The registry, or its token server, denies access.
    Denied,
    /// The registry did not respond, or could not respond.
    ///
    /// A lookup of any other manifest in it would fail too.
    Unavailable,
    /// The registry gave no usable answer about this manifest.
    Unreadable,
}

impl LookupFailureKind {
    /// Returns the reason in the condition `Stale`.
    pub fn reason(self) -> Reason {
        match self {
            Self::Missing => Reason::TagNotFound,
            Self::Denied => Reason::AuthenticationFailed,
            Self::Unavailable | Self::Unreadable => Reason::RegistryUnavailable,
        }
    }
}

impl LookupFailure {
    /// Returns the staleness that follows from the failure.
    pub fn staleness(&self, reference: &str) -> Staleness {
        let what = match self.kind {
            LookupFailureKind::Missing => "does not exist",
            LookupFailureKind::Denied => "cannot be accessed",
            LookupFailureKind::Unavailable | LookupFailureKind::Unreadable => "could not be looked up",
        };
        let reason = self.kind.reason();
        Staleness { reason, message: format!("the manifest of {reference} {what}: {}", self.message) }
    }
}
