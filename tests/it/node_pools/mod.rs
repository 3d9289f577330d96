//! Pools and their nodes, as users see them: `tagboat nodes`.
//! The tests write the statuses and the keys of nodes, as the controller and the agents would.

mod errors;
mod output;
mod scene;
mod wait;
