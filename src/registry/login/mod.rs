//! Logins at registries.
//!
//! | file | contents |
//! |---|---|
//! | `choice`, `credential` | the login that an object asks for; user name and password, or a token |
//! | `cloud`, `aws`, `azure`, `google` | logins at clouds, for this process or a service account |
//! | `account` | service accounts of a cluster and their tokens |
//! | `context`, `options`, `environment` | the context of one login; endpoints; environment variables |
//! | `network`, `pattern` | HTTP requests to clouds; regular expressions for host names |
//! | `cache` | the credential cache |
//! | `error` | the errors of logins |

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
