//! Tagboat tows image tags into git.

pub mod backoff;
pub mod cancel;
pub mod cli;
pub mod controller;
pub mod directory;
pub mod error;
pub mod git;
pub mod lint;
pub mod message;
pub mod metrics;
pub mod net;
pub mod objects;
pub mod permissions;
pub mod policy;
pub mod polling;
pub mod printable;
pub mod reconcile;
pub mod reference;
pub mod registry;
pub mod rollout;
pub mod secrets;
pub mod telemetry;
pub mod tenancy;
pub mod update;
pub mod web;
pub mod yaml;
