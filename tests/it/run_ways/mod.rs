//! `tagboat run` on real servers: each way in, each thing that can be wrong, and what comes of it.

mod checkout;
mod commits;
mod login;
mod messages;
mod output;
mod refusals;
pub(crate) mod scene;
mod shared_state;
mod short_circuit;
mod trees;
mod watch;
