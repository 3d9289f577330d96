//! The controllers: each reconciles kinds of a cluster's objects under its own Lease.
//!
//! | module | contents |
//! |---|---|
//! | `engine` | all that depends on no kind: lease, watch, queue, dispatcher, preflight, steps of a reconcile |
//! | `automation` | the automation controller: ImageUpdateAutomation |
//! | `rollout` | its second kind, DeploymentStatus: reports whether committed images run |
//! | `reflector` | the reflector controller, which composes `repository` and `policy` |
//! | `repository`, `policy` | ImageRepository; ImagePolicy, with the lookups of digests |
//! | `nodes` | the nodes controller: NodePool, with the drains of nodes |
//! | `process` | the list of controllers that a process runs |
//!
//! A kind has `KindOptions`, a `Reconciler` with the state that its reconciles share, and a function that calls the
//! steps of `engine::reconcile_steps` for one object. A finalizer is optional, and so is `Reconciler::related_changes`.

pub mod automation;
mod engine;
pub mod nodes;
mod policy;
mod process;
pub mod reflector;
mod repository;
mod rollout;

pub use crate::permissions::lease_name;
pub(crate) use engine::forbidden;
pub use engine::{ControllerError, ControllerOptions, Election};
pub use process::{Controller, run};
