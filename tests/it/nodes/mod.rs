//! Nodes of a real API server: evictions under disruption budgets.

mod eviction;
