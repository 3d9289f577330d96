//! Requests over HTTP: rate limiters, retries, bounded responses, redaction of the secrets that were sent.
//!
//! | files | contents |
//! |---|---|
//! | `client`, `transport` | retries, redirects and the state that all routes share; connections of one route |
//! | `rate_limit`, `pauses` | the rate limiter of one server over one route, fair by namespace; `Retry-After` of one namespace and login |
//! | `request`, `response`, `redirect`, `deadline` | a request; its response; the targets of redirects; its deadline |
//! | `route`, `tls`, `options` | the route and timeouts; certificates; the options of requests |
//! | `headers`, `redact`, `text` | header values that hold secrets; redaction of our secrets in responses; texts of servers in messages |
//! | `error` | the errors of requests |

mod client;
mod deadline;
mod error;
mod headers;
mod options;
mod pauses;
mod rate_limit;
mod redact;
mod redirect;
mod request;
mod response;
mod route;
mod text;
pub mod tls;
mod transport;

pub(crate) use client::{Client, ClientState};
pub(crate) use deadline::{Deadline, WaitClock};
pub use error::HttpError;
pub(crate) use headers::{basic, bearer, secret_header, with_scheme};
pub use options::HttpOptions;
pub(crate) use pauses::Requester;
pub use rate_limit::RateLimitOptions;
pub(crate) use redact::{add_header, add_password};
pub(crate) use redirect::is_internal;
pub(crate) use request::{Body, Request, WorkingMemory};
pub(crate) use response::Response;
pub use route::{Route, Timeouts};
#[cfg(test)]
pub(crate) use text::MAX_TEXT;
pub(crate) use text::{origin, single_line, status_text, truncate};
pub use tls::{ClientIdentity, Tls, TlsError};
