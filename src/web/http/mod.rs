//! The parts of the status server that depend on no route.
//!
//! | module | contents |
//! |---|---|
//! | `connections`, `write_timeout` | the limits of connections, of requests and of slow clients |
//! | `check`, `hosts` | the checks of every request, and the headers of every response |
//! | `query` | the parameters of a request |
//! | `entity_tag` | entity tags, and responses that may be unchanged |
//! | `json` | JSON that is safe on a terminal |
//! | `problem` | errors, as in RFC 9457 |

mod check;
mod connections;
mod entity_tag;
mod hosts;
mod json;
mod problem;
mod query;
mod write_timeout;

pub(super) use check::check;
pub(super) use connections::serve;
pub(super) use entity_tag::{EntityTag, respond};
pub use hosts::Hosts;
pub(super) use json::{JSON, json};
pub(super) use problem::{PROBLEM, Problem};
pub(super) use query::Query;
