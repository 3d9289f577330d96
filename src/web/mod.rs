//! Serves health checks, metrics, and the status of deployments over HTTP.
//!
//! | module | contents |
//! |---|---|
//! | `listen` | listening at addresses in Go's form |
//! | `health`, `metrics` | health checks; metrics for Prometheus |
//! | `status` | the server of `--status-addr`, which has the REST API and the page |
//! | `push` | the status push: sends the status of deployments to a server of the user |
//! | [`store`] | deployments and clusters as last observed, and the watch that observes them |
//! | `selection` | the filters of a request → the deployments that match |
//! | `api` | the REST API, with its description in OpenAPI |
//! | `page` | the web page |
//! | `form` | the forms of a document |
//! | `http` | the parts of the server that depend on no route: limits, checks, entity tags, problems |
//!
//! Health checks and metrics are for the cluster, and have no limits. The status is for people and their programs, so
//! its server limits connections and time, and accepts no request for a host that it does not know. The push is the
//! reverse: its server is another's, and may do anything.

mod api;
mod form;
mod health;
mod http;
mod listen;
mod metrics;
mod page;
mod push;
mod selection;
mod status;
pub mod store;

pub use api::openapi;
pub use form::{Form, InvalidForm};
pub use health::serve_health;
pub use http::Hosts;
pub use listen::listen;
pub use metrics::serve_metrics;
pub use push::{Endpoint, InvalidEndpoint, PushOptions, TokenError, TokenFile, push};
pub use status::serve_status;
