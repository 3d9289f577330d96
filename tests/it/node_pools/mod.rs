//! Pools and their nodes, as users see them: `tagboat nodes` and the REST API.
//! The tests write the statuses and the keys of nodes, as the controller and the agents would.

mod errors;
mod output;
mod rest;
mod scene;
mod wait;
