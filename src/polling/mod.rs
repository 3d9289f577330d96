//! Polls the digests of floating tags.
//!
//! A [`Schedule`] is a value without a clock and without a registry: subscribers follow tags, it returns the tags
//! that are due, and records the results of lookups. Subscribers of the same tag share one lookup, and groups get
//! their digests together or not at all. Each registry has a circuit breaker. [`interval`] parses
//! `UPDATE_POLLING_INTERVAL`, and computes the waits between two lookups.

mod circuit_breaker;
mod digest_state;
pub mod interval;
mod schedule;

pub use digest_state::{DigestState, FailureScope, Missing, PollFailure, StaleReason};
pub use interval::PollingInterval;
pub use schedule::{Group, InRegistry, Schedule, Subscription};
