//! The caller's own logins for registries, in the place of those that the manifests name.

use std::collections::BTreeMap;

use serde_json::json;
use tagboat_api::ImageRepository;
use tagboat_api::reference::LocalObjectReference;

use super::Wanted;
use crate::cli::Failure;
use crate::cli::registry_login::{self, RegistryLogin};
use crate::objects::ObjectName;
use crate::objects::manifests::{Manifest, Manifests, Object, SecretManifest};
use crate::reference::RepositoryAddress;
use crate::registry::Credential;
use crate::secret::Secret;

/// The names of the secrets with the caller's own logins, by repository.
#[derive(Debug, Default)]
pub(in crate::cli::run) struct OwnLogins(BTreeMap<ObjectName, Option<String>>);

/// Puts a secret with the caller's own login among the manifests for each repository that is scanned.
///
/// # Errors
///
/// When the caller's logins cannot be read.
pub(in crate::cli::run) fn own_logins(
    wanted: &Wanted,
    manifests: &mut Manifests,
) -> Result<OwnLogins, Failure> {
    let mut logins = OwnLogins::default();
    for (name, repository) in &wanted.repositories {
        // An address that is none is the repository's own error, told when it is scanned.
        let Ok(address) = RepositoryAddress::parse(&repository.spec.image, repository.spec.insecure) else {
            continue;
        };
        let values = values(&address.canonical(), &registry_login::of_the_user(&address)?);
        let secret = values.map(|values| {
            // No Secret of a person's can have that name.
            let secret = format!("the login of {name}");
            let object = SecretManifest {
                namespace: name.namespace.clone(),
                name: secret.clone(),
                values: Ok(values),
            };
            manifests.objects.push(Manifest { file: "-".into(), object: Object::Secret(object) });
            secret
        });
        logins.0.insert(name.clone(), secret);
    }
    Ok(logins)
}

impl OwnLogins {
    /// Who logs in for a repository.
    pub(super) fn of(&self, name: &ObjectName) -> RegistryLogin {
        if self.0.contains_key(name) { RegistryLogin::User } else { RegistryLogin::Secrets }
    }

    /// The repository as it is asked for with the caller's login, where that is to be used.
    pub(super) fn applied(&self, name: &ObjectName, repository: ImageRepository) -> ImageRepository {
        let Some(secret) = self.0.get(name) else { return repository };
        let mut repository = registry_login::without_logins(repository);
        repository.spec.secret_ref = secret.clone().map(|name| LocalObjectReference { name });
        repository
    }
}

/// A login as docker writes it.
fn values(canonical: &str, login: &Credential) -> Option<BTreeMap<String, Secret>> {
    let text = |secret: &Secret| String::from_utf8_lossy(secret.expose()).into_owned();
    let login = match login {
        Credential::Anonymous => return None,
        Credential::Basic { user, password } => {
            json!({"username": text(user), "password": text(password)})
        }
        Credential::IdentityToken(token) => json!({"identitytoken": text(token)}),
        Credential::RegistryToken(token) => json!({"registrytoken": text(token)}),
    };
    let mut logins = serde_json::Map::new();
    logins.insert(canonical.to_owned(), login);
    let config = Secret::new(json!({"auths": logins}).to_string());
    Some(BTreeMap::from([(".dockerconfigjson".to_owned(), config)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::DockerConfig;

    #[test]
    fn each_login_is_read_again_as_it_was() {
        for image in ["ghcr.io/org/app", "alpine", "127.0.0.1:5000/app/web", "docker.io/library/alpine"] {
            let address = RepositoryAddress::parse(image, false).unwrap();
            let secret = |text: &str| Secret::new(text.as_bytes().to_vec());
            for login in [
                Credential::Basic { user: secret("robot"), password: secret("hun:ter\"2 ü") },
                Credential::IdentityToken(secret("identity")),
                Credential::RegistryToken(secret("token")),
            ] {
                let values = values(&address.canonical(), &login).unwrap();
                let found = DockerConfig::from_secret(&values).unwrap().unwrap().login(&address);
                assert_eq!(found.fingerprint(), login.fingerprint(), "{image}");
            }
        }
        assert!(values("ghcr.io/org/app", &Credential::Anonymous).is_none());
    }
}
