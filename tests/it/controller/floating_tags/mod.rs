//! Tags that float, followed by their digests: the acceptance tests of the poller, each against a real API server, the
//! real registry (behind a front that counts requests and does harm on demand), and a real git server.

pub(super) mod fleet;
mod following;
mod groups;
mod intervals;
mod outages;
mod responses;
