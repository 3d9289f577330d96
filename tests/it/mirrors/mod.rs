//! Mirrors: what they weigh after years, what they survive, and what they say of a tree.

mod age;
mod batches;
mod bounds;
mod damage;
mod deadlines;
mod hostile;
mod indexes;
mod memory;
mod outline;
mod place;
mod processes;
mod trees;
