//! The state of a followed digest, and failures of its lookups.

use std::time::Duration;

/// The failure of a lookup; `W` is the caller's type of the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollFailure<W> {
    /// The reason.
    pub reason: W,
    /// The scope of the failure.
    pub scope: FailureScope,
    /// The pause that the registry asks for.
    pub retry_after: Option<Duration>,
}

/// The scope of a failure: which other lookups would fail too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureScope {
    /// The tag: the registry responded, and lookups of other tags may succeed.
    Tag,
    /// The caller: the failure says nothing about the registry for others.
    Caller,
    /// The registry: lookups of all its tags would fail.
    Registry,
}

/// The state of the digest that a subscriber follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestState<S, W> {
    /// The last digest that is valid for the subscriber.
    pub digest: Option<String>,
    /// The reason for which the digest may be stale.
    pub stale: Option<StaleReason<S, W>>,
}

/// Reasons for which a digest may be stale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StaleReason<S, W> {
    /// The last lookup failed.
    LookupFailed(W),
    /// The digest of another member of the group is missing.
    GroupIncomplete(Missing<S>),
}

/// The members of a group whose digests are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing<S> {
    /// One of them, the same each time.
    pub first: S,
    /// The number of further ones.
    pub others: usize,
}

impl<S, W> Default for DigestState<S, W> {
    fn default() -> Self {
        Self { digest: None, stale: None }
    }
}
