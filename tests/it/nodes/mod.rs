//! Nodes and their pools on a real API server.
//!
//! Tests of the definitions, of evictions, and of the agent on simulated machines.

mod agent;
mod definition;
mod eviction;
mod machine;
