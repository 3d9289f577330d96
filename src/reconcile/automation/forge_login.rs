//! The login at the API of a repository's forge.

use tagboat_api::Reason;
use url::Url;

use super::source::{ObjectName, SourceConfiguration};
use crate::error::ReconcileError;
use crate::forge::AddressError;
use crate::forge::{ApiLogin, ApiRoute, ForgeAddress, ForgeCredential, ForgeKind};
use crate::git::{HttpLogin, RemotePlan};
use crate::net::ProxyChoice;
use crate::objects::{Objects, ObjectsError};
use crate::secrets::{SecretData, SecretDataError};

/// The API of a repository's forge, with a login.
#[derive(Debug)]
pub struct ForgeAccess {
    /// The forge and the repository.
    pub address: ForgeAddress,
    /// The base URL of the API.
    pub api: Url,
    /// The login.
    pub login: ApiLogin,
}

/// The error of a repository whose forge cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ForgeAccessError {
    /// The repository has no usable address at a forge.
    #[error("the forge of GitRepository {repository} cannot be used")]
    Address {
        /// The repository.
        repository: ObjectName,
        /// The defect.
        #[source]
        cause: AddressError,
    },
    /// The Secret of the annotation cannot be read.
    #[error("failed to get secret '{name}' of the annotation tagboat.dev/forge-secret")]
    Secret {
        /// The Secret.
        name: ObjectName,
        /// The cause.
        #[source]
        cause: Box<ObjectsError>,
    },
    /// The Secret has a malformed value.
    #[error(transparent)]
    Malformed(#[from] SecretDataError),
    /// The Secret has no login.
    #[error(
        "secret '{name}' of the annotation tagboat.dev/forge-secret has no login: give a `token`, or `username` and `password`"
    )]
    Nothing {
        /// The Secret.
        name: ObjectName,
    },
    /// The git login cannot be used at the API.
    #[error(
        "GitRepository {repository} has no login for the API of {kind}: name a Secret with a `token` in its annotation \
         tagboat.dev/forge-secret"
    )]
    NoLogin {
        /// The repository.
        repository: ObjectName,
        /// The forge.
        kind: ForgeKind,
    },
}

/// A changed annotation or URL of the GitRepository triggers the automation.
impl ReconcileError for ForgeAccessError {
    fn reason(&self) -> Reason {
        match self {
            Self::Address { .. } => Reason::InvalidSourceConfiguration,
            _ => Reason::SourceManagerFailed,
        }
    }

    fn is_retryable(&self) -> bool {
        !matches!(self, Self::Address { .. })
    }
}

/// Finds the forge of a repository, and the login there.
///
/// That of the annotation `tagboat.dev/forge-secret` comes first, then the login for git.
///
/// # Errors
///
/// If the forge is unknown, or there is no login for its API.
pub async fn forge_access(
    objects: &impl Objects,
    namespace: &str,
    source: &SourceConfiguration,
    remote: &RemotePlan,
) -> Result<ForgeAccess, ForgeAccessError> {
    let repository = || source.repository.clone();
    let in_address = |cause| ForgeAccessError::Address { repository: repository(), cause };
    let address = ForgeAddress::of(&remote.url, &source.forge).map_err(in_address)?;
    let api = Url::parse(&address.api).map_err(|_| ForgeAccessError::Address {
        repository: repository(),
        cause: AddressError::ApiUrl { cause: crate::forge::ApiUrlDefect::Malformed },
    })?;
    let git = remote.access.http_credentials();
    let (owner, credential) = match source.forge.forge_secret.name() {
        Some(name) => {
            let name = ObjectName { namespace: source.repository.namespace.clone(), name: name.to_owned() };
            (format!("Secret {name}"), from_secret(objects, name).await?)
        }
        None => {
            let of_git = git.and_then(|git| from_git(address.kind, &git.login));
            let credential = of_git
                .ok_or_else(|| ForgeAccessError::NoLogin { repository: repository(), kind: address.kind })?;
            (format!("GitRepository {}", source.repository), credential)
        }
    };
    let route = ApiRoute {
        proxy: remote.access.proxy().cloned().map_or(ProxyChoice::Environment, ProxyChoice::Given),
        authority: git.and_then(|git| git.authority.clone()),
        identity: git
            .and_then(|git| git.certificate.as_ref())
            .map(|both| (both.certificate.clone(), both.key.clone())),
    };
    let login = ApiLogin { namespace: namespace.to_owned(), owner, credential, route };
    Ok(ForgeAccess { address, api, login })
}

/// Reads the login from the Secret of the annotation.
async fn from_secret(objects: &impl Objects, name: ObjectName) -> Result<ForgeCredential, ForgeAccessError> {
    let data = match objects.secret(&name.namespace, &name.name).await {
        Ok(data) => data,
        Err(cause) => return Err(ForgeAccessError::Secret { name, cause: Box::new(cause) }),
    };
    let full_name = name.to_string();
    let secret = SecretData { name: &full_name, data: &data };
    if let Some(token) = secret.line("token")? {
        return Ok(ForgeCredential::Token(token));
    }
    match (secret.line("username")?, secret.line("password")?) {
        (Some(user), Some(password)) => Ok(ForgeCredential::Basic { user, password }),
        _ => Err(ForgeAccessError::Nothing { name }),
    }
}

/// Returns the login at the API that belongs to a login for git.
///
/// Forges take tokens as passwords of git, and some take the pair at the API as well.
fn from_git(kind: ForgeKind, login: &HttpLogin) -> Option<ForgeCredential> {
    match login {
        HttpLogin::Anonymous => None,
        HttpLogin::Bearer(token) => Some(ForgeCredential::Bearer(token.clone())),
        HttpLogin::Basic { password, .. } if password.expose().is_empty() => None,
        HttpLogin::Basic { user, password } => Some(match kind {
            ForgeKind::Bitbucket | ForgeKind::BitbucketDataCenter => {
                ForgeCredential::Basic { user: user.clone(), password: password.clone() }
            }
            _ => ForgeCredential::Token(password.clone()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::Secret;

    #[test]
    fn the_password_of_git_is_a_token_of_the_api() {
        let basic =
            |password: &str| HttpLogin::Basic { user: Secret::new("u"), password: Secret::new(password) };
        let of = |kind, login: &HttpLogin| from_git(kind, login);
        assert!(
            matches!(of(ForgeKind::Github, &basic("t")), Some(ForgeCredential::Token(token)) if token.expose() == b"t")
        );
        assert!(matches!(of(ForgeKind::Bitbucket, &basic("t")), Some(ForgeCredential::Basic { .. })));
        assert!(matches!(
            of(ForgeKind::AzureDevops, &HttpLogin::Bearer(Secret::new("b"))),
            Some(ForgeCredential::Bearer(_))
        ));
        assert!(of(ForgeKind::Github, &basic("")).is_none());
        assert!(of(ForgeKind::Github, &HttpLogin::Anonymous).is_none());
    }
}
