//! Probes of registries with `GET /v2/`: their scheme and their login challenge.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use parking_lot::Mutex;
use reqwest::StatusCode;
use tokio::time::{Instant, timeout};
use url::Url;

use super::challenge::Challenge;
use super::error::RegistryError;
use crate::net::http::Deadline;
use crate::net::http::Request;
use crate::net::http::{Client, HttpError};
use crate::reference::{RepositoryAddress, Scheme};
use crate::secrets::Fingerprint;
use crate::tenancy::{FairCache, InUseMap};

/// The maximum size in bytes of the response to a probe.
const MAX_RESPONSE: usize = 64 * 1024;

/// The time for which the result of a probe is used.
const PROBE_TTL: Duration = Duration::from_secs(60 * 60);

/// The head start of an encrypted connection before one without TLS is tried too.
const HEAD_START: Duration = Duration::from_millis(300);

/// The maximum number of registries whose probe is cached.
const MAX_SERVERS: usize = 1024;

/// The response of a registry to `GET /v2/`, sent without credentials or repository.
///
/// Only this is shared between namespaces. Responses about a path are a tenant's, and belong to its session.
#[derive(Debug)]
pub(super) struct Server {
    /// The registry's address, with `/` at the end.
    pub(super) base: Url,
    /// The login that the registry asks for.
    pub(super) challenge: Option<Challenge>,
    /// The time of the response.
    pub(super) probed_at: Instant,
}

/// The probed registries, by name and route.
#[derive(Debug)]
pub(super) struct Servers {
    known: Mutex<FairCache<ServerKey, Arc<Server>>>,
    /// The locks of probes in flight.
    ///
    /// Concurrent requests of one namespace share a probe; requests of another namespace do not wait behind the queue
    /// of the first.
    probes: Mutex<InUseMap<(ServerKey, String), tokio::sync::Mutex<()>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ServerKey {
    registry: String,
    allows_http: bool,
    route: Fingerprint,
}

impl Default for Servers {
    fn default() -> Self {
        Self { known: Mutex::new(FairCache::new(MAX_SERVERS)), probes: Mutex::default() }
    }
}

impl Servers {
    /// Returns the registry of an address, probing it for a namespace if necessary.
    pub(super) async fn probe(
        &self,
        address: &RepositoryAddress,
        namespace: &str,
        route: Fingerprint,
        client: &Client,
        deadline: &Deadline,
    ) -> Result<Arc<Server>, RegistryError> {
        let key = ServerKey::new(address, route);
        if let Some(server) = self.known(&key) {
            return Ok(server);
        }
        let flight = self.probes.lock().get((key.clone(), namespace.to_owned()));
        let _flight = flight.lock().await;
        if let Some(server) = self.known(&key) {
            return Ok(server);
        }
        let server = Arc::new(probe_schemes(address, client, deadline).await?);
        let mut known = self.known.lock();
        known.retain_if_full(|_, server| server.is_fresh());
        known.insert(namespace, key, Arc::clone(&server));
        Ok(server)
    }

    /// Drops the cached probe of a registry that has become unreachable.
    pub(super) fn forget(&self, address: &RepositoryAddress, route: Fingerprint) {
        self.known.lock().remove(&ServerKey::new(address, route));
    }

    fn known(&self, key: &ServerKey) -> Option<Arc<Server>> {
        self.known.lock().get(key).filter(|server| server.is_fresh()).map(|server| Arc::clone(server))
    }
}

impl Server {
    fn is_fresh(&self) -> bool {
        self.probed_at.elapsed() < PROBE_TTL
    }
}

impl ServerKey {
    fn new(address: &RepositoryAddress, route: Fingerprint) -> Self {
        let allows_http = address.scheme() == Scheme::Http;
        Self { registry: address.registry().to_owned(), allows_http, route }
    }
}

/// Probes a registry for its scheme: TLS first, without it only if that is allowed.
async fn probe_schemes(
    address: &RepositoryAddress,
    client: &Client,
    deadline: &Deadline,
) -> Result<Server, RegistryError> {
    let registry = address.registry();
    let base = |scheme: Scheme| format!("{}://{registry}/", scheme.as_str());
    if address.scheme() == Scheme::Https {
        let probed = ping(&base(Scheme::Https), true, client, deadline).await;
        return probed.map_err(RegistryError::with_insecure_advice);
    }
    let neither = |secured: RegistryError, plain: RegistryError| RegistryError::NeitherScheme {
        secured: Box::new(secured),
        plain: Box::new(plain),
    };
    let (secured, plain) = (base(Scheme::Https), base(Scheme::Http));
    // One attempt per scheme is enough if both schemes are tried.
    let mut secured = pin!(ping(&secured, false, client, deadline));
    let refused = match timeout(HEAD_START, &mut secured).await {
        Ok(Ok(server)) => return Ok(server),
        Ok(Err(error @ RegistryError::Forbidden { .. })) => return Err(error),
        Ok(Err(error)) => Some(error),
        Err(_) => None,
    };
    let plain = pin!(ping(&plain, true, client, deadline));
    if let Some(refused) = refused {
        return plain.await.map_err(|error| neither(refused, error));
    }
    match select(secured, plain).await {
        Either::Left((Ok(server), _)) | Either::Right((Ok(server), _)) => Ok(server),
        Either::Left((Err(first), plain)) => plain.await.map_err(|second| neither(first, second)),
        Either::Right((Err(second), secured)) => secured.await.map_err(|first| neither(first, second)),
    }
}

/// Sends `GET /v2/` without credentials.
async fn ping(
    base: &str,
    is_retried: bool,
    client: &Client,
    deadline: &Deadline,
) -> Result<Server, RegistryError> {
    let address = Url::parse(base).and_then(|base| Ok((base.join("v2/")?, base)));
    let (url, base) = address.map_err(|error| HttpError::Malformed {
        request: format!("GET {base}v2/"),
        defect: error.to_string(),
    })?;
    let request = Request::get(url, MAX_RESPONSE);
    let request = if is_retried { request } else { request.without_retries() };
    let asked = request.url.host_str().map(str::to_owned);
    let response = client.send(&request, deadline).await.map_err(|error| match error {
        HttpError::ForbiddenRedirect { host, message, .. } if Some(&host) == asked.as_ref() => {
            RegistryError::Forbidden { message }
        }
        error => error.into(),
    })?;
    let challenge = match response.status {
        StatusCode::OK => None,
        StatusCode::UNAUTHORIZED => Challenge::choose(response.challenges()),
        _ => return Err(response.to_error()),
    };
    Ok(Server { base, challenge, probed_at: Instant::now() })
}
