//! Registries: which tags a repository has, and what stands behind them.
//!
//! [`Registries`] is the one way there. An [`Access`] says who asks for which repository; from it come a [`Repository`]
//! to be asked, and listings that several objects share.

mod answer;
mod budget;
mod call;
pub mod challenge;
mod client;
mod deadline;
pub mod docker_config;
mod echo;
mod error;
pub mod error_document;
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
mod redirect;
mod refusal;
mod registries;
mod repository;
mod rounds;
mod server;
mod session;
pub mod store;
pub mod tls;
mod token;
mod traffic;
mod transport;
mod transports;
mod way;

pub use budget::BudgetOptions;
pub use docker_config::{DockerConfig, DockerConfigError};
pub use error::RegistryError;
pub use listing::{ListOptions, Listed, Listing, left_out_in_words};
pub use login::{
    AccountError, Accounts, CloudAccount, CloudEndpoints, CloudEnvironment, CloudIdentity, CloudLogin,
    CloudOptions, CloudProvider, Clouds, Credential, Fingerprint, KeepOptions, Login, LoginChoice,
    LoginError,
};
pub use manifest::ImageFacts;
pub use options::RegistryOptions;
pub use refusal::Refusal;
pub use registries::Registries;
pub use repository::{Access, Repository};
pub use tls::{ClientIdentity, Tls, TlsError};
pub use way::{Limits, Way};

pub use crate::http::ProxyChoice;
