//! Logins at registries.
//!
//! A [`Login`] is a [`Credential`] that is known, or a [`CloudLogin`], which requests one from a cloud: for this
//! process, or for a service account of a cluster ([`account`]). The clouds are [`aws`], [`azure`] and [`google`];
//! each logs in within a [`context`].

mod account;
mod aws;
mod azure;
mod cache;
mod choice;
mod cloud;
mod context;
mod credential;
mod environment;
mod error;
mod google;
mod network;
mod options;
mod pattern;

pub use crate::secrets::Fingerprint;
pub use account::{Accounts, CloudAccount, CloudIdentity};
pub use cache::CredentialCacheOptions;
pub use choice::{CloudProvider, LoginChoice};
pub(super) use cloud::Login;
pub use cloud::{CloudLogin, Clouds};
pub use credential::Credential;
pub use environment::CloudEnvironment;
pub use error::{AccountError, LoginError};
pub use options::{CloudEndpoints, CloudOptions};
