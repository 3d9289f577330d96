//! What is known of the digest of a tag.

use std::time::Duration;

/// Why a look at a tag brought nothing; `W` says why in the words of whoever looked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure<W> {
    /// Why.
    pub why: W,
    /// Whose failure it is.
    pub concern: Concern,
    /// How long the registry wants to be left alone.
    pub retry_after: Option<Duration>,
}

/// Whose failure it is that a look brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concern {
    /// The tag's: the registry answered, and other tags may fare better.
    Tag,
    /// That of whoever looked: whether the registry answers to others is not known by that.
    Looker,
    /// The registry's: it would be the same with every tag.
    Registry,
}

/// What is known of the digest that a subscriber follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known<S, W> {
    /// The last digest that counts for the subscriber.
    pub digest: Option<String>,
    /// Why that may be out of date.
    pub trouble: Option<Trouble<S, W>>,
}

/// Why a digest may be out of date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble<S, W> {
    /// The last look failed.
    Failed(W),
    /// The group has no digest of somebody else yet.
    GroupIncomplete(Missing<S>),
}

/// The members of a group whose digests are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing<S> {
    /// One of them, the same each time.
    pub first: S,
    /// How many there are besides.
    pub others: usize,
}

impl<S, W> Default for Known<S, W> {
    fn default() -> Self {
        Self { digest: None, trouble: None }
    }
}
