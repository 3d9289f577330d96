//! Assessments of workloads while real controllers roll them out.
//!
//! Each version of an object that the watch returns is assessed, with the memory of the version before, as
//! [`observed`] shows. So a test sees a state that would only last for a moment.

mod daemon_set;
mod deployment;
mod deployment_failures;
mod jobs;
mod manifests;
mod observed;
mod other_kinds;
mod pods;
mod stateful_set;
