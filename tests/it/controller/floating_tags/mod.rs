//! Floating tags, followed by their digests.
//!
//! These are the acceptance tests of the poller, each on a real API server, the real registry (behind a front
//! that counts requests and injects faults), and a real git server.

pub(super) mod fleet;
mod following;
mod groups;
mod intervals;
mod outages;
mod responses;
