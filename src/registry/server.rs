//! What is known of a registry itself, whoever asks: how it is spoken to, and how it wants to be shown who one is.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{Either, select};
use reqwest::StatusCode;
use tokio::time::{Instant, timeout};
use url::Url;

use super::call::Call;
use super::challenge::Challenge;
use super::client::Client;
use super::deadline::Deadline;
use super::error::RegistryError;
use super::login::Fingerprint;
use crate::reference::{RepositoryAddress, Scheme};

/// How much is read of the answer to a greeting.
const LARGEST: usize = 64 * 1024;

/// How many tags are asked for on one page.
pub(super) const FULL_PAGE: usize = 1000;

/// How long what is known is not doubted.
const FRESH: Duration = Duration::from_secs(60 * 60);

/// How long an encrypted connection is waited for, before one without is tried as well.
const HEAD_START: Duration = Duration::from_millis(300);

/// From how many registries on those are forgotten that nobody uses.
const MANY: usize = 1024;

/// A registry, as it answered the first request, which shows nobody's credentials.
#[derive(Debug)]
pub(super) struct Server {
    /// Its address, with `/` at the end.
    pub(super) base: Url,
    challenge: Mutex<Option<Challenge>>,
    page: AtomicUsize,
    met: Instant,
}

impl Server {
    pub(super) fn challenge(&self) -> Option<Challenge> {
        self.challenge.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers what the registry has asked for since.
    pub(super) fn challenged(&self, challenge: Challenge) {
        *self.challenge.lock().unwrap_or_else(PoisonError::into_inner) = Some(challenge);
    }

    /// How many tags it gives on one page; `0` for as many as it likes.
    pub(super) fn page(&self) -> usize {
        self.page.load(Ordering::Relaxed)
    }

    pub(super) fn set_page(&self, page: usize) {
        self.page.store(page, Ordering::Relaxed);
    }
}

/// All registries, each by its name and the way there.
#[derive(Debug, Default)]
pub(super) struct Servers(Mutex<HashMap<ServerKey, Arc<Place>>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ServerKey {
    registry: String,
    may_be_open: bool,
    way: Fingerprint,
}

/// A registry that was met, or is being met by one while the others wait.
#[derive(Debug, Default)]
struct Place(tokio::sync::Mutex<Option<Arc<Server>>>);

impl Servers {
    /// The registry of an address; greets it first if it is not known.
    pub(super) async fn meet(
        &self,
        address: &RepositoryAddress,
        way: Fingerprint,
        client: &Client,
        deadline: &Deadline,
    ) -> Result<Arc<Server>, RegistryError> {
        let place = self.place(address, way);
        let mut known = place.0.lock().await;
        if let Some(server) = known.as_ref().filter(|server| server.met.elapsed() < FRESH) {
            return Ok(Arc::clone(server));
        }
        let server = Arc::new(greet(address, client, deadline).await?);
        *known = Some(Arc::clone(&server));
        Ok(server)
    }

    /// Greets a registry anew the next time: it could not be reached as it was before.
    pub(super) fn forget(&self, address: &RepositoryAddress, way: Fingerprint) {
        self.lock().remove(&ServerKey::new(address, way));
    }

    fn place(&self, address: &RepositoryAddress, way: Fingerprint) -> Arc<Place> {
        let mut places = self.lock();
        if places.len() >= MANY {
            places.retain(|_, place| Arc::strong_count(place) > 1);
        }
        Arc::clone(places.entry(ServerKey::new(address, way)).or_default())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ServerKey, Arc<Place>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerKey {
    fn new(address: &RepositoryAddress, way: Fingerprint) -> Self {
        let may_be_open = address.scheme() == Scheme::Http;
        Self { registry: address.registry().to_owned(), may_be_open, way }
    }
}

/// Finds out how a registry is spoken to. TLS comes first; without it only where that is allowed.
async fn greet(
    address: &RepositoryAddress,
    client: &Client,
    deadline: &Deadline,
) -> Result<Server, RegistryError> {
    let registry = address.registry();
    let base = |scheme: Scheme| format!("{}://{registry}/", scheme.as_str());
    if address.scheme() == Scheme::Https {
        let met = ping(&base(Scheme::Https), true, client, deadline).await;
        return met.map_err(RegistryError::in_the_open);
    }
    let neither = |secured: RegistryError, plain: RegistryError| RegistryError::NeitherScheme {
        secured: Box::new(secured),
        plain: Box::new(plain),
    };
    let (secured, plain) = (base(Scheme::Https), base(Scheme::Http));
    // Where both ways are tried, a broken connection says enough.
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

/// Asks a registry for nothing but an answer, without saying who asks.
async fn ping(
    base: &str,
    is_repeated: bool,
    client: &Client,
    deadline: &Deadline,
) -> Result<Server, RegistryError> {
    let address = Url::parse(base).and_then(|base| Ok((base.join("v2/")?, base)));
    let (url, base) = address.map_err(|error| RegistryError::Malformed {
        request: format!("GET {base}v2/"),
        flaw: error.to_string(),
    })?;
    let call = Call::get(url, LARGEST);
    let call = if is_repeated { call } else { call.once() };
    let asked = call.url.host_str().map(str::to_owned);
    let answer = client.send(&call, deadline).await.map_err(|error| match error {
        RegistryError::LeadsAstray { host, words, .. } if Some(&host) == asked.as_ref() => {
            RegistryError::Forbidden { words }
        }
        error => error,
    })?;
    let challenge = match answer.status {
        StatusCode::OK => None,
        StatusCode::UNAUTHORIZED => Challenge::choose(answer.challenges()),
        _ => return Err(answer.to_error()),
    };
    Ok(Server {
        base,
        challenge: Mutex::new(challenge),
        page: AtomicUsize::new(FULL_PAGE),
        met: Instant::now(),
    })
}
