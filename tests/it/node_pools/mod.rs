//! Pools and their nodes, as users see them: `tagboat nodes` and the REST API.
//! The page is tested in `page`.
//! The tests write the statuses and the keys of nodes, as the controller and the agents would.

mod errors;
mod output;
pub(crate) mod rest;
mod scene;
mod wait;
