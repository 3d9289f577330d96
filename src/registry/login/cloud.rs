//! Our own login at a cloud, for the registries of that cloud.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;

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

    /// As it is called in sentences.
    fn title(self) -> &'static str {
        match self {
            Self::Aws => "AWS",
            Self::Azure => "Azure",
            Self::Google => "GCP",
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
    /// Whether nobody may act as we do.
    pub is_locked_down: bool,
}

/// What is known of our logins at clouds. They are shared by all objects that may act as we do and go the same way.
#[derive(Debug)]
pub struct Clouds {
    pub(super) options: CloudOptions,
    pub(super) network: Network,
    aws: Aws,
    azure: Azure,
    google: Google,
}

/// Our login at one cloud.
#[derive(Debug, Clone)]
pub struct CloudLogin {
    provider: CloudProvider,
    proxy: ProxyChoice,
    clouds: Arc<Clouds>,
}

/// A login that is under way.
#[derive(Clone, Copy)]
pub(super) struct Visit<'v> {
    pub(super) clouds: &'v Clouds,
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

    /// Our login at a cloud, by the proxy of whoever asks.
    pub fn login(self: &Arc<Self>, provider: CloudProvider, proxy: ProxyChoice) -> CloudLogin {
        CloudLogin { provider, proxy, clouds: Arc::clone(self) }
    }
}

impl Visit<'_> {
    /// A key for what is kept: it tells apart who goes another way.
    pub(super) fn key<'p>(&self, parts: impl IntoIterator<Item = &'p str>) -> Fingerprint {
        let way = Way { proxy: self.proxy.clone(), ..Way::default() }.fingerprint();
        let parts: Vec<&[u8]> = parts.into_iter().map(str::as_bytes).collect();
        Fingerprint::of([way.as_bytes(), Fingerprint::of(parts).as_bytes()])
    }
}

impl Login for CloudLogin {
    fn credential<'l>(
        &'l self,
        address: &'l RepositoryAddress,
        now: Timestamp,
    ) -> BoxFuture<'l, Result<Credential, LoginError>> {
        async move {
            let Self { provider, proxy, clouds } = self;
            if clouds.options.is_locked_down {
                return Err(LoginError::LockedDown { cloud: provider.title() });
            }
            let visit = Visit { clouds, proxy, now };
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
