//! A login at a cloud, for the registries of that cloud.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;

use super::account::CloudIdentity;
use super::aws::Aws;
use super::azure::Azure;
use super::endpoints::CloudEndpoints;
use super::environment::CloudEnvironment;
use super::google::Google;
use super::kept::KeepOptions;
use super::network::Network;
use super::{Credential, Fingerprint, Login, LoginError};
use crate::http::ProxyChoice;
use crate::reference::RepositoryAddress;
use crate::registry::budget::Budgets;
use crate::registry::registries::RegistryOptions;
use crate::registry::way::Way;

/// A cloud that has registries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CloudProvider {
    /// Amazon's, with the Elastic Container Registry, private and public.
    Aws,
    /// Microsoft's, with the Azure Container Registry.
    Azure,
    /// Google's, with Artifact Registry and Container Registry.
    Google,
}

impl CloudProvider {
    /// As `spec.provider` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::Azure => "azure",
            Self::Google => "gcp",
        }
    }
}

/// How clouds are asked.
#[derive(Debug, Clone, Default)]
pub struct CloudOptions {
    /// Who we are, as far as the environment says.
    pub environment: CloudEnvironment,
    /// Where they are asked.
    pub endpoints: CloudEndpoints,
    /// How long logins are kept, and how many.
    pub kept: KeepOptions,
}

/// What is known of logins at clouds. They are shared by all who are the same there and go the same way.
#[derive(Debug)]
pub struct Clouds {
    pub(super) options: CloudOptions,
    pub(super) network: Network,
    aws: Aws,
    azure: Azure,
    google: Google,
}

/// A login at one cloud.
#[derive(Debug, Clone)]
pub struct CloudLogin {
    provider: CloudProvider,
    identity: CloudIdentity,
    proxy: ProxyChoice,
    clouds: Arc<Clouds>,
}

/// A login that is under way.
#[derive(Clone, Copy)]
pub(super) struct Visit<'v> {
    pub(super) clouds: &'v Clouds,
    /// Who logs in.
    pub(super) identity: &'v CloudIdentity,
    /// The proxy of whoever asks.
    pub(super) proxy: &'v ProxyChoice,
    pub(super) now: Timestamp,
}

impl Clouds {
    /// No login is known yet.
    pub fn new(options: &RegistryOptions, budgets: Arc<Budgets>) -> Self {
        let kept = options.clouds.kept;
        Self {
            network: Network::new(options.clone(), budgets),
            options: options.clouds.clone(),
            aws: Aws::new(kept),
            azure: Azure::new(kept),
            google: Google::new(kept),
        }
    }

    /// The login of somebody at a cloud, by the proxy of whoever asks.
    pub fn login(
        self: &Arc<Self>,
        provider: CloudProvider,
        identity: CloudIdentity,
        proxy: ProxyChoice,
    ) -> CloudLogin {
        CloudLogin { provider, identity, proxy, clouds: Arc::clone(self) }
    }
}

impl Visit<'_> {
    /// A key for what is kept: it tells apart who is somebody else, and who goes another way.
    pub(super) fn key<'p>(&self, parts: impl IntoIterator<Item = &'p str>) -> Fingerprint {
        let way = Way { proxy: self.proxy.clone(), ..Way::default() }.fingerprint();
        let parts: Vec<&[u8]> = parts.into_iter().map(str::as_bytes).collect();
        let identity = self.identity.fingerprint();
        Fingerprint::of([identity.as_bytes(), way.as_bytes(), Fingerprint::of(parts).as_bytes()])
    }
}

impl Login for CloudLogin {
    fn credential<'l>(
        &'l self,
        address: &'l RepositoryAddress,
        now: Timestamp,
    ) -> BoxFuture<'l, Result<Credential, LoginError>> {
        async move {
            let Self { provider, identity, proxy, clouds } = self;
            let visit = Visit { clouds, identity, proxy, now };
            let host = address.registry();
            match provider {
                CloudProvider::Aws => clouds.aws.credential(host, visit).await,
                CloudProvider::Azure => clouds.azure.credential(host, visit).await,
                CloudProvider::Google => clouds.google.credential(host, visit).await,
            }
        }
        .boxed()
    }

    fn needs_encryption(&self) -> bool {
        true
    }
}
