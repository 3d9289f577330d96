//! Polls the digests of floating tags.
//!
//! A [`Schedule`] is a value without a clock and without a registry: subscribers follow tags, it returns the tags
//! that are due, and records the results of lookups. Subscribers of the same tag share one lookup, and groups get
//! their digests together or not at all. Each registry has a circuit breaker. [`interval`] parses
//! `UPDATE_POLLING_INTERVAL`, and computes the waits between two lookups.
//!
//! | module | contents |
//! |---|---|
//! | `schedule` | the lookups that are due, by tag and group |
//! | `digest_state` | the state of a followed digest, and failures of its lookups |
//! | `interval` | `UPDATE_POLLING_INTERVAL`, and the waits between lookups with jitter and backoff |
//! | `circuit_breaker` | a circuit breaker per registry |

mod circuit_breaker;
mod digest_state;
pub mod interval;
mod schedule;

pub use digest_state::{DigestState, FailureScope, Missing, PollFailure, StaleReason};
pub use interval::PollingInterval;
pub use schedule::{Group, InRegistry, Schedule, Subscription};
