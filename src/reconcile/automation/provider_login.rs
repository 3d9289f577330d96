//! Logins by the providers github, azure and aws (`docs/git-logins.md`).

use std::sync::Arc;

use jiff::Timestamp;
use tagboat_api::git_repository::GitProvider;
use url::Url;

use super::source::{ObjectName, SourceConfiguration};
use crate::cloud::{
    CloudIdentity, Clouds, GitIdentity, GitLoginEntry, GitLoginRequest, GitSecret, GithubApp, GithubAppError,
    IdentityError, LoginError, ServiceAccounts,
};
use crate::git::{CredentialsError, HttpCredentials, HttpLogin, RemoteUrl, Transport};
use crate::net::http::{ClientIdentity, Route, Tls};
use crate::net::{Proxy, ProxyChoice};
use crate::reconcile::repository::request::ObjectIdentity;
use crate::secrets::SecretData;

/// The state of logins by providers, and the identities that objects may have.
#[derive(Clone, Debug)]
pub struct GitClouds {
    /// The clouds, with the caches of logins.
    pub clouds: Arc<Clouds>,
    /// Allows or forbids service accounts of objects.
    pub identity: ObjectIdentity,
    /// The service accounts; none without a cluster.
    pub accounts: Option<ServiceAccounts>,
}

/// A login by a provider that is made later.
#[derive(Debug)]
pub(super) struct ProviderLogin {
    provider: CheckedProvider,
    /// The URL without user info.
    url: Url,
    route: Route,
    /// Set if the object's proxy could read what is sent to the git server.
    has_listener: bool,
}

/// A provider with the keys that it takes from the secret.
#[derive(Debug)]
enum CheckedProvider {
    Github(GithubApp),
    Azure,
    Aws,
}

/// The error of a login by a provider.
#[derive(Debug, thiserror::Error)]
pub enum ProviderLoginError {
    /// The URL is not one over HTTP.
    #[error(
        "the provider {provider} logs in over https, and the URL '{url}' is one of {scheme}: write the https URL of the \
         repository, or use the provider generic"
    )]
    Transport {
        /// The provider.
        provider: GitProvider,
        /// The URL.
        url: String,
        /// Its scheme.
        scheme: &'static str,
    },
    /// The certificates of the secret cannot be used.
    #[error(transparent)]
    Certificates(#[from] CredentialsError),
    /// The secret has no usable GitHub App.
    #[error(transparent)]
    App(#[from] GithubAppError),
    /// No cluster can issue the token of a service account.
    #[error(
        "GitRepository {repository} logs in as the service account '{account}' with a token that only a cluster issues, so \
         only the controller supports it: log in as yourself with --git-login user"
    )]
    NoCluster {
        /// The repository.
        repository: ObjectName,
        /// The service account.
        account: String,
    },
    /// The object's proxy could read the login: the object's authority would make its certificate valid.
    #[error(
        "spec.proxySecretRef and a 'ca.crt' of spec.secretRef would let the proxy read the controller's cloud credentials: use \
         only one of the two with spec.provider of GitRepository {repository}, or a service account"
    )]
    Listener {
        /// The repository.
        repository: ObjectName,
    },
    /// The service account cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The provider gives no login.
    #[error(transparent)]
    Login(#[from] LoginError),
}

/// Returns the URL of a repository if a provider can log in over its transport.
///
/// # Errors
///
/// If its scheme is not http or https.
pub fn http_url(provider: &GitProvider, url: &RemoteUrl) -> Result<Url, ProviderLoginError> {
    let is_http = matches!(url.transport(), Transport::Http | Transport::Https);
    let parsed = Url::parse(&url.to_string()).ok().filter(|_| is_http);
    parsed.ok_or_else(|| ProviderLoginError::Transport {
        provider: provider.clone(),
        url: url.to_string(),
        scheme: url.transport().scheme(),
    })
}

impl ProviderLogin {
    /// Plans the login of a provider; of the secret, clouds take the certificates alone.
    pub(super) fn plan(
        provider: &GitProvider,
        url: &RemoteUrl,
        secret: Option<SecretData<'_>>,
        proxy: Option<&Proxy>,
    ) -> Result<(HttpCredentials, Self), ProviderLoginError> {
        let parsed = http_url(provider, url)?;
        let credentials = HttpCredentials::certificates(secret)?;
        let checked = match provider {
            GitProvider::GitHub => {
                let app = secret.map(GithubApp::from_secret).ok_or(GithubAppError::NoData)?;
                CheckedProvider::Github(app?)
            }
            GitProvider::Azure => CheckedProvider::Azure,
            _ => CheckedProvider::Aws,
        };
        let identity = credentials.certificate.as_ref().map(|both| ClientIdentity {
            certificate: both.certificate.as_ref().clone(),
            key: both.key.clone(),
        });
        let tls = match &checked {
            CheckedProvider::Github(_) => {
                Tls { authority: credentials.authority.as_deref().cloned(), identity }
            }
            CheckedProvider::Azure | CheckedProvider::Aws => Tls::default(),
        };
        let proxy = proxy.cloned().map_or(ProxyChoice::Environment, ProxyChoice::Given);
        let has_listener = credentials.authority.is_some() && matches!(proxy, ProxyChoice::Given(_));
        let route = Route { tls, proxy };
        Ok((credentials, Self { provider: checked, url: parsed, route, has_listener }))
    }

    /// Logs in on behalf of a namespace.
    pub(super) async fn log_in(
        self,
        source: &SourceConfiguration,
        namespace: &str,
        git: &GitClouds,
    ) -> Result<(HttpLogin, GitLoginEntry), ProviderLoginError> {
        let identity = match self.provider {
            CheckedProvider::Github(app) => GitIdentity::Github(app),
            CheckedProvider::Azure => GitIdentity::Azure(cloud_identity(source, namespace, git).await?),
            CheckedProvider::Aws => GitIdentity::Aws(cloud_identity(source, namespace, git).await?),
        };
        let is_ours = matches!(
            identity,
            GitIdentity::Azure(CloudIdentity::Process) | GitIdentity::Aws(CloudIdentity::Process)
        );
        if is_ours && self.has_listener {
            return Err(ProviderLoginError::Listener { repository: source.repository.clone() });
        }
        let now = Timestamp::now();
        let request =
            GitLoginRequest { identity: &identity, url: &self.url, route: &self.route, namespace, now };
        let login = Box::pin(git.clouds.git_login(request)).await?;
        let http = match login.secret {
            GitSecret::Basic { user, password } => HttpLogin::Basic { user, password },
            GitSecret::Bearer(token) => HttpLogin::Bearer(token),
        };
        Ok((http, login.entry))
    }
}

/// Returns the identity at a cloud.
/// It is a service account of the automation's namespace, or this process.
async fn cloud_identity(
    source: &SourceConfiguration,
    namespace: &str,
    git: &GitClouds,
) -> Result<CloudIdentity, ProviderLoginError> {
    match (&git.accounts, &source.service_account) {
        (Some(accounts), account) => Ok(accounts.identity(namespace, account.as_deref()).await?),
        (None, Some(account)) => Err(ProviderLoginError::NoCluster {
            repository: source.repository.clone(),
            account: format!("{namespace}/{account}"),
        }),
        (None, None) => Ok(CloudIdentity::Process),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::git::LocalPaths;
    use crate::secrets::Secret;

    #[test]
    fn clouds_take_certificates_alone_from_the_secret() {
        let authority = "-----BEGIN CERTIFICATE-----\nx";
        let items = [("username", "u"), ("password", "p"), ("bearerToken", "b"), ("ca.crt", authority)];
        let data: BTreeMap<String, Secret> =
            items.iter().map(|(key, value)| ((*key).to_owned(), Secret::new(*value))).collect();
        for (provider, url) in [
            (GitProvider::Azure, "https://dev.azure.com/org/project/_git/fleet"),
            (GitProvider::Aws, "https://git-codecommit.us-east-1.amazonaws.com/v1/repos/fleet"),
        ] {
            let url = RemoteUrl::parse(url, LocalPaths::Refused).unwrap();
            let secret = SecretData { name: "apps/login", data: &data };
            let (credentials, login) = ProviderLogin::plan(&provider, &url, Some(secret), None).unwrap();
            assert!(matches!(credentials.login, HttpLogin::Anonymous), "{provider}");
            assert!(credentials.authority.is_some(), "{provider}");
            // Not for the cloud: an object could read the controller's credentials.
            assert!(login.route.tls.authority.is_none(), "{provider}");
        }
    }
}
