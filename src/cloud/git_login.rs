//! Logins at git servers, by the providers of Flux.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use tagboat_api::git_repository::GitProvider;
use url::Url;

use super::account::CloudIdentity;
use super::aws::{AwsCredentials, CodeCommit};
use super::azure::DevOps;
use super::cache::{CredentialCache, CredentialCacheOptions};
use super::clouds::Clouds;
use super::context::LoginContext;
use super::error::LoginError;
use super::github_app::{AppTokenRequest, GithubApp};
use crate::net::http::Route;
use crate::secrets::{Fingerprint, Secret};

/// The user of installation tokens.
const APP_USER: &str = "x-access-token";

/// The identity that logs in at a git server.
#[derive(Debug, Clone)]
pub enum GitIdentity {
    /// An identity at AWS, for CodeCommit.
    Aws(CloudIdentity),
    /// An identity at Azure, for Azure DevOps.
    Azure(CloudIdentity),
    /// A GitHub App.
    Github(GithubApp),
}

/// Checks that a provider knows the server of a repository.
///
/// # Errors
///
/// If the provider is azure or aws, and the URL is none of Azure DevOps or CodeCommit.
pub fn check_git_url(provider: &GitProvider, url: &Url) -> Result<(), LoginError> {
    match provider {
        GitProvider::Azure => DevOps::parse(url).map(drop),
        GitProvider::Aws => CodeCommit::parse(url).map(drop),
        _ => Ok(()),
    }
}

/// A request for the login at a git server.
#[derive(Debug, Clone, Copy)]
pub struct GitLoginRequest<'r> {
    /// The identity that logs in.
    pub identity: &'r GitIdentity,
    /// The URL of the repository.
    pub url: &'r Url,
    /// The route of the object; logins at clouds use its proxy alone.
    pub route: &'r Route,
    /// The namespace of the object.
    pub namespace: &'r str,
    /// The time of the login.
    pub now: Timestamp,
}

/// A login at a git server.
#[derive(Debug, Clone)]
pub struct GitLogin {
    /// The login.
    pub secret: GitSecret,
    /// The entry of the credential cache.
    pub entry: GitLoginEntry,
}

/// The secret of a login at a git server.
#[derive(Debug, Clone)]
pub enum GitSecret {
    /// User and password.
    Basic {
        /// The user.
        user: Secret,
        /// The password.
        password: Secret,
    },
    /// A bearer token.
    Bearer(Secret),
}

/// The entry of a login in the credential cache.
#[derive(Debug, Clone)]
pub struct GitLoginEntry {
    clouds: Arc<Clouds>,
    key: Fingerprint,
    /// The fingerprint of the token or of the keys.
    secret: Fingerprint,
    /// True if each login is signed with its own time.
    is_signature: bool,
    /// True if a server refused the login. Clones share it.
    is_refused: Arc<AtomicBool>,
}

/// Logins at git servers, and what they are made from.
#[derive(Debug)]
pub(super) struct GitLogins {
    tokens: CredentialCache<Secret>,
    aws_credentials: CredentialCache<AwsCredentials>,
}

impl GitLogins {
    pub(super) fn new(options: CredentialCacheOptions) -> Self {
        let options = options.of_git();
        Self { tokens: CredentialCache::new(options), aws_credentials: CredentialCache::new(options) }
    }
}

impl GitLoginEntry {
    /// Has the token of this login requested again, because the git server refused it.
    ///
    /// A token that replaces a refused one is kept.
    pub fn refuse(&self) {
        if self.is_refused.swap(true, Ordering::SeqCst) {
            return;
        }
        let Self { clouds, key, secret, .. } = self;
        clouds.git.tokens.refuse(*key, |token| fingerprint_of(token) == *secret);
        clouds.git.aws_credentials.refuse(*key, |keys| keys.fingerprint() == *secret);
        clouds.apps.refuse(*key, *secret);
    }

    /// Returns true for a login that is signed with its own time.
    ///
    /// CodeCommit answers 403 to a signature that is too old.
    pub fn is_signature(&self) -> bool {
        self.is_signature
    }

    /// Returns a fingerprint that stays the same when the token is renewed.
    pub fn identity(&self) -> Fingerprint {
        self.key
    }

    /// Returns true if a server refused the login.
    pub fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::SeqCst)
    }
}

impl Clouds {
    /// Returns the cache entry of an App's token.
    pub fn app_entry(self: &Arc<Self>, request: &AppTokenRequest<'_>, token: &Secret) -> GitLoginEntry {
        self.entry(request.key(), fingerprint_of(token), false)
    }

    fn entry(self: &Arc<Self>, key: Fingerprint, secret: Fingerprint, is_signature: bool) -> GitLoginEntry {
        GitLoginEntry { clouds: Arc::clone(self), key, secret, is_signature, is_refused: Arc::default() }
    }

    /// Returns the login at a git server, from the cache or newly made.
    ///
    /// # Errors
    ///
    /// If the URL is not of the provider, or the provider gives no credential.
    pub async fn git_login(self: &Arc<Self>, request: GitLoginRequest<'_>) -> Result<GitLogin, LoginError> {
        let GitLoginRequest { identity, url, namespace, now, .. } = request;
        let key = request.key();
        let (secret, fingerprint) = match identity {
            GitIdentity::Aws(identity) => {
                let repository = CodeCommit::parse(url)?;
                let find = repository.find(self.context(identity, &request));
                let credentials = self.git.aws_credentials.get(namespace, key, now, find).await?.value;
                let (user, password) = repository.login(&credentials, now);
                (GitSecret::Basic { user, password }, credentials.fingerprint())
            }
            GitIdentity::Azure(identity) => {
                let token = DevOps::parse(url)?.token(self.context(identity, &request));
                let token = self.git.tokens.get(namespace, key, now, token).await?.value;
                let fingerprint = fingerprint_of(&token);
                (GitSecret::Bearer(token), fingerprint)
            }
            GitIdentity::Github(app) => {
                let password = self.app_token(request.of_app(app)).await?;
                let fingerprint = fingerprint_of(&password);
                (GitSecret::Basic { user: Secret::new(APP_USER), password }, fingerprint)
            }
        };
        let entry = self.entry(key, fingerprint, matches!(identity, GitIdentity::Aws(_)));
        Ok(GitLogin { secret, entry })
    }

    fn context<'c>(&'c self, identity: &'c CloudIdentity, request: &GitLoginRequest<'c>) -> LoginContext<'c> {
        let GitLoginRequest { route, namespace, now, .. } = *request;
        LoginContext {
            options: &self.options,
            network: &self.network,
            identity,
            proxy: &route.proxy,
            namespace,
            tenant: namespace,
            scope: namespace,
            now,
        }
    }
}

impl<'r> GitLoginRequest<'r> {
    /// Returns the cache key of the login.
    fn key(&self) -> Fingerprint {
        let (provider, identity) = match self.identity {
            GitIdentity::Aws(identity) => ("aws", identity.fingerprint()),
            GitIdentity::Azure(identity) => ("azure", identity.fingerprint()),
            GitIdentity::Github(app) => return self.of_app(app).key(),
        };
        Fingerprint::of([
            self.namespace.as_bytes(),
            provider.as_bytes(),
            identity.as_bytes(),
            self.route.fingerprint().as_bytes(),
            self.url.as_str().as_bytes(),
        ])
    }

    fn of_app(&self, app: &'r GithubApp) -> AppTokenRequest<'r> {
        let Self { url, route, namespace, now, .. } = *self;
        AppTokenRequest { app, repository: repository_name(url), route, namespace, now }
    }
}

/// Returns the fingerprint of a token.
pub(super) fn fingerprint_of(token: &Secret) -> Fingerprint {
    Fingerprint::of([token.expose()])
}

/// Returns the name of a repository at GitHub, from its URL.
fn repository_name(url: &Url) -> &str {
    let path = url.path().trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or_default();
    name.strip_suffix(".git").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_repository_is_the_end_of_its_path() {
        for (url, name) in [
            ("https://github.com/org/fleet", "fleet"),
            ("https://github.com/org/fleet.git", "fleet"),
            ("https://github.com/org/fleet.git/", "fleet"),
            ("https://github.com/org/.github", ".github"),
        ] {
            assert_eq!(repository_name(&Url::parse(url).unwrap()), name);
        }
    }
}
