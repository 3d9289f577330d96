//! Options of logins at clouds, with the endpoints of the clouds.

use url::Url;

use super::cache::CredentialCacheOptions;
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

/// The endpoints of clouds. Tests set servers of their own.
///
/// `None` stands for the endpoint that follows from the registry's name.
#[derive(Debug, Clone)]
pub struct CloudEndpoints {
    /// AWS: STS, and the service for ECR tokens.
    pub aws: Option<Url>,
    /// AWS: the metadata server of an instance.
    pub aws_metadata: Url,
    /// AWS: the metadata server of a container whose environment has only a path.
    pub aws_containers: Url,
    /// Azure: the server that issues Entra tokens.
    pub azure_authority: Option<Url>,
    /// Azure: the metadata server of a machine.
    pub azure_metadata: Url,
    /// Azure: the server that exchanges an Entra token for a registry token, normally the registry.
    pub azure_registry: Option<Url>,
    /// Google: the metadata server of a machine.
    pub google_metadata: Url,
    /// Google: STS, which exchanges foreign tokens.
    pub google_exchange: Url,
    /// Google: the server of service account tokens (`generateAccessToken`).
    pub google_accounts: Url,
    /// Google: the server of tokens for keys and user logins, unless their file names another.
    pub google_tokens: Url,
}

impl Default for CloudEndpoints {
    fn default() -> Self {
        let url = |text| Url::parse(text).expect("the addresses of clouds are addresses");
        Self {
            aws: None,
            aws_metadata: url("http://169.254.169.254/"),
            aws_containers: url("http://169.254.170.2/"),
            azure_authority: None,
            azure_metadata: url("http://169.254.169.254/"),
            azure_registry: None,
            google_metadata: url("http://metadata.google.internal/"),
            google_exchange: url("https://sts.googleapis.com/"),
            google_accounts: url("https://iamcredentials.googleapis.com/"),
            google_tokens: url("https://oauth2.googleapis.com/"),
        }
    }
}
