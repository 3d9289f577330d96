//! Who we are at a registry.
//!
//! Behind [`Login`] stand a [`Credential`] that somebody has written down, and a [`CloudLogin`], which asks a cloud for
//! one: for this process, or for a service account of a cluster ([`account`]). The cloud's own chapters are [`aws`],
//! [`azure`] and [`google`].

mod account;
mod aws;
mod azure;
mod cloud;
mod credential;
mod endpoints;
mod environment;
mod error;
mod fingerprint;
mod google;
mod kept;
mod network;
mod pattern;

use std::fmt;

use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::reference::RepositoryAddress;

pub use account::{AccountError, Accounts, CloudAccount, CloudIdentity};
pub use cloud::{CloudLogin, CloudOptions, CloudProvider, Clouds};
pub use credential::Credential;
pub use endpoints::CloudEndpoints;
pub use environment::CloudEnvironment;
pub use error::LoginError;
pub use fingerprint::Fingerprint;
pub use kept::KeepOptions;

/// A way to become somebody at a registry.
pub trait Login: fmt::Debug + Send + Sync {
    /// What the registry of an address, or its token server, is shown at this time.
    ///
    /// # Errors
    ///
    /// When whoever hands it out does not.
    fn credential<'l>(
        &'l self,
        address: &'l RepositoryAddress,
        now: Timestamp,
    ) -> BoxFuture<'l, Result<Credential, LoginError>>;

    /// Whether it is shown over encrypted connections alone.
    fn needs_encryption(&self) -> bool;
}

/// Which login an object asks for.
#[derive(Debug, Clone)]
pub enum LoginChoice {
    /// This one.
    Given(Credential),
    /// Somebody's at a cloud.
    Cloud(CloudProvider, CloudIdentity),
}

/// Nobody's.
impl Default for LoginChoice {
    fn default() -> Self {
        Self::Given(Credential::Anonymous)
    }
}

impl From<Credential> for LoginChoice {
    fn from(credential: Credential) -> Self {
        Self::Given(credential)
    }
}

impl LoginChoice {
    /// Equal for equal choices.
    pub fn fingerprint(&self) -> Fingerprint {
        match self {
            Self::Given(credential) => credential.fingerprint(),
            Self::Cloud(provider, identity) => Fingerprint::of([
                &b"cloud"[..],
                provider.name().as_bytes(),
                identity.fingerprint().as_bytes(),
            ]),
        }
    }
}
