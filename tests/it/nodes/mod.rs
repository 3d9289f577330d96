//! Nodes and their pools on a real API server: definitions and evictions.

mod definition;
mod eviction;
