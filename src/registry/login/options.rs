//! Options of logins at clouds.

use super::cache::CredentialCacheOptions;
use super::endpoints::CloudEndpoints;
use super::environment::CloudEnvironment;

/// Options of logins at clouds.
#[derive(Debug, Clone, Default)]
pub struct CloudOptions {
    /// The environment variables with the identity of this process.
    pub environment: CloudEnvironment,
    /// The endpoints of the clouds.
    pub endpoints: CloudEndpoints,
    /// The limits of the credential caches.
    pub credential_cache: CredentialCacheOptions,
}
