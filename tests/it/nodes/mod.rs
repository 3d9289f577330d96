//! Nodes and their pools on a real API server.
//!
//! Tests of the definitions, of evictions, of the agent on simulated machines, and of the controller.

mod agent;
mod agent_access;
mod controller;
mod definition;
mod eviction;
mod machine;
