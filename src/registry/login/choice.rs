//! The login that an object asks for.

use super::account::CloudIdentity;
use super::credential::Credential;
use super::fingerprint::Fingerprint;
use super::provider::CloudProvider;

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
