//! The login at the API of a repository's forge.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use tagboat_api::Reason;
use tagboat_api::git_repository::GitProvider;
use url::Url;

use super::login::LoggedIn;
use super::source::{ObjectName, SourceConfiguration};
use crate::cloud::{
    AppTokenRequest, Clouds, GitLoginEntry, GithubApp, GithubAppError, LoginError, is_azure_dev_ops,
};
use crate::error::ReconcileError;
use crate::forge::AddressError;
use crate::forge::{ApiLogin, ForgeAddress, ForgeCredential, ForgeKind};
use crate::git::{CredentialsError, HttpCredentials, HttpLogin, RemotePlan};
use crate::net::ProxyChoice;
use crate::net::http::{ClientIdentity, Route, Tls};
use crate::objects::{Objects, ObjectsError};
use crate::secrets::{Redactor, Secret, SecretData, SecretDataError};

/// The API of a repository's forge, with a login.
#[derive(Debug)]
pub struct ForgeAccess {
    /// The forge and the repository.
    pub address: ForgeAddress,
    /// The base URL of the API.
    pub api: Url,
    /// The login.
    pub login: ApiLogin,
    /// The cache entry of a token that was requested, which the API may refuse.
    pub entry: Option<GitLoginEntry>,
}

impl ForgeAccess {
    /// Returns a redactor of the login.
    pub fn redactor(&self) -> Redactor {
        self.login.credential.redactor(self.address.kind)
    }
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
    /// A Secret cannot be read.
    #[error("failed to get secret '{name}' of {place}")]
    Secret {
        /// The Secret.
        name: ObjectName,
        /// The field or annotation that names it.
        place: &'static str,
        /// The cause.
        #[source]
        cause: Box<ObjectsError>,
    },
    /// The Secret has a malformed value.
    #[error(transparent)]
    Malformed(#[from] SecretDataError),
    /// The certificates of a Secret cannot be used.
    #[error("the certificates for the API of the forge cannot be used")]
    Certificates(#[from] CredentialsError),
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
    /// A token of Azure would go to another server.
    #[error(
        "the token of spec.provider azure is sent only to https://dev.azure.com and https://*.visualstudio.com, and the API of \
         GitRepository {repository} is at {origin}: correct its annotation tagboat.dev/forge-url, or name a Secret with a \
         `token` in tagboat.dev/forge-secret"
    )]
    OtherServer {
        /// The repository.
        repository: ObjectName,
        /// The scheme, host and port of the API.
        origin: String,
    },
}

/// A changed annotation or URL of the GitRepository triggers the automation.
impl ReconcileError for ForgeAccessError {
    fn reason(&self) -> Reason {
        match self {
            Self::Address { .. } | Self::OtherServer { .. } => Reason::InvalidSourceConfiguration,
            _ => Reason::SourceManagerFailed,
        }
    }

    fn is_retryable(&self) -> bool {
        !matches!(self, Self::Address { .. } | Self::OtherServer { .. })
    }
}

/// Finds the forge of a repository, and the login there.
///
/// That of the annotation `tagboat.dev/forge-secret` comes first, then the login for git. A login from a Secret goes where the
/// GitRepository says, because a person who can change the one can name the other. A login of this process does not.
///
/// # Errors
///
/// If the forge is unknown, or there is no login for its API.
pub async fn forge_access(
    (objects, clouds): (&impl Objects, &Arc<Clouds>),
    namespace: &str,
    source: &SourceConfiguration,
    LoggedIn { remote, entry }: &LoggedIn,
) -> Result<ForgeAccess, ForgeAccessError> {
    let repository = || source.repository.clone();
    let in_address = |cause| ForgeAccessError::Address { repository: repository(), cause };
    let address = ForgeAddress::of(&remote.url, &source.forge).map_err(in_address)?;
    let api = Url::parse(&address.api).map_err(|_| ForgeAccessError::Address {
        repository: repository(),
        cause: AddressError::ApiUrl { cause: crate::forge::ApiUrlDefect::Malformed },
    })?;
    let secret = match source.forge.forge_secret.name() {
        Some(name) => {
            let name = ObjectName { namespace: source.repository.namespace.clone(), name: name.to_owned() };
            let data = read(objects, &name, "the annotation tagboat.dev/forge-secret").await?;
            Some((name, data))
        }
        None => None,
    };
    let git = remote.access.http_credentials();
    let route = api_route(objects, source, remote, secret.as_ref()).await?;
    let (owner, credential, entry) = match secret {
        Some((name, data)) => {
            let owner = format!("Secret {name}");
            let (credential, entry) = match login_in(&data, address.kind, name)? {
                SecretLogin::Credential(credential) => (credential, None),
                SecretLogin::App(app) => {
                    let (repository, route) = (&address.repository.name, &route);
                    let now = Timestamp::now();
                    let request = AppTokenRequest { app: &app, repository, route, namespace, now };
                    let token = clouds.app_token(request).await?;
                    let entry = clouds.app_entry(&request, &token);
                    (ForgeCredential::Bearer(token), Some(entry))
                }
            };
            (owner, credential, entry)
        }
        None => {
            let of_git = git.map(|git| from_git(&source.provider, (address.kind, &api), &git.login));
            let credential = match of_git.unwrap_or(Ok(None)) {
                Ok(Some(credential)) => credential,
                Ok(None) => {
                    return Err(ForgeAccessError::NoLogin { repository: repository(), kind: address.kind });
                }
                Err(OtherServer { origin }) => {
                    return Err(ForgeAccessError::OtherServer { repository: repository(), origin });
                }
            };
            (format!("GitRepository {}", source.repository), credential, entry.clone())
        }
    };
    let identity = entry.as_ref().map(GitLoginEntry::identity);
    let login = ApiLogin { namespace: namespace.to_owned(), owner, credential, identity, route };
    Ok(ForgeAccess { address, api, login, entry })
}

/// The login in the Secret of the annotation.
#[derive(Debug)]
enum SecretLogin {
    /// A token, or user and password.
    Credential(ForgeCredential),
    /// A GitHub App, whose tokens are requested.
    App(Box<GithubApp>),
}

/// Reads a Secret that a field or an annotation names.
async fn read(
    objects: &impl Objects,
    name: &ObjectName,
    place: &'static str,
) -> Result<BTreeMap<String, Secret>, ForgeAccessError> {
    objects.secret(&name.namespace, &name.name).await.map_err(|cause| ForgeAccessError::Secret {
        name: name.clone(),
        place,
        cause: Box::new(cause),
    })
}

/// Returns the way to the API: the proxy of the GitRepository, and certificates.
///
/// Those of the annotation's Secret come first, then those of `spec.secretRef`, which git over SSH does not use.
async fn api_route(
    objects: &impl Objects,
    source: &SourceConfiguration,
    remote: &RemotePlan,
    secret: Option<&(ObjectName, BTreeMap<String, Secret>)>,
) -> Result<Route, ForgeAccessError> {
    let of_forge = secret.map(|(name, data)| certificates(name, data)).transpose()?;
    let of_git = match &source.secret {
        Some(name) if remote.access.has_ssh_credentials() => {
            Some(certificates(name, &read(objects, name, "spec.secretRef").await?)?)
        }
        _ => remote.access.http_credentials().cloned(),
    };
    let authority = |from: &Option<HttpCredentials>| from.as_ref()?.authority.as_deref().cloned();
    let identity = |from: &Option<HttpCredentials>| {
        let both = from.as_ref()?.certificate.as_ref()?;
        Some(ClientIdentity { certificate: both.certificate.as_ref().clone(), key: both.key.clone() })
    };
    Ok(Route {
        proxy: remote.access.proxy().cloned().map_or(ProxyChoice::Environment, ProxyChoice::Given),
        tls: Tls {
            authority: authority(&of_forge).or_else(|| authority(&of_git)),
            identity: identity(&of_forge).or_else(|| identity(&of_git)),
        },
    })
}

fn certificates(
    name: &ObjectName,
    data: &BTreeMap<String, Secret>,
) -> Result<HttpCredentials, CredentialsError> {
    HttpCredentials::certificates(Some(SecretData { name: &name.to_string(), data }))
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

/// The error of a token of this process for a server of others.
#[derive(Debug, PartialEq, Eq)]
struct OtherServer {
    /// The scheme, host and port.
    origin: String,
}

/// Returns the login at an API that belongs to a login for git.
///
/// Forges take tokens as passwords of git, and some take the pair at the API as well. The login of CodeCommit is a signature for
/// git alone.
fn from_git(
    provider: &GitProvider,
    (kind, api): (ForgeKind, &Url),
    login: &HttpLogin,
) -> Result<Option<ForgeCredential>, OtherServer> {
    match provider {
        GitProvider::Aws => return Ok(None),
        GitProvider::Azure if !is_azure_dev_ops(api) => {
            return Err(OtherServer { origin: api.origin().ascii_serialization() });
        }
        _ => {}
    }
    Ok(match login {
        HttpLogin::Anonymous => None,
        HttpLogin::Bearer(token) => Some(ForgeCredential::Bearer(token.clone())),
        HttpLogin::Basic { password, .. } if password.expose().is_empty() => None,
        HttpLogin::Basic { user, password } => Some(match kind {
            ForgeKind::Bitbucket | ForgeKind::BitbucketDataCenter => {
                ForgeCredential::Basic { user: user.clone(), password: password.clone() }
            }
            _ => ForgeCredential::Token(password.clone()),
        }),
    })
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
        let api = Url::parse("https://forge.example/api").unwrap();
        let of = |kind, login: &HttpLogin| from_git(&GitProvider::Generic, (kind, &api), login).unwrap();
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

    #[test]
    fn a_token_of_this_process_goes_to_servers_of_its_cloud_only() {
        use GitProvider::{Aws, Azure, Generic, GitHub};
        let bearer = || HttpLogin::Bearer(Secret::new("b"));
        let basic = || HttpLogin::Basic { user: Secret::new("KEY"), password: Secret::new("signature") };
        let other = |origin: &str| Err(OtherServer { origin: origin.to_owned() });
        for (provider, login, api, expected) in [
            (Azure, bearer(), "https://dev.azure.com/acme", Ok(true)),
            (Azure, bearer(), "https://acme.visualstudio.com", Ok(true)),
            (Azure, bearer(), "https://evil.example/acme", other("https://evil.example")),
            (Azure, bearer(), "https://dev.azure.com:8443/acme", other("https://dev.azure.com:8443")),
            (Azure, bearer(), "http://dev.azure.com/acme", other("http://dev.azure.com")),
            (
                Azure,
                bearer(),
                "https://dev.azure.com.evil.example",
                other("https://dev.azure.com.evil.example"),
            ),
            (Azure, bearer(), "https://evilvisualstudio.com", other("https://evilvisualstudio.com")),
            (Aws, basic(), "https://git-codecommit.eu-west-1.amazonaws.com/api/v1", Ok(false)),
            (Aws, basic(), "https://evil.example", Ok(false)),
            // The keys of the App and the password are in a Secret of the GitRepository.
            (GitHub, basic(), "https://github.example/api/v3", Ok(true)),
            (Generic, basic(), "https://git.example/api/v4", Ok(true)),
        ] {
            for kind in [ForgeKind::AzureDevops, ForgeKind::Github, ForgeKind::Bitbucket] {
                let found = from_git(&provider, (kind, &Url::parse(api).unwrap()), &login);
                assert_eq!(found.map(|login| login.is_some()), expected, "{provider} {kind} {api}");
            }
        }
        let repository = ObjectName { namespace: "apps".to_owned(), name: "fleet".to_owned() };
        let error = ForgeAccessError::OtherServer { repository, origin: "https://evil.example".to_owned() };
        assert_eq!((error.reason(), error.is_retryable()), (Reason::InvalidSourceConfiguration, false));
    }
}
