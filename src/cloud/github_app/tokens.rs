//! Installation tokens of GitHub Apps, each for one repository, and their cache.

use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::api::TokenRequest;
use super::keys::GithubApp;
use crate::cloud::LoginError;
use crate::cloud::cache::{CredentialCache, CredentialCacheOptions, Expiring, MIN_GIT_ENTRIES};
use crate::cloud::clouds::Clouds;
use crate::cloud::git_login::fingerprint_of;
use crate::net::http::{Requester, Route};
use crate::secrets::{Fingerprint, Secret};
use crate::tenancy::FairCache;

/// The limits of the cache of installations, which do not expire.
const INSTALLATIONS: CredentialCacheOptions =
    CredentialCacheOptions { max_entries: MIN_GIT_ENTRIES, max_ttl: Duration::MAX };

/// A request for the installation token of an App for one repository.
#[derive(Debug, Clone, Copy)]
pub struct AppTokenRequest<'r> {
    /// The App with its key, its installation and the base URL of the API.
    pub app: &'r GithubApp,
    /// The name of the repository, without its owner.
    pub repository: &'r str,
    /// The route to the API.
    pub route: &'r Route,
    /// The namespace of the object.
    pub namespace: &'r str,
    /// The time of the request.
    pub now: Timestamp,
}

/// The tokens of Apps, and what is known of their installations.
#[derive(Debug)]
pub(in crate::cloud) struct AppTokens {
    tokens: CredentialCache<Secret>,
    /// The installations that were looked up, by App in its namespace.
    installations: CredentialCache<u64>,
    /// The tokens that are unrestricted, which was logged.
    unrestricted: Mutex<FairCache<Fingerprint, ()>>,
}

impl AppTokens {
    pub(in crate::cloud) fn new(options: CredentialCacheOptions) -> Self {
        Self {
            tokens: CredentialCache::new(options.of_git()),
            installations: CredentialCache::new(INSTALLATIONS),
            unrestricted: Mutex::new(FairCache::new(MIN_GIT_ENTRIES)),
        }
    }

    /// Has a token requested again, because a server refused it.
    pub(in crate::cloud) fn refuse(&self, key: Fingerprint, refused: Fingerprint) {
        self.tokens.refuse(key, |token| fingerprint_of(token) == refused);
    }
}

impl AppTokenRequest<'_> {
    /// Returns the cache key of the token.
    pub(in crate::cloud) fn key(&self) -> Fingerprint {
        Fingerprint::of([self.owner().as_bytes(), self.repository.as_bytes()])
    }

    /// Returns a fingerprint of the App in its namespace, over its route.
    fn owner(&self) -> Fingerprint {
        let (app, route) = (self.app.fingerprint(), self.route.fingerprint());
        Fingerprint::of([self.namespace.as_bytes(), app.as_bytes(), route.as_bytes()])
    }
}

impl Clouds {
    /// Returns the installation token of an App, from the cache or newly requested.
    ///
    /// # Errors
    ///
    /// If GitHub gives none.
    pub async fn app_token(&self, request: AppTokenRequest<'_>) -> Result<Secret, LoginError> {
        let AppTokenRequest { namespace, now, .. } = request;
        let fetch = Box::pin(self.fetch_app_token(request));
        Ok(self.apps.tokens.get(namespace, request.key(), now, fetch).await?.value)
    }

    async fn fetch_app_token(&self, request: AppTokenRequest<'_>) -> Result<Expiring<Secret>, LoginError> {
        let AppTokenRequest { app, repository, route, namespace, now } = request;
        let (owner, installations) = (request.owner(), &self.apps.installations);
        let requester = Requester { namespace: namespace.to_owned(), login: owner };
        let asking = TokenRequest { app, repository, route, requester, now };
        let lookup = async {
            let value = asking.installation(&self.network).await?;
            Ok(Expiring { value, expires_at: Some(Timestamp::MAX) })
        };
        let installation = installations.get(namespace, owner, now, lookup).await?.value;
        let Some(issued) = asking.token(installation, &self.network).await? else {
            // The App may have been installed anew.
            installations.forget(owner, |known| *known == installation);
            return Err(asking.not_installed(installation));
        };
        if issued.is_unrestricted {
            self.warn_once(&request);
        }
        Ok(issued.token)
    }

    /// Logs that a token is not restricted to the repository.
    fn warn_once(&self, request: &AppTokenRequest<'_>) {
        let (key, mut known) = (request.key(), self.apps.unrestricted.lock());
        if known.get(&key).is_some() {
            return;
        }
        known.insert(request.namespace, key, ());
        let (repository, app) = (request.repository, request.app.id);
        tracing::warn!(
            "GitHub gives no token for the repository '{repository}' alone, so that of the GitHub App {app} is valid for all \
             repositories of the installation: if the repository was renamed, correct spec.url of the GitRepository; otherwise \
             install the App on it"
        );
    }
}
