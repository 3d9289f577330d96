//! The controller with real agents on simulated machines.
//!
//! The agents run in the pods of the DaemonSet of `deploy/nodes`, with its role and its policy.

mod blocked_drains;
mod cancellations;
mod conflicts;
mod killed_releases;
mod kills;
mod lost_writes;
mod races;
mod rollouts;
mod scene;
mod single_node;
mod undecided_pools;
