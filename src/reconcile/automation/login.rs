//! From the secrets of a source to a way into its remote.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tagboat_api::Reason;

use super::conclusion::Stage;
use super::source::{ObjectName, SourceConfiguration};
use crate::address::LocalAddresses;
use crate::failing::Failing;
use crate::git::{
    AccessError, AccessOptions, AccessPlan, Credentials, CredentialsError, LocalPaths, Login, LookupError,
    Pin, PrivateFiles, Proxy, RemotePlan, RemoteUrl, RemoteUrlError, RouteKey, SecretData, SshAlgorithms,
    Surroundings, Transport,
};
use crate::objects::{Objects, ObjectsError};
use crate::secret::Secret;
use crate::tenancy::BlockingPool;

/// What of a login does not stand in objects.
#[derive(Clone, Debug)]
pub struct LoginOptions {
    /// Whether paths of this machine may stand for remotes: only where whoever asks may read them anyway. Relative ones
    /// begin at this directory.
    pub local_paths: Option<PathBuf>,
    /// Whether a remote or a proxy may be on this machine or its network link.
    pub local_addresses: LocalAddresses,
    /// Whether the caller's own set-up of git logs in, rather than secrets.
    pub is_of_the_user: bool,
    /// The environment of this process.
    pub surroundings: Surroundings,
    /// What ssh may use.
    pub ssh_algorithms: SshAlgorithms,
    /// The size that a mirror may have, in bytes.
    pub mirror_size: u64,
    /// The private files that are in use.
    pub files: PrivateFiles,
    /// The threads on which names are looked up.
    pub lookups: BlockingPool,
}

/// Why there is no way into a remote.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The address is none.
    #[error(transparent)]
    Url(#[from] RemoteUrlError),
    /// A secret is not there, in Flux's words.
    #[error("failed to get {kind} secret '{name}': secrets {:?} not found{advice}", name.name)]
    NoSecret {
        /// What it is for: `auth` or `proxy`.
        kind: &'static str,
        /// The secret.
        name: ObjectName,
        /// Where to put it, if that is not plain.
        advice: &'static str,
    },
    /// The secret with the credentials cannot be read.
    #[error("failed to get auth secret '{name}'")]
    Secret {
        /// The secret.
        name: ObjectName,
        /// Why.
        #[source]
        cause: ObjectsError,
    },
    /// The secret with the proxy cannot be read.
    #[error("failed to get proxy secret '{name}'")]
    ProxySecret {
        /// The secret.
        name: ObjectName,
        /// Why.
        #[source]
        cause: ObjectsError,
    },
    /// The credentials cannot be used.
    #[error("failed to configure authentication options")]
    Options(#[source] CredentialsError),
    /// SSH without a secret: the same, and what to do.
    #[error("failed to configure authentication options: {missing}{advice}")]
    WithoutSecret {
        /// What is missing; the sentence has it in its middle, so it is no further cause.
        missing: CredentialsError,
        /// Where to put it.
        advice: &'static str,
    },
    /// The credentials cannot be used, and Flux has a sentence of its own for it.
    #[error(transparent)]
    Credentials(CredentialsError),
    /// The address is where nobody may go, or it cannot be found.
    #[error("the URL of GitRepository {repository} cannot be used")]
    Server {
        /// The repository.
        repository: ObjectName,
        /// Why.
        #[source]
        cause: LookupError,
    },
    /// The same of the proxy.
    #[error("the proxy of secret '{name}' cannot be used")]
    ProxyServer {
        /// The secret.
        name: ObjectName,
        /// Why.
        #[source]
        cause: LookupError,
    },
    /// They cannot be handed to git.
    #[error(transparent)]
    Access(#[from] AccessError),
}

impl From<CredentialsError> for LoginError {
    fn from(error: CredentialsError) -> Self {
        if error.is_authentication_option() { Self::Options(error) } else { Self::Credentials(error) }
    }
}

impl Failing for LoginError {
    fn reason(&self) -> Reason {
        match self {
            Self::Url(error) => error.reason(),
            Self::NoSecret { .. }
            | Self::Secret { .. }
            | Self::ProxySecret { .. }
            | Self::ProxyServer { .. } => Reason::SourceManagerFailed,
            Self::Server { .. } => Reason::AccessDenied,
            Self::Options(error) | Self::Credentials(error) | Self::WithoutSecret { missing: error, .. } => {
                error.reason()
            }
            Self::Access(error) => error.reason(),
        }
    }

    fn is_retryable(&self) -> bool {
        match self {
            Self::Url(error) => error.is_retryable(),
            Self::NoSecret { .. }
            | Self::Secret { .. }
            | Self::ProxySecret { .. }
            | Self::ProxyServer { .. } => true,
            // What a name leads to may change; what the URL itself says changes with the object.
            Self::Server { cause, .. } => !matches!(cause, LookupError::Local { .. }),
            Self::Options(error) | Self::Credentials(error) | Self::WithoutSecret { missing: error, .. } => {
                error.is_retryable()
            }
            Self::Access(error) => error.is_retryable(),
        }
    }
}

impl LoginError {
    /// The stage of the run that it stops at: as in Flux, that a server cannot be found shows when it is to be read.
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
/// # Errors
///
/// When a secret is missing or malformed, or the address is none that may be used.
pub async fn log_in(
    objects: &impl Objects,
    namespace: &str,
    source: &SourceConfiguration,
    options: &LoginOptions,
) -> Result<RemotePlan, LoginError> {
    let locals = options.local_paths.as_deref().map_or(LocalPaths::Refused, LocalPaths::Under);
    let url = RemoteUrl::parse(&source.url, locals)?;
    let mut access = AccessOptions {
        surroundings: options.surroundings.clone(),
        ssh_algorithms: options.ssh_algorithms.clone(),
        proxy: None,
        pins: Vec::new(),
        files: options.files.clone(),
    };
    if let Some(name) = &source.proxy_secret {
        let data = objects.secret(&name.namespace, &name.name).await;
        let data = data.map_err(|cause| match cause {
            ObjectsError::NoSecret { .. } => LoginError::NoSecret {
                kind: "proxy",
                name: name.clone(),
                advice: objects.advice_for_secret(),
            },
            cause => LoginError::ProxySecret { name: name.clone(), cause },
        })?;
        access.proxy = Some(Proxy::from_secret(SecretData { name: &name.to_string(), data: &data })?);
    }
    if options.local_addresses == LocalAddresses::Refused {
        access.pins = look_up(source, &url, &access, namespace, &options.lookups).await?;
    }
    let (login, route) = if options.is_of_the_user {
        (Login::OfTheUser, RouteKey::new(&url, access.proxy.as_ref(), None))
    } else {
        let credentials = credentials(objects, source, &url).await?;
        let route = RouteKey::new(&url, access.proxy.as_ref(), credentials.authority());
        (Login::Given(credentials), route)
    };
    let access = AccessPlan::new(&url, login, access)?;
    Ok(RemotePlan { url, access, timeout: source.timeout, route, size_limit: options.mirror_size })
}

/// Looks up the servers that a run would go to, and refuses local ones.
async fn look_up(
    source: &SourceConfiguration,
    url: &RemoteUrl,
    access: &AccessOptions,
    namespace: &str,
    lookups: &BlockingPool,
) -> Result<Vec<Pin>, LoginError> {
    let mut pins = Vec::new();
    if let (Some(name), Some(proxy)) = (&source.proxy_secret, &access.proxy) {
        let found = proxy.server().look_up(lookups, namespace, source.timeout).await;
        pins.extend(found.map_err(|cause| LoginError::ProxyServer { name: name.clone(), cause })?);
    }
    let is_behind_proxy =
        url.transport() != Transport::Ssh && (access.proxy.is_some() || access.surroundings.names_a_proxy());
    if let Some(server) = url.server() {
        match server.look_up(lookups, namespace, source.timeout).await {
            Ok(pin) => pins.extend(pin),
            // The proxy knows names that nobody here does.
            Err(cause) if is_behind_proxy && !cause.is_refusal() => {}
            Err(cause) => return Err(LoginError::Server { repository: source.repository.clone(), cause }),
        }
    }
    Ok(pins)
}

async fn credentials(
    objects: &impl Objects,
    source: &SourceConfiguration,
    url: &RemoteUrl,
) -> Result<Credentials, LoginError> {
    let Some(name) = &source.secret else {
        return Credentials::generic(url, None).map_err(|error| match error {
            missing @ CredentialsError::SshKeyMissing { .. } => {
                LoginError::WithoutSecret { missing, advice: objects.advice_for_ssh() }
            }
            other => other.into(),
        });
    };
    let data: BTreeMap<String, Secret> =
        objects.secret(&name.namespace, &name.name).await.map_err(|cause| match cause {
            ObjectsError::NoSecret { advice, .. } => {
                LoginError::NoSecret { kind: "auth", name: name.clone(), advice }
            }
            cause => LoginError::Secret { name: name.clone(), cause },
        })?;
    Ok(Credentials::generic(url, Some(SecretData { name: &name.to_string(), data: &data }))?)
}
