//! The login that an object asks for, and the source of its credentials.

use jiff::Timestamp;

use crate::cloud::{CloudIdentity, CloudLogin, CloudProvider, Credential, LoginError};
use crate::reference::RepositoryAddress;
use crate::secrets::Fingerprint;

/// The login that an object asks for.
#[derive(Debug, Clone)]
pub enum LoginChoice {
    /// A known credential.
    Given(Credential),
    /// The login of an identity at a cloud.
    Cloud(CloudProvider, CloudIdentity),
}

/// The anonymous login.
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
    /// Returns a fingerprint that is equal for equal choices.
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

/// A source of credentials for a registry.
#[derive(Debug)]
pub(super) enum Login {
    /// The credential of a secret, or of a user's own configuration.
    Given(Credential),
    Cloud(CloudLogin),
}

impl Login {
    /// Returns the credential for the registry of an address, or for its token server.
    ///
    /// It is valid at the time `now`.
    ///
    /// # Errors
    ///
    /// If a cloud gives no credential.
    pub(super) async fn credential(
        &self,
        address: &RepositoryAddress,
        now: Timestamp,
    ) -> Result<Credential, LoginError> {
        match self {
            Self::Given(credential) => Ok(credential.clone()),
            Self::Cloud(login) => login.credential(address, now).await,
        }
    }

    /// Returns `true` if the credential may only be sent over encrypted connections.
    pub(super) fn needs_encryption(&self) -> bool {
        matches!(self, Self::Cloud(_))
    }
}
