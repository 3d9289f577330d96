//! Reads the logins of an ImageRepository from secrets.
//!
//! These are the secret that it names, and the pull secrets of its service account.

use std::collections::BTreeMap;

use kube::ResourceExt;
use tagboat_api::ImageRepository;

use super::access::NamespacePool;
use super::access_error::AccessError;
use crate::objects::{Objects, ObjectsError};
use crate::registry::DockerConfig;
use crate::secrets::Secret;

/// Reads the logins.
///
/// Of two logins for the same server the first counts, and the secret of the object comes before those of the
/// account.
///
/// # Errors
///
/// If a secret, or the account, does not exist or cannot be used.
pub(super) async fn logins(
    objects: &impl Objects,
    repository: &ImageRepository,
    notes: &mut Vec<String>,
    namespace_pool: NamespacePool<'_>,
) -> Result<DockerConfig, AccessError> {
    let spec = &repository.spec;
    let namespace = repository.namespace().unwrap_or_default();
    let mut logins = DockerConfig::default();
    if let Some(reference) = &spec.secret_ref {
        let name = &reference.name;
        let data = objects.secret(&namespace, name).await.map_err(|error| match error {
            ObjectsError::NoSecret { .. } => {
                let advice = objects.advice().registry_login;
                AccessError::NoSecret(format!("secrets \"{name}\" not found{advice}"))
            }
            error => AccessError::Objects(error),
        })?;
        logins.add(read(&format!("{namespace}/{name}"), data, notes, namespace_pool).await?);
    }
    if let Some(account) = spec.service_account_name.as_deref().filter(|name| !name.is_empty()) {
        for name in objects.pull_secrets(&namespace, account).await? {
            let data = objects.secret(&namespace, &name).await.map_err(|cause| AccessError::PullSecret {
                account: format!("{namespace}/{account}"),
                cause: Box::new(cause.with_advice(objects.advice().registry_login)),
            })?;
            logins.add(read(&format!("{namespace}/{name}"), data, notes, namespace_pool).await?);
        }
    }
    Ok(logins)
}

/// Reads the logins of one secret, with a warning if it has none.
async fn read(
    secret: &str,
    data: BTreeMap<String, Secret>,
    notes: &mut Vec<String>,
    namespace_pool: NamespacePool<'_>,
) -> Result<DockerConfig, AccessError> {
    let logins = namespace_pool
        .read(data, DockerConfig::from_secret)
        .await
        .map_err(|cause| AccessError::Login { secret: secret.to_owned(), cause })?;
    if logins.is_none() {
        notes.push(format!(
            "secret '{secret}' has no logins for registries, neither in '.dockerconfigjson' nor in '.dockercfg', so it \
             is not used"
        ));
    }
    Ok(logins.unwrap_or_default())
}
