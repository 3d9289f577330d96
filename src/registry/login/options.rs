//! Options of logins at clouds.

use super::endpoints::CloudEndpoints;
use super::environment::CloudEnvironment;
use super::kept::KeepOptions;

/// Options of logins at clouds.
#[derive(Debug, Clone, Default)]
pub struct CloudOptions {
    /// The environment variables with the identity of this process.
    pub environment: CloudEnvironment,
    /// The endpoints of the clouds.
    pub endpoints: CloudEndpoints,
    /// The limits of the credential caches.
    pub kept: KeepOptions,
}
