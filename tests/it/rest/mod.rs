//! The REST API of `--status-addr`, and the status push of `--status-endpoint`.
//!
//! Some tests run the program on the real Kubernetes API; others run its server on stores that the test fills. Each
//! response of both is validated with `docs/openapi.json`.

pub(crate) mod answer;
mod documents;
mod events;
mod limits;
mod openapi;
mod outages;
mod push;
mod refusals;
mod scene;
mod schema;
pub(crate) mod server;
mod sink;
pub(crate) mod status;
