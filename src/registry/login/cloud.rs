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
use super::network::{Matter, Network};
use super::{Credential, Fingerprint, Login, LoginError};
use crate::http::ProxyChoice;
use crate::reference::RepositoryAddress;
use crate::registry::answer::Answer;
use crate::registry::call::Call;
use crate::registry::error::RegistryError;
use crate::registry::pauses::Requester;
use crate::registry::registries::RegistryOptions;
use crate::registry::transport::Traffic;
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
    /// The namespace of the object that logs in.
    namespace: String,
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
    /// The namespace that this is done for; empty for a login that all namespaces share.
    pub(super) namespace: &'v str,
    /// The namespace of the object that logs in.
    pub(super) tenant: &'v str,
    /// The namespace whose own what is kept is; empty if others may use it too.
    pub(super) scope: &'v str,
    pub(super) now: Timestamp,
}

impl Clouds {
    /// No login is known yet, and requests share bounds with no others.
    pub fn new(options: &RegistryOptions) -> Self {
        Self::sharing(options, Arc::new(Traffic::new(options)))
    }

    /// No login is known yet; requests share the bounds of those to registries.
    pub(in crate::registry) fn sharing(options: &RegistryOptions, traffic: Arc<Traffic>) -> Self {
        let kept = options.clouds.kept;
        Self {
            network: Network::new(options.clone(), traffic),
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
        namespace: String,
    ) -> CloudLogin {
        CloudLogin { provider, identity, proxy, namespace, clouds: Arc::clone(self) }
    }
}

impl Visit<'_> {
    /// The same for what only the tenant has a use for.
    pub(super) fn of_tenant(self) -> Self {
        Self { namespace: self.tenant, scope: self.tenant, ..self }
    }

    /// A key for what is kept: it tells apart who is somebody else, and who goes another way.
    pub(super) fn key<'p>(&self, parts: impl IntoIterator<Item = &'p str>) -> Fingerprint {
        let way = Way { proxy: self.proxy.clone(), ..Way::default() }.fingerprint();
        let parts: Vec<&[u8]> = parts.into_iter().map(str::as_bytes).collect();
        let identity = self.identity.fingerprint();
        Fingerprint::of([
            self.scope.as_bytes(),
            identity.as_bytes(),
            way.as_bytes(),
            Fingerprint::of(parts).as_bytes(),
        ])
    }

    /// Asks a service of the cloud, and takes nothing but success.
    pub(super) async fn service(&self, matter: Matter, call: Call) -> Result<Answer, LoginError> {
        self.clouds.network.service(matter, self.proxy, self.requester(), call).await
    }

    /// Asks a metadata server.
    pub(super) async fn metadata(&self, call: Call) -> Result<Answer, RegistryError> {
        self.clouds.network.metadata(self.requester(), call).await
    }

    fn requester(&self) -> Requester {
        let login = Fingerprint::of([self.namespace.as_bytes(), self.identity.fingerprint().as_bytes()]);
        Requester { namespace: self.namespace.to_owned(), login }
    }
}

impl Login for CloudLogin {
    fn credential<'l>(
        &'l self,
        address: &'l RepositoryAddress,
        now: Timestamp,
    ) -> BoxFuture<'l, Result<Credential, LoginError>> {
        async move {
            let Self { provider, identity, proxy, namespace, clouds } = self;
            let is_shared =
                matches!(identity, CloudIdentity::Process) && !matches!(proxy, ProxyChoice::Given(_));
            let tenant = namespace.as_str();
            let namespace = if is_shared { "" } else { tenant };
            let visit = Visit { clouds, identity, proxy, namespace, tenant, scope: "", now };
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
