//! Registries: which tags a repository has, and what stands behind them.
//!
//! [`Registries`] is the one way there. An [`Access`] says who asks for which repository; from it come a [`Repository`]
//! to be asked, and listings that several objects share.

mod answer;
pub mod budget;
mod call;
pub mod challenge;
mod client;
mod deadline;
pub mod docker_config;
mod echo;
mod error;
mod glob;
pub mod link;
mod listing;
mod login;
mod manifest;
mod redirect;
mod refusal;
mod registries;
mod repository;
mod rounds;
mod server;
pub mod store;
pub mod tls;
mod token;
mod way;

pub use budget::BudgetOptions;
pub use docker_config::{DockerConfig, DockerConfigError};
pub use error::RegistryError;
pub use listing::{ListOptions, Listed, Listing};
pub use login::{
    AccountError, Accounts, CloudAccount, CloudEndpoints, CloudEnvironment, CloudIdentity, CloudLogin,
    CloudOptions, CloudProvider, Clouds, Credential, Fingerprint, KeepOptions, Login, LoginChoice,
    LoginError,
};
pub use manifest::ImageFacts;
pub use refusal::Refusal;
pub use registries::{Registries, RegistryOptions};
pub use repository::{Access, Repository};
pub use tls::{ClientIdentity, Tls, TlsError};
pub use way::{Limits, Way};

pub use crate::http::ProxyChoice;
