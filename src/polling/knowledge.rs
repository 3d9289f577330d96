//! The state of a followed digest, and failures of its lookups.

use std::time::Duration;

/// The failure of a lookup; `W` is the caller's type of the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure<W> {
    /// The reason.
    pub why: W,
    /// The scope of the failure.
    pub concern: Concern,
    /// The pause that the registry asks for.
    pub retry_after: Option<Duration>,
}

/// The scope of a failure: which other lookups would fail too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concern {
    /// The tag: the registry responded, and lookups of other tags may succeed.
    Tag,
    /// The caller: the failure says nothing about the registry for others.
    Looker,
    /// The registry: lookups of all its tags would fail.
    Registry,
}

/// The state of the digest that a subscriber follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known<S, W> {
    /// The last digest that is valid for the subscriber.
    pub digest: Option<String>,
    /// The reason for which the digest may be stale.
    pub trouble: Option<Trouble<S, W>>,
}

/// Reasons for which a digest may be stale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble<S, W> {
    /// The last lookup failed.
    Failed(W),
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

impl<S, W> Default for Known<S, W> {
    fn default() -> Self {
        Self { digest: None, trouble: None }
    }
}
