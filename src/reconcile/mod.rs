//! Reconciles one object, once. The same code serves the cluster and the command line.
//!
//! | files | contents |
//! |---|---|
//! | `automation`, `policy`, `repository` | one kind each; `policy` imports nothing of `automation`, and `repository` nothing of either |
//! | `run`, `action`, `status`, `conditions`, `times` | one reconcile: its status and event, its requeue; statuses and conditions; bounds of times |
//! | `branch_references` | whether commits are added to an existing push branch |
//! | `cross_namespace` | whether references to other namespaces are followed |
//! | `lookup` | failed lookups of the digests of images |
//! | `registries`, `tags` | the registries of this process, and the tags that were found |

pub mod action;
pub mod automation;
pub mod branch_references;
pub mod conditions;
pub mod cross_namespace;
pub mod lookup;
pub mod policy;
pub mod registries;
pub mod repository;
pub mod run;
pub mod status;
pub mod tags;
pub mod times;
