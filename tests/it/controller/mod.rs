//! The controller against a real Kubernetes API and real git remotes.

mod addresses;
mod clusters;
mod crowds;
mod ends;
mod faults;
mod kills;
mod leaders;
mod markers;
mod notifications;
mod planted;
mod pod;
mod reflection;
mod runs;
mod scene;
mod secrets;
mod shadow;
mod takeover;
mod tenants;
mod triggers;
