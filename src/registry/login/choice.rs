//! The login that an object asks for.

use super::account::CloudIdentity;
use super::credential::Credential;
use crate::secrets::Fingerprint;

/// A cloud that has registries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CloudProvider {
    /// Amazon, with the Elastic Container Registry, private and public.
    Aws,
    /// Microsoft, with the Azure Container Registry.
    Azure,
    /// Google, with Artifact Registry and Container Registry.
    Google,
}

impl CloudProvider {
    /// Returns the name in `spec.provider`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::Azure => "azure",
            Self::Google => "gcp",
        }
    }
}

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
