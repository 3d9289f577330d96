//! The reconcile engine: all parts of a controller that depend on no kind.
//!
//! | file | contents |
//! |---|---|
//! | `lifecycle` | one controller from its start to its end: [`Engine`], with the options that all controllers have |
//! | `lease`, `preflight` | leader election; requirements that are checked before a controller starts |
//! | `context`, `kind` | the parts that the kinds of a controller share; one kind with its cache and queue |
//! | `watch`, `refusals`, `predicates` | watches with their error reports; refusals of watches that may fail; the changes that make an object due or cancel its reconcile |
//! | `queue`, `dispatcher` | the work queue with debouncing, backoff and rate limit; the start of reconciles |
//! | `reconcile_steps`, `in_flight` | the steps of a reconcile that are the same for all kinds; its guard and its cancellation |
//! | `run_ids`, `traces` | ids of reconciles for the log; the limit of trace events |
//! | `error` | the errors that end a controller |

pub(super) mod context;
pub(super) mod dispatcher;
mod error;
pub(super) mod in_flight;
pub(super) mod kind;
mod lease;
mod lifecycle;
pub(super) mod predicates;
mod preflight;
pub(super) mod queue;
pub(super) mod reconcile_steps;
pub(super) mod refusals;
mod run_ids;
mod traces;
mod watch;

pub(super) use lifecycle::{Engine, WatchOnDemand};
pub(super) use preflight::{Access, Requirement, wait_until_ready};
pub(crate) use preflight::{forbidden, is_permitted};

pub use error::ControllerError;
pub use lease::Election;
pub use lifecycle::ControllerOptions;
