//! Mirrors: what they weigh after years, what they survive, and what they say of a tree.

mod batches;
mod corruption;
mod deadlines;
mod hostile_objects;
mod local_remote;
mod maintenance;
mod marker_index;
mod memory;
mod plan_summary;
mod processes;
mod size_limits;
mod trees;
