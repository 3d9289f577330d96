//! The controller against a real Kubernetes API and real git remotes.

mod crowds;
mod ends;
mod faults;
mod leaders;
mod notifications;
mod runs;
mod scene;
mod takeover;
mod triggers;
