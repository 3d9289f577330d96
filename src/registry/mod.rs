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
//! | `challenge`, `link`, `error_response`, `response` | headers and errors, parsed |
//! | `redact` | redaction of our secrets in errors |
//! | `error` | the errors of registries, their retry delays, and whether a login was denied |
//! | `choice` | credentials that are known, or requested from a cloud |
//! | `docker_config`, `glob` | logins from Secrets and the repositories that they match |
//! | `store` | the tag store, in memory and in one file per object, with the time at which each tag was first seen |

pub mod challenge;
mod choice;
mod coalesce;
pub mod docker_config;
mod error;
pub mod error_document;
mod error_response;
mod gathered_tags;
mod glob;
mod json;
pub mod link;
mod listing;
mod manifest;
pub mod manifest_document;
mod options;
pub mod page;
mod redact;
mod registries;
mod repository;
mod response;
mod server;
mod session;
pub mod store;
mod token;

pub use choice::LoginChoice;
pub use docker_config::{DockerConfig, DockerConfigError};
pub use error::{INSECURE_ADVICE, RegistryError};
pub use error_response::ErrorResponse;
pub use listing::{ListOptions, Listed, Listing, left_out_warning};
pub use manifest::ImageFacts;
pub use options::RegistryOptions;
pub use registries::Registries;
pub use repository::{Repository, RepositoryAuth};

pub use crate::cloud::{
    AccountError, Accounts, CloudAccount, CloudEndpoints, CloudEnvironment, CloudIdentity, CloudLogin,
    CloudOptions, CloudProvider, Clouds, Credential, CredentialCacheOptions, LoginError,
};
pub use crate::net::ProxyChoice;
pub use crate::net::http::{
    ClientIdentity, HttpError, RateLimitOptions, Route, Timeouts, Tls, TlsError, tls,
};
pub use crate::secrets::Fingerprint;
