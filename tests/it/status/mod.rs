//! Tests of `tagboat status` on a real API server.
//! The tests write the statuses, as the controller would.

mod errors;
mod options;
mod output;
pub(crate) mod scene;
mod wait;
mod watch;
