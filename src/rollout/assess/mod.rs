//! The rollout of one object, by the rule of its kind.
//!
//! Each file has a function `assess` for an object **whose spec has the wanted image**, which the caller has compared.
//! A rule that needs it takes the [`PreviousState`] of the same image, or `was_complete` for
//! [`PreviousState::Complete`]. A finished rollout stays complete while pods come and go. A CronJob has no rule: its
//! template has the image, and no rollout follows.
//!
//! | files | kind |
//! |---|---|
//! | `deployment`, `stateful_set`, `daemon_set`, `job` | kinds of Kubernetes |
//! | `argo_rollout`, `canary` | Argo Rollouts, and targets of Flagger |
//! | `node_pool` | NodePools |
//! | `kstatus` | any other kind |
//! | `assessment` | the result |

pub mod argo_rollout;
mod assessment;
pub mod canary;
pub mod daemon_set;
pub mod deployment;
pub mod job;
pub mod kstatus;
pub mod node_pool;
pub mod stateful_set;

pub use assessment::{Assessment, Counts, Failure, PreviousState, Progress};

#[cfg(test)]
mod testing;
