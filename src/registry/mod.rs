//! Registries: the tags of a repository, and the manifests behind them.
//!
//! [`Registries`] is the entry. A [`RepositoryAuth`] names a repository and its login; from it come a [`Repository`] for
//! requests, and listings that several objects share.
//!
//! | files | contents |
//! |---|---|
//! | `registries`, `options` | the entry point: state that objects share; the options of requests |
//! | `coalesce` | request coalescing, with a timeout per caller |
//! | `repository`, `session`, `server`, `token` | authenticated requests to a repository; state of one requester; probes with `GET /v2/`, shared by all; bearer tokens |
//! | `listing`, `gathered_tags`, `manifest` | all tags, page by page; the manifest of one |
//! | `page`, `manifest_document`, `error_document`, `json` | documents of servers, of which a bounded part is kept |
//! | `client`, `transport` | retries, redirects and the state that all routes share; connections of one route |
//! | `rate_limit`, `pauses` | the rate limiter of one server over one route, fair by namespace; `Retry-After` of one namespace and login |
//! | `request`, `response`, `redirect`, `deadline`, `route` | a request; its response; the targets of redirects; its deadline; its route and timeouts |
//! | `challenge`, `link`, `error_response`, `headers` | headers and errors, parsed; header values that hold secrets |
//! | `redact` | redaction of our secrets in responses |
//! | `error` | the errors of registries, their retry delays, and whether a login was denied |
//! | `login` | credentials that are known, or requested from a cloud (`aws`, `azure`, `google`) for this process or a service account; `cache` is the credential cache |
//! | `docker_config`, `glob`, `tls` | logins from Secrets and the repositories that they match; certificates |
//! | `store` | the tag store, in memory and in one file per object, with the time at which each tag was first seen |

pub mod challenge;
mod client;
mod coalesce;
mod deadline;
pub mod docker_config;
mod error;
pub mod error_document;
mod error_response;
mod gathered_tags;
mod glob;
mod headers;
mod json;
pub mod link;
mod listing;
mod login;
mod manifest;
pub mod manifest_document;
mod options;
pub mod page;
mod pauses;
mod rate_limit;
mod redact;
mod redirect;
mod registries;
mod repository;
mod request;
mod response;
mod route;
mod server;
mod session;
pub mod store;
pub mod tls;
mod token;
mod transport;

pub use docker_config::{DockerConfig, DockerConfigError};
pub use error::RegistryError;
pub use error_response::ErrorResponse;
pub use listing::{ListOptions, Listed, Listing, left_out_warning};
pub use login::{
    AccountError, Accounts, CloudAccount, CloudEndpoints, CloudEnvironment, CloudIdentity, CloudLogin,
    CloudOptions, CloudProvider, Clouds, Credential, CredentialCacheOptions, Fingerprint, LoginChoice,
    LoginError,
};
pub use manifest::ImageFacts;
pub use options::RegistryOptions;
pub use rate_limit::RateLimitOptions;
pub use registries::Registries;
pub use repository::{Repository, RepositoryAuth};
pub use route::{Route, Timeouts};
pub use tls::{ClientIdentity, Tls, TlsError};

pub use crate::net::ProxyChoice;
