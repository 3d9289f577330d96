//! Nodes and their pools on a real API server.
//!
//! Tests of the definitions, of evictions, of the agent on simulated machines, of the controller, and of both together.

mod agent;
pub(crate) mod agent_access;
mod controller;
mod definition;
mod end_to_end;
mod eviction;
pub(crate) mod machine;
