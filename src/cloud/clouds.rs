//! State of logins at clouds, and their logins at registries.

use std::sync::Arc;

use jiff::Timestamp;

use super::account::CloudIdentity;
use super::aws::Aws;
use super::azure::Azure;
use super::context::LoginContext;
use super::credential::Credential;
use super::error::LoginError;
use super::git_login::GitLogins;
use super::github_app::AppTokens;
use super::google::Google;
use super::network::Network;
use super::options::CloudOptions;
use super::provider::CloudProvider;
use crate::net::ProxyChoice;
use crate::net::http::ClientState;
use crate::net::http::HttpOptions;
use crate::reference::RepositoryAddress;

/// State and caches of logins at clouds.
///
/// Credentials are shared by objects with the same identity and route.
#[derive(Debug)]
pub struct Clouds {
    pub(super) options: CloudOptions,
    pub(super) network: Network,
    aws: Aws,
    azure: Azure,
    google: Google,
    pub(super) git: GitLogins,
    pub(super) apps: AppTokens,
}

/// The login of an identity at one cloud.
#[derive(Debug, Clone)]
pub struct CloudLogin {
    provider: CloudProvider,
    identity: CloudIdentity,
    proxy: ProxyChoice,
    /// The namespace of the object that logs in.
    namespace: String,
    clouds: Arc<Clouds>,
}

impl Clouds {
    /// Makes the state for use without registries: limits are not shared with other requests.
    pub fn new(http: HttpOptions, options: CloudOptions) -> Self {
        let state = Arc::new(ClientState::new(&http));
        Self::sharing(http, options, state)
    }

    /// Makes the state; requests share the limits of those to registries.
    pub(crate) fn sharing(http: HttpOptions, options: CloudOptions, state: Arc<ClientState>) -> Self {
        let cache = options.credential_cache;
        Self {
            network: Network::new(http, state),
            options,
            aws: Aws::new(cache),
            azure: Azure::new(cache),
            google: Google::new(cache),
            git: GitLogins::new(cache),
            apps: AppTokens::new(cache),
        }
    }

    /// Returns the login of an identity at a cloud, over the object's proxy.
    pub fn login(
        self: &Arc<Self>,
        provider: CloudProvider,
        identity: CloudIdentity,
        proxy: ProxyChoice,
        namespace: String,
    ) -> CloudLogin {
        CloudLogin { provider, identity, proxy, namespace, clouds: Arc::clone(self) }
    }
}

impl CloudLogin {
    /// Returns the credential for the registry of an address, valid at the time `now`.
    ///
    /// # Errors
    ///
    /// If the cloud gives no credential.
    pub async fn credential(
        &self,
        address: &RepositoryAddress,
        now: Timestamp,
    ) -> Result<Credential, LoginError> {
        let Self { provider, identity, proxy, namespace, clouds } = self;
        let is_shared = matches!(identity, CloudIdentity::Process) && !matches!(proxy, ProxyChoice::Given(_));
        let tenant = namespace.as_str();
        let namespace = if is_shared { "" } else { tenant };
        let (options, network) = (&clouds.options, &clouds.network);
        let context = LoginContext { options, network, identity, proxy, namespace, tenant, scope: "", now };
        let host = address.registry();
        match provider {
            CloudProvider::Aws => clouds.aws.credential(host, context).await,
            CloudProvider::Azure => clouds.azure.credential(host, context).await,
            CloudProvider::Google => clouds.google.credential(host, context).await,
        }
    }
}
