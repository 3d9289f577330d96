//! Reads the access to a registry: login, proxy and certificates of an ImageRepository.
//!
//! The secrets that it names are read as well. The order is Flux's: proxy, cloud, certificates, logins.
//! Everything is read from the object's own namespace.

use std::collections::BTreeMap;

use kube::ResourceExt;
use tagboat_api::ImageRepository;
use tagboat_api::reference::LocalObjectReference;
use tagboat_api::repository::{ImageProvider, ImageRepositorySpec};

use super::access_error::AccessError;
use super::logins::{self, Logins};
use super::pull_secrets;
use crate::net::Proxy;
use crate::objects::{Objects, ObjectsError};
use crate::reference::RepositoryAddress;
use crate::registry::{CloudProvider, Credential, ProxyChoice, RepositoryAuth, Route, Tls, tls};
use crate::secrets::{Secret, SecretData};
use crate::tenancy::BlockingPool;

/// The blocking pool on behalf of one namespace: large secrets are read on it.
#[derive(Clone, Copy, Debug)]
pub struct NamespacePool<'p> {
    /// The pool.
    pub pool: &'p BlockingPool,
    /// The namespace of the object that needs the access.
    pub namespace: &'p str,
}

impl NamespacePool<'_> {
    /// Reads a secret, inline if it is small.
    pub(super) async fn read<T: Send + 'static>(
        self,
        data: BTreeMap<String, Secret>,
        read: impl FnOnce(&BTreeMap<String, Secret>) -> T + Send + 'static,
    ) -> T {
        let bytes = data.values().map(|value| value.expose().len()).sum();
        Box::pin(self.pool.run_sized(self.namespace, bytes, move || read(&data))).await
    }
}

/// The access that an ImageRepository names.
#[derive(Debug, Clone)]
pub struct FoundAccess {
    /// The access.
    pub access: RepositoryAuth,
    /// A warning, which is no error.
    pub notes: Vec<String>,
}

/// Reads the access for the tags of an object.
///
/// # Errors
///
/// If the object, or a secret that it names, is invalid.
pub async fn access(
    objects: &impl Objects,
    repository: &ImageRepository,
    logins: &Logins,
    namespace_pool: NamespacePool<'_>,
) -> Result<FoundAccess, AccessError> {
    let spec = &repository.spec;
    let namespace = repository.namespace().unwrap_or_default();
    let address = RepositoryAddress::parse(&spec.image, spec.insecure)?;
    let mut notes = Vec::new();
    let full = |reference: &LocalObjectReference| format!("{namespace}/{}", reference.name);
    let read = async |reference: &LocalObjectReference, missing: String| {
        objects.secret(&namespace, &reference.name).await.map_err(|error| match error {
            ObjectsError::NoSecret { .. } => AccessError::NoSecret(missing),
            error => AccessError::Objects(error),
        })
    };
    let missing = |reference| format!("secret '{}' not found{}", full(reference), objects.advice().secret);
    let proxy = match &spec.proxy_secret_ref {
        None => ProxyChoice::Environment,
        Some(reference) => {
            let data = read(reference, missing(reference)).await?;
            ProxyChoice::Given(Proxy::from_secret(SecretData { name: &full(reference), data: &data })?)
        }
    };
    let cloud = match logins {
        Logins::Named(_) => cloud(&spec.provider)?,
        Logins::Given(_) => None,
    };
    let tls = match &spec.cert_secret_ref {
        None => Tls::default(),
        Some(reference) => {
            let data = read(reference, missing(reference)).await?;
            for [legacy, name] in tls::legacy_keys(&data) {
                notes.push(format!(
                    "secret '{}' uses the key '{legacy}', which is deprecated: write '{name}'",
                    full(reference)
                ));
            }
            let name = full(reference);
            namespace_pool.read(data, move |data| Tls::from_secret(&name, data)).await?
        }
    };
    // The logins in a secret do not count for a cloud.
    let login = match (logins, cloud) {
        (Logins::Given(given), _) => given.login(&address, &mut notes).into(),
        (Logins::Named(_), Some(_)) if tls.authority.is_some() && matches!(proxy, ProxyChoice::Given(_)) => {
            return Err(AccessError::Listener);
        }
        (Logins::Named(accounts), Some(provider)) => {
            logins::at_cloud(accounts.as_ref(), repository, provider).await?
        }
        (Logins::Named(_), None) => {
            let logins = pull_secrets::logins(objects, repository, &mut notes, namespace_pool).await?;
            let login = logins.login(&address);
            if let (Credential::Anonymous, Some(reference), false) =
                (&login, &spec.secret_ref, logins.is_empty())
            {
                notes.push(format!(
                    "secret '{}' has no login for {}, so the registry is accessed anonymously",
                    full(reference),
                    address.canonical()
                ));
            }
            login.into()
        }
    };
    let route = Route { tls, proxy };
    let (secrets, timeout) = (sources(spec), spec.effective_timeout()?);
    Ok(FoundAccess {
        access: RepositoryAuth { namespace, referred_from: None, address, login, route, secrets, timeout },
        notes,
    })
}

/// Returns the names of the objects for login and route, each with its purpose.
fn sources(spec: &ImageRepositorySpec) -> Vec<String> {
    let secrets = [
        ("login", &spec.secret_ref),
        ("certificates", &spec.cert_secret_ref),
        ("proxy", &spec.proxy_secret_ref),
    ];
    let secrets = secrets.into_iter().filter_map(|(what, name)| Some((what, name.as_ref()?.name.as_str())));
    let account = spec.service_account_name.as_deref().map(|name| ("account", name));
    secrets.chain(account).map(|(what, name)| format!("{what}/{name}")).collect()
}

/// Returns the cloud of a provider; none if logins are in secrets.
fn cloud(provider: &ImageProvider) -> Result<Option<CloudProvider>, AccessError> {
    Ok(match provider {
        ImageProvider::Generic => None,
        ImageProvider::Aws => Some(CloudProvider::Aws),
        ImageProvider::Azure => Some(CloudProvider::Azure),
        ImageProvider::Gcp => Some(CloudProvider::Google),
        other => return Err(AccessError::Provider { provider: other.to_string() }),
    })
}
