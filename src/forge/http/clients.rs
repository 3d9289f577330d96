//! The state that all calls to forges share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use url::Url;

use super::credential::ForgeCredential;
use super::etag_cache::EtagCache;
use super::rate_limit::{ForgeRateLimits, LimiterKey, RateLimiters};
use super::transport::{ApiLogin, HttpTransport};
use crate::forge::error::ForgeError;
use crate::forge::kind::ForgeKind;
use crate::metrics::Metrics;
use crate::net::http::{HttpError, Route};
use crate::net::{HttpClientOptions, LocalAddresses, SsrfGuard};
use crate::secrets::Fingerprint;
use crate::tenancy::{Capacity, IdleCache};

/// The timeout of a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// The timeout of a call.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum number of clients that are kept. Each takes about 0.15 MiB.
const MAX_CLIENTS: usize = 256;

/// The time after which an unused client is dropped.
const MAX_IDLE: Duration = Duration::from_secs(5 * 60);

/// The options of all calls to forges.
#[derive(Clone, Debug)]
pub struct ForgeClientOptions {
    /// The rate limits of a login.
    pub rate_limits: ForgeRateLimits,
    /// The timeout of a call.
    pub timeout: Duration,
    /// True if a server that gave no answer in time is not asked again.
    pub gives_up: bool,
    /// The policy for addresses of this machine and its link.
    pub local_addresses: LocalAddresses,
    /// The threads of the process.
    pub capacity: Capacity,
    /// The metrics.
    pub metrics: Metrics,
}

impl Default for ForgeClientOptions {
    fn default() -> Self {
        Self {
            rate_limits: ForgeRateLimits::default(),
            timeout: TIMEOUT,
            gives_up: false,
            local_addresses: LocalAddresses::Allowed,
            capacity: Capacity::default(),
            metrics: Metrics::default(),
        }
    }
}

/// The connections, rate limiters and cached responses of all calls to forges. Clones share them.
#[derive(Clone, Debug)]
pub struct ForgeClients(Arc<ForgeState>);

#[derive(Debug)]
pub(super) struct ForgeState {
    pub(super) options: ForgeClientOptions,
    pub(super) limiters: RateLimiters,
    pub(super) cache: EtagCache,
    clients: Mutex<IdleCache<Fingerprint, reqwest::Client>>,
    /// The errors of servers that are not asked again, by origin and route.
    silent: Mutex<BTreeMap<(String, Fingerprint), ForgeError>>,
}

impl Default for ForgeClients {
    fn default() -> Self {
        Self::new(ForgeClientOptions::default())
    }
}

impl ForgeClients {
    /// Makes the state without any connection.
    pub fn new(options: ForgeClientOptions) -> Self {
        Self(Arc::new(ForgeState {
            limiters: RateLimiters::new(options.rate_limits),
            cache: EtagCache::default(),
            clients: Mutex::new(IdleCache::new(MAX_CLIENTS, MAX_IDLE)),
            silent: Mutex::default(),
            options,
        }))
    }

    /// Returns a transport for an API with a login.
    ///
    /// # Errors
    ///
    /// If the address has no host, or a header cannot carry the login.
    pub fn transport(
        &self,
        kind: ForgeKind,
        base: Url,
        login: ApiLogin,
    ) -> Result<HttpTransport, ForgeError> {
        HttpTransport::new(Arc::clone(&self.0), kind, base, login)
    }
}

impl ForgeState {
    /// Returns the client of a namespace for a route, from the cache or newly made.
    ///
    /// # Errors
    ///
    /// If the proxy or the certificates cannot be used.
    pub(super) async fn client(
        &self,
        key: &LimiterKey,
        route: &Arc<Route>,
    ) -> Result<reqwest::Client, String> {
        let fingerprint = Fingerprint::of([key.namespace.as_bytes(), key.route.as_bytes()]);
        let cached = self.clients.lock().get(&fingerprint);
        if let Some(client) = cached {
            return Ok(client);
        }
        let ForgeClientOptions { timeout, local_addresses, ref capacity, .. } = self.options;
        let (route, lookups) = (Arc::clone(route), capacity.lookups.clone());
        let connect = move || -> Result<_, HttpError> {
            let proxy = route.proxy.clone();
            let timeouts = HttpClientOptions::with_timeouts(CONNECT, timeout);
            let options = HttpClientOptions { proxy, local_addresses, lookups, ..timeouts };
            Ok(route.tls.apply(options)?.build()?)
        };
        let client = capacity.pool.run(&key.namespace, connect).await.map_err(|error| error.to_string())?;
        self.clients.lock().insert(&key.namespace, fingerprint, client.clone());
        Ok(client)
    }

    /// Takes note of the error of a server that gave no answer in time.
    pub(super) fn note_silence(&self, key: &LimiterKey, error: &ForgeError) {
        if self.options.gives_up {
            let server = (key.origin.clone(), key.route);
            self.silent.lock().entry(server).or_insert_with(|| error.clone());
        }
    }

    /// Returns the error of a server that is not asked again.
    pub(super) fn silence(&self, key: &LimiterKey) -> Option<ForgeError> {
        self.silent.lock().get(&(key.origin.clone(), key.route)).cloned()
    }

    /// Returns the SSRF guard of a route.
    pub(super) fn guard(&self, route: &Route) -> SsrfGuard {
        let ForgeClientOptions { local_addresses, capacity, .. } = &self.options;
        SsrfGuard::new(*local_addresses, &route.proxy, capacity.lookups.clone())
    }
}

/// Returns the key of a login at the server of an address.
pub(super) fn limiter_key(base: &Url, namespace: &str, route: &Route, login: &ForgeCredential) -> LimiterKey {
    LimiterKey {
        namespace: namespace.to_owned(),
        origin: base.origin().ascii_serialization(),
        route: route.fingerprint(),
        login: login.fingerprint(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::ProxyChoice;
    use crate::secrets::Secret;

    #[test]
    fn a_renewed_token_keeps_its_rate_limits_and_not_the_cached_responses() {
        let clients = ForgeClients::default();
        let transport = |token: &str, identity: Option<&str>| {
            let login = ApiLogin {
                namespace: "apps".to_owned(),
                owner: "Secret apps/app".to_owned(),
                credential: ForgeCredential::Bearer(Secret::new(token)),
                identity: identity.map(|identity| Fingerprint::of([identity])),
                route: Route { proxy: ProxyChoice::Direct, ..Route::default() },
            };
            let base = Url::parse("https://api.github.com").unwrap();
            clients.transport(ForgeKind::Github, base, login).unwrap()
        };
        let keys = |token, identity| {
            let transport = transport(token, identity);
            let (cache, limiter) = transport.keys();
            (cache.clone(), limiter.clone())
        };
        let (first, second) = (keys("one", Some("app")), keys("two", Some("app")));
        assert!(first.1 == second.1 && first.0 != second.0);
        assert_ne!(first.1, keys("one", Some("other")).1);
        let personal = [keys("one", None), keys("two", None)];
        assert!(personal[0].1 != personal[1].1 && personal[0].0 == personal[0].1);
    }
}
