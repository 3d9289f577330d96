//! Reconciles one object, once. The same code serves the cluster and the command line.
//!
//! | files | contents |
//! |---|---|
//! | `automation`, `policy`, `repository` | one kind each; `policy` imports nothing of `automation`, and `repository` nothing of either |
//! | `conditions`, `status`, `course`, `times` | conditions and statuses; the course of a reconcile of a repository or policy; limits of times |
//! | `cross_namespace` | whether references to other namespaces are followed |
//! | `lookup` | failed lookups of the digests of images |
//! | `registries`, `tags` | the registries of this process, and the tags that were found |

pub mod automation;
pub mod conditions;
pub mod course;
pub mod cross_namespace;
pub mod lookup;
pub mod policy;
pub mod registries;
pub mod repository;
pub mod status;
pub mod tags;
pub mod times;
