//! Tagboat tows image tags into git.

pub mod address;
pub mod backoff;
pub mod cli;
pub mod controller;
pub mod directory;
pub mod failing;
pub mod git;
pub mod http;
pub mod lint;
pub mod message;
pub mod metrics;
pub mod objects;
pub mod permissions;
pub mod policy;
pub mod polling;
pub mod printable;
pub mod reconcile;
pub mod reference;
pub mod registry;
pub mod secret;
pub mod sentence;
pub mod telemetry;
pub mod tenancy;
pub mod update;
pub mod web;
pub mod yaml;
