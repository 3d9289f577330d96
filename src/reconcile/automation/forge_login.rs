//! The login at the API of a repository's forge.

use std::collections::BTreeMap;

use jiff::Timestamp;
use tagboat_api::Reason;
use url::Url;

use super::source::{ObjectName, SourceConfiguration};
use crate::cloud::{AppTokenRequest, Clouds, GithubApp, GithubAppError, LoginError};
use crate::error::ReconcileError;
use crate::forge::AddressError;
use crate::forge::{ApiLogin, ApiRoute, ForgeAddress, ForgeCredential, ForgeKind};
use crate::git::{HttpLogin, RemotePlan};
use crate::net::ProxyChoice;
use crate::net::http::{ClientIdentity, Route, Tls};
use crate::objects::{Objects, ObjectsError};
use crate::secrets::{Secret, SecretData, SecretDataError};

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
        "secret '{name}' of the annotation tagboat.dev/forge-secret has no login: give a `token`, or `username` and `password`, \
         or the keys of a GitHub App"
    )]
    Nothing {
        /// The Secret.
        name: ObjectName,
    },
    /// The Secret has the keys of a GitHub App, and the forge is another.
    #[error(
        "secret '{name}' of the annotation tagboat.dev/forge-secret has the keys of a GitHub App, and the forge is {kind}: give a \
         `token`, or `username` and `password`"
    )]
    AppElsewhere {
        /// The Secret.
        name: ObjectName,
        /// The forge.
        kind: ForgeKind,
    },
    /// The keys of the GitHub App in the Secret cannot be used.
    #[error(transparent)]
    App(#[from] GithubAppError),
    /// GitHub gives the App no token.
    #[error(transparent)]
    Token(#[from] LoginError),
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
    (objects, clouds): (&impl Objects, &Clouds),
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
    let route = ApiRoute {
        proxy: remote.access.proxy().cloned().map_or(ProxyChoice::Environment, ProxyChoice::Given),
        authority: git.and_then(|git| git.authority.clone()),
        identity: git
            .and_then(|git| git.certificate.as_ref())
            .map(|both| (both.certificate.clone(), both.key.clone())),
    };
    let (owner, credential) = match source.forge.forge_secret.name() {
        Some(name) => {
            let name = ObjectName { namespace: source.repository.namespace.clone(), name: name.to_owned() };
            let owner = format!("Secret {name}");
            let credential = match from_secret(objects, address.kind, name).await? {
                SecretLogin::Credential(credential) => credential,
                SecretLogin::App(app) => {
                    let (repository, route) = (&address.repository.name, &of_clouds(&route));
                    let now = Timestamp::now();
                    let request = AppTokenRequest { app: &app, repository, route, namespace, now };
                    ForgeCredential::Bearer(clouds.app_token(request).await?)
                }
            };
            (owner, credential)
        }
        None => {
            let of_git = git.and_then(|git| from_git(address.kind, &git.login));
            let credential = of_git
                .ok_or_else(|| ForgeAccessError::NoLogin { repository: repository(), kind: address.kind })?;
            (format!("GitRepository {}", source.repository), credential)
        }
    };
    let login = ApiLogin { namespace: namespace.to_owned(), owner, credential, route };
    Ok(ForgeAccess { address, api, login })
}

/// The login in the Secret of the annotation.
#[derive(Debug)]
enum SecretLogin {
    /// A token, or user and password.
    Credential(ForgeCredential),
    /// A GitHub App, whose tokens are requested.
    App(Box<GithubApp>),
}

/// Reads the login from the Secret of the annotation.
async fn from_secret(
    objects: &impl Objects,
    kind: ForgeKind,
    name: ObjectName,
) -> Result<SecretLogin, ForgeAccessError> {
    match objects.secret(&name.namespace, &name.name).await {
        Ok(data) => login_in(&data, kind, name),
        Err(cause) => Err(ForgeAccessError::Secret { name, cause: Box::new(cause) }),
    }
}

/// Returns the login in the data of a Secret.
///
/// A token comes first, then user and password, then a GitHub App.
fn login_in(
    data: &BTreeMap<String, Secret>,
    kind: ForgeKind,
    name: ObjectName,
) -> Result<SecretLogin, ForgeAccessError> {
    let full_name = name.to_string();
    let secret = SecretData { name: &full_name, data };
    if let Some(token) = secret.line("token")? {
        return Ok(SecretLogin::Credential(ForgeCredential::Token(token)));
    }
    if let (Some(user), Some(password)) = (secret.line("username")?, secret.line("password")?) {
        return Ok(SecretLogin::Credential(ForgeCredential::Basic { user, password }));
    }
    match GithubApp::from_secret(secret) {
        Err(GithubAppError::NoData) => Err(ForgeAccessError::Nothing { name }),
        _ if kind != ForgeKind::Github => Err(ForgeAccessError::AppElsewhere { name, kind }),
        app => Ok(SecretLogin::App(Box::new(app?))),
    }
}

/// Returns the route of the API as one for requests of tokens.
fn of_clouds(route: &ApiRoute) -> Route {
    let identity = route.identity.as_ref().map(|(certificate, key)| ClientIdentity {
        certificate: certificate.as_ref().clone(),
        key: key.clone(),
    });
    Route {
        tls: Tls { authority: route.authority.as_deref().cloned(), identity },
        proxy: route.proxy.clone(),
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

    fn data(keys: &[(&str, &str)]) -> BTreeMap<String, Secret> {
        keys.iter().map(|(key, value)| ((*key).to_owned(), Secret::new(*value))).collect()
    }

    #[test]
    fn a_secret_has_a_token_or_a_user_or_an_app() {
        use ForgeKind::{Gitea, Github};
        let app = [("githubAppID", "7"), ("githubAppInstallationID", "8")];
        let named = |end: &str| format!("secret 'n/s' {end}");
        for (keys, kind, expected) in [
            (vec![("token", "t")], Github, "Token".to_owned()),
            (vec![("username", "u"), ("password", "p")], Github, "Basic".to_owned()),
            (vec![("token", "t"), app[0], app[1]], Github, "Token".to_owned()),
            (
                vec![("username", "u")],
                Github,
                named(
                    "of the annotation tagboat.dev/forge-secret has no login: give a `token`, or `username` and `password`, or \
                     the keys of a GitHub App",
                ),
            ),
            (
                app.to_vec(),
                Gitea,
                named(
                    "of the annotation tagboat.dev/forge-secret has the keys of a GitHub App, and the forge is gitea: give a \
                     `token`, or `username` and `password`",
                ),
            ),
            (app.to_vec(), Github, named("").trim_end().to_owned() + ": key 'githubAppPrivateKey' not found"),
        ] {
            let name = ObjectName { namespace: "n".to_owned(), name: "s".to_owned() };
            let found = match login_in(&data(&keys), kind, name) {
                Ok(SecretLogin::Credential(ForgeCredential::Token(_))) => "Token".to_owned(),
                Ok(SecretLogin::Credential(ForgeCredential::Basic { .. })) => "Basic".to_owned(),
                Ok(other) => panic!("{other:?}"),
                Err(error) => error.to_string(),
            };
            assert_eq!(found, expected, "{keys:?}");
        }
    }

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
