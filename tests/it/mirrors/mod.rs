//! Mirrors: size and maintenance, corruption, deadlines, and the trees that they give.

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
