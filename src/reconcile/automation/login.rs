//! From the secrets of a source to a way into its remote.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tagboat_api::Reason;
use tagboat_api::git_repository::GitProvider;

use super::batch_logins::LargeLogins;
use super::conclusion::Stage;
use super::provider_login::{GitClouds, ProviderLogin, ProviderLoginError};
use super::source::{ObjectName, SourceConfiguration};
use crate::cloud::{GitLoginEntry, GithubAppError};
use crate::error::ReconcileError;
use crate::forge::ForgeClients;
use crate::git::{
    AccessError, AccessOptions, AccessPlan, Credentials, CredentialsError, LocalPaths, Login, PrivateFiles,
    ProcessEnv, RemotePlan, RemoteUrl, RemoteUrlError, RouteKey, SshAlgorithms, Transport,
};
use crate::net::{LocalAddresses, LookupError, Pin, Proxy, Server};
use crate::objects::{Objects, ObjectsError};
use crate::secrets::{Secret, SecretData, data_size};
use crate::tenancy::{Capacity, INLINE_BYTES};

/// The options of logins that no object has.
#[derive(Clone, Debug)]
pub struct LoginOptions {
    /// Allows paths of this machine as remotes, for callers who may read them anyway.
    ///
    /// Relative paths begin at this directory.
    pub local_paths: Option<PathBuf>,
    /// Allows or refuses remotes and proxies on this machine or its network link.
    pub local_addresses: LocalAddresses,
    /// True if the git configuration of the calling user logs in, rather than secrets.
    pub is_of_the_user: bool,
    /// The environment of this process.
    pub process_env: ProcessEnv,
    /// The algorithms that ssh may use.
    pub ssh_algorithms: SshAlgorithms,
    /// The size that a mirror may have, in bytes.
    pub mirror_size: u64,
    /// The private files that are in use.
    pub files: PrivateFiles,
    /// The threads on which names are looked up and large secrets are read.
    pub capacity: Capacity,
    /// The logins by providers.
    pub git: GitClouds,
    /// The connections and rate limiters of calls to forges.
    pub forges: ForgeClients,
    /// The slots of large logins; none if all logins belong to one tenant.
    pub large: Option<LargeLogins>,
}

/// The error of a login at a remote.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The address is invalid.
    #[error(transparent)]
    Url(#[from] RemoteUrlError),
    /// A secret does not exist. The words are Flux's.
    #[error("failed to get {kind} secret '{name}': secrets {:?} not found{advice}", name.name)]
    NoSecret {
        /// The purpose of the secret: `auth` or `proxy`.
        kind: &'static str,
        /// The secret.
        name: ObjectName,
        /// Advice about the place for it, if that is not evident.
        advice: &'static str,
    },
    /// The secret with the credentials cannot be read.
    #[error("failed to get auth secret '{name}'")]
    Secret {
        /// The secret.
        name: ObjectName,
        /// The cause.
        #[source]
        cause: Box<ObjectsError>,
    },
    /// The secret with the proxy cannot be read.
    #[error("failed to get proxy secret '{name}'")]
    ProxySecret {
        /// The secret.
        name: ObjectName,
        /// The cause.
        #[source]
        cause: Box<ObjectsError>,
    },
    /// The credentials cannot be used.
    #[error("failed to configure authentication options")]
    Options(#[source] CredentialsError),
    /// The credentials cannot be used for SSH without a secret. The sentence has advice.
    #[error("failed to configure authentication options: {missing}{advice}")]
    WithoutSecret {
        /// The part that is missing.
        ///
        /// It is in the middle of the sentence, so it is no further cause.
        missing: CredentialsError,
        /// Advice about the place for it.
        advice: &'static str,
    },
    /// The credentials cannot be used, and Flux has a sentence of its own for it.
    #[error(transparent)]
    Credentials(CredentialsError),
    /// The address is forbidden, or cannot be found.
    #[error("the URL of GitRepository {repository} cannot be used")]
    Server {
        /// The repository.
        repository: ObjectName,
        /// The cause.
        #[source]
        cause: LookupError,
    },
    /// The address of the proxy is forbidden, or cannot be found.
    #[error("the proxy of secret '{name}' cannot be used")]
    ProxyServer {
        /// The secret.
        name: ObjectName,
        /// The cause.
        #[source]
        cause: LookupError,
    },
    /// The repository has another login than the automations of the same batch.
    ///
    /// No slot is free for that login.
    #[error(
        "GitRepository {repository} changed its URL or secrets while the run started; the next run tries again"
    )]
    Replaced {
        /// The repository.
        repository: ObjectName,
    },
    /// They cannot be handed to git.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The provider gives no login.
    #[error(transparent)]
    Provider(#[from] ProviderLoginError),
}

impl From<CredentialsError> for LoginError {
    fn from(error: CredentialsError) -> Self {
        if error.is_authentication_option() { Self::Options(error) } else { Self::Credentials(error) }
    }
}

/// Only a local URL and a wrong provider stall.
///
/// Everything else may be corrected while the objects stay as they are.
impl ReconcileError for LoginError {
    fn reason(&self) -> Reason {
        match self {
            // What a name leads to may change; what the URL itself says changes with the object.
            Self::Server { cause: LookupError::Local { .. }, .. } => Reason::AccessDenied,
            Self::Credentials(CredentialsError::UnexpectedAppData { .. })
            | Self::Provider(ProviderLoginError::App(GithubAppError::NoData)) => {
                Reason::InvalidSourceConfiguration
            }
            _ => Reason::SourceManagerFailed,
        }
    }

    fn is_retryable(&self) -> bool {
        self.reason() == Reason::SourceManagerFailed
    }
}

impl LoginError {
    /// Returns the stage of the run at which this error stops it.
    ///
    /// As in Flux, a server that cannot be found stops the checkout, in which it is to be read.
    pub fn stage(&self) -> Stage {
        match self {
            Self::Server { cause, .. } | Self::ProxyServer { cause, .. } if !cause.is_refusal() => {
                Stage::Checkout
            }
            _ => Stage::Source,
        }
    }
}

/// Finds the way into the remote of a source, on behalf of a namespace.
///
/// Large Secrets need a slot, which the plan then holds. They are dropped before the wait for it and read again after it,
/// so that logins that wait hold none. Without `may_wait` only a slot that is free is taken.
///
/// # Errors
///
/// If a secret is missing or malformed, or the address must not be used.
pub(super) async fn log_in(
    objects: &impl Objects,
    namespace: &str,
    source: &SourceConfiguration,
    options: &LoginOptions,
    may_wait: bool,
) -> Result<LoggedIn, LoginError> {
    let locals = options.local_paths.as_deref().map_or(LocalPaths::Refused, LocalPaths::Under);
    let url = RemoteUrl::parse(&source.url, locals)?;
    let mut secrets = LoginSecrets::read(objects, source, options).await?;
    let mut large = None;
    if let Some(slots) = options.large.as_ref().filter(|_| secrets.size() >= INLINE_BYTES) {
        drop(secrets);
        let slot = slots.enter(namespace, may_wait).await;
        let replaced = || LoginError::Replaced { repository: source.repository.clone() };
        large = Some(Arc::new(slot.ok_or_else(replaced)?));
        secrets = LoginSecrets::read(objects, source, options).await?;
    }
    let (size, advice) = (secrets.size(), objects.advice().ssh_key);
    let read = {
        let (url, options, provider) = (url.clone(), options.clone(), source.provider.clone());
        let remote = PlannedRemote { url, provider };
        move || secrets.plan(&remote, &options, advice)
    };
    let (proxy, planned) = options.capacity.pool.run_sized(namespace, size, read).await?;
    let pins = match options.local_addresses {
        LocalAddresses::Refused => look_up(source, &url, proxy.as_ref(), namespace, options).await?,
        LocalAddresses::Allowed => Vec::new(),
    };
    let PlannedAccess { access, route, provider } = planned?;
    let (mut access, size_limit, mut entry) = (access.pinned(pins), options.mirror_size, None);
    if let Some(provider) = provider {
        let (login, of_cache) = provider.log_in(source, namespace, &options.git).await?;
        access = access.with_http_login(login);
        entry = Some(of_cache);
    }
    Ok(LoggedIn {
        remote: RemotePlan { url, access, timeout: source.timeout, route, size_limit, large },
        entry,
    })
}

/// The secrets that a login is made from.
struct LoginSecrets {
    proxy: Option<NamedData>,
    /// The secret with the credentials.
    ///
    /// An error of reading it counts after that of a proxy that cannot be used.
    own: Result<Option<NamedData>, LoginError>,
}

/// The data of a secret, and its name.
type NamedData = (ObjectName, BTreeMap<String, Secret>);

/// A remote with a login.
#[derive(Clone, Debug)]
pub struct LoggedIn {
    /// The remote.
    pub remote: RemotePlan,
    /// The cache entry of a provider's login.
    pub entry: Option<GitLoginEntry>,
}

/// The remote that an access is planned for.
struct PlannedRemote {
    url: RemoteUrl,
    provider: GitProvider,
}

/// The access to a remote, and the route there.
struct PlannedAccess {
    access: AccessPlan,
    route: RouteKey,
    /// The login that is made later.
    provider: Option<ProviderLogin>,
}

impl LoginSecrets {
    async fn read(
        objects: &impl Objects,
        source: &SourceConfiguration,
        options: &LoginOptions,
    ) -> Result<Self, LoginError> {
        let mut proxy = None;
        if let Some(name) = &source.proxy_secret {
            let data = objects.secret(&name.namespace, &name.name).await;
            let data = data.map_err(|cause| match cause {
                ObjectsError::NoSecret { .. } => LoginError::NoSecret {
                    kind: "proxy",
                    name: name.clone(),
                    advice: objects.advice().secret,
                },
                cause => LoginError::ProxySecret { name: name.clone(), cause: Box::new(cause) },
            })?;
            proxy = Some((name.clone(), data));
        }
        let own = match source.secret.as_ref().filter(|_| !options.is_of_the_user) {
            None => Ok(None),
            Some(name) => match objects.secret(&name.namespace, &name.name).await {
                Ok(data) => Ok(Some((name.clone(), data))),
                Err(ObjectsError::NoSecret { .. }) => {
                    let advice = objects.advice().git_login;
                    Err(LoginError::NoSecret { kind: "auth", name: name.clone(), advice })
                }
                Err(cause) => Err(LoginError::Secret { name: name.clone(), cause: Box::new(cause) }),
            },
        };
        Ok(Self { proxy, own })
    }

    /// The memory that they take, in bytes.
    fn size(&self) -> usize {
        let own = self.own.as_ref().ok().and_then(Option::as_ref);
        self.proxy.iter().chain(own).map(|(_, data)| data_size(data)).sum()
    }

    /// Reads the login, and plans the access to the remote.
    ///
    /// The server of the proxy is known even if the rest fails.
    fn plan(
        self,
        PlannedRemote { url, provider }: &PlannedRemote,
        options: &LoginOptions,
        ssh_advice: &'static str,
    ) -> Result<(Option<Server>, Result<PlannedAccess, LoginError>), LoginError> {
        let Self { proxy, own } = self;
        let read =
            |(name, data): NamedData| Proxy::from_secret(SecretData { name: &name.to_string(), data: &data });
        let proxy = proxy.map(read).transpose().map_err(CredentialsError::from)?;
        let server = proxy.as_ref().map(|proxy| proxy.server().clone());
        let plan = || -> Result<PlannedAccess, LoginError> {
            let mut by_provider = None;
            let login = match own? {
                _ if options.is_of_the_user => Login::OfUser,
                own if *provider != GitProvider::Generic => {
                    let name = own.as_ref().map(|(name, _)| name.to_string()).unwrap_or_default();
                    let secret = own.as_ref().map(|(_, data)| SecretData { name: &name, data });
                    let (credentials, login) = ProviderLogin::plan(provider, url, secret, proxy.as_ref())?;
                    by_provider = Some(login);
                    Login::Given(Credentials::Http(credentials))
                }
                Some((name, data)) => {
                    let secret = SecretData { name: &name.to_string(), data: &data };
                    Login::Given(Credentials::generic(url, Some(secret))?)
                }
                None => Login::Given(without_secret(url, ssh_advice)?),
            };
            let authority = match &login {
                Login::Given(credentials) => credentials.authority(),
                Login::OfUser => None,
            };
            let route = RouteKey::new(url, proxy.as_ref(), authority);
            let access = AccessOptions {
                process_env: options.process_env.clone(),
                ssh_algorithms: options.ssh_algorithms.clone(),
                proxy,
                pins: Vec::new(),
                files: options.files.clone(),
            };
            Ok(PlannedAccess { access: AccessPlan::new(url, login, access)?, route, provider: by_provider })
        };
        Ok((server, plan()))
    }
}

/// The login without a secret; `advice` says what to do where SSH needs one.
fn without_secret(url: &RemoteUrl, advice: &'static str) -> Result<Credentials, LoginError> {
    Credentials::generic(url, None).map_err(|error| match error {
        missing @ CredentialsError::SshKeyMissing { .. } => LoginError::WithoutSecret { missing, advice },
        other => other.into(),
    })
}

/// Looks up the servers that a run would go to, and refuses local ones.
async fn look_up(
    source: &SourceConfiguration,
    url: &RemoteUrl,
    proxy: Option<&Server>,
    namespace: &str,
    options: &LoginOptions,
) -> Result<Vec<Pin>, LoginError> {
    let lookups = &options.capacity.lookups;
    let mut pins = Vec::new();
    if let (Some(name), Some(proxy)) = (&source.proxy_secret, proxy) {
        let found = proxy.look_up(lookups, namespace, source.timeout).await;
        pins.extend(found.map_err(|cause| LoginError::ProxyServer { name: name.clone(), cause })?);
    }
    let is_behind_proxy =
        url.transport() != Transport::Ssh && (proxy.is_some() || options.process_env.has_proxy());
    if let Some(server) = url.server() {
        match server.look_up(lookups, namespace, source.timeout).await {
            Ok(pin) => pins.extend(pin),
            // The proxy may resolve names that this machine cannot.
            Err(cause) if is_behind_proxy && !cause.is_refusal() => {}
            Err(cause) => return Err(LoginError::Server { repository: source.repository.clone(), cause }),
        }
    }
    Ok(pins)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    #[test]
    fn a_local_url_and_a_wrong_provider_stall_and_the_rest_is_tried_again() {
        let repository = || ObjectName { namespace: "apps".to_owned(), name: "fleet".to_owned() };
        let server = |cause| LoginError::Server { repository: repository(), cause };
        let host = || "localhost".to_owned();
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let provider = CredentialsError::UnexpectedAppData { secret: "apps/login".to_owned() };
        for (error, stalled) in [
            (server(LookupError::Local { host: host() }), Some(Reason::AccessDenied)),
            (server(LookupError::ResolvesToLocal { host: host(), address }), None),
            (provider.into(), Some(Reason::InvalidSourceConfiguration)),
            (CredentialsError::TwoLogins.into(), None),
            (CredentialsError::SshKeyMissing { key: "identity" }.into(), None),
            (LoginError::Replaced { repository: repository() }, None),
        ] {
            let reason = (!error.is_retryable()).then(|| error.reason());
            assert_eq!(reason, stalled, "{error}");
        }
    }
}
