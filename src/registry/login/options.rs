//! The options of logins at clouds.

use super::endpoints::CloudEndpoints;
use super::environment::CloudEnvironment;
use super::kept::KeepOptions;

/// The options of logins at clouds.
#[derive(Debug, Clone, Default)]
pub struct CloudOptions {
    /// The environment, which names our own identity.
    pub environment: CloudEnvironment,
    /// The endpoints of the clouds.
    pub endpoints: CloudEndpoints,
    /// The bounds of the credential cache, in time and number.
    pub kept: KeepOptions,
}
