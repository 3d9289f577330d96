//! The controller against a real Kubernetes API and real git remotes.

mod crowds;
mod ends;
mod faults;
mod kills;
mod leaders;
mod notifications;
mod pod;
mod runs;
mod scene;
mod secrets;
mod shadow;
mod takeover;
mod triggers;
