//! HTTP client of one requester: retries, backoff, redirects and limits.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use url::Url;

use super::deadline::Deadline;
use super::error::HttpError;
use super::options::HttpOptions;
use super::pauses::{Pauses, Requester};
use super::rate_limit::{RateLimiters, ServerRoute, Slot};
use super::redirect::target;
use super::request::Request;
use super::response::Response;
use super::route::Route;
use super::text::origin;
use super::transport::{Exchanged, Reserve, Reserved, Transport, forbidden_address};
use crate::metrics::SlotResource;
use crate::net::{LocalAddresses, SsrfGuard};
use crate::secrets::Fingerprint;
use crate::tenancy::{Capacity, FairSemaphore, IdleCache, MemoryReservation, Permit, SlotLimits};

/// The maximum number of redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// The pauses before the first and the second retry.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];

/// The maximum number of cached transports. Each takes about 0.15 MiB.
const MAX_TRANSPORTS: usize = 256;

/// The time after which an unused transport is evicted. Its idle connections are closed sooner.
const MAX_IDLE: Duration = Duration::from_secs(5 * 60);

/// The maximum number of lists of which further pages are read at the same time.
const PAGED_LISTS: usize = 32;

/// State and limits that requests over all routes share.
#[derive(Debug)]
pub(crate) struct ClientState {
    /// The rate limiters of servers.
    limiters: RateLimiters,
    /// The pauses that servers asked for.
    pauses: Pauses,
    /// The connections of all routes.
    ///
    /// An evicted transport lives as long as the requests that use it, whose number is bounded.
    transports: Mutex<IdleCache<Fingerprint, Arc<Transport>>>,
    /// Slots of lists that are read beyond their first page.
    /// Each of these lists holds tags in memory meanwhile.
    paging: FairSemaphore,
    /// Threads and memory of the process.
    capacity: Capacity,
}

impl ClientState {
    pub(crate) fn new(options: &HttpOptions) -> Self {
        Self {
            limiters: RateLimiters::new(options.rate_limits),
            pauses: Pauses::default(),
            transports: Mutex::new(IdleCache::new(MAX_TRANSPORTS, MAX_IDLE)),
            paging: FairSemaphore::new(SlotLimits::shared(PAGED_LISTS)),
            capacity: options.capacity.clone(),
        }
    }
}

/// Sends the requests of one requester over one route.
///
/// It holds no connections: a transport is looked up or made once a request has its slot, so there are never more
/// transports than slots.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    route: Arc<Route>,
    route_fingerprint: Fingerprint,
    /// The key of the transport in the cache of transports.
    key: Fingerprint,
    guard: SsrfGuard,
    options: Arc<HttpOptions>,
    state: Arc<ClientState>,
    requester: Requester,
}

impl Client {
    pub(crate) fn new(
        route: Route,
        options: Arc<HttpOptions>,
        state: Arc<ClientState>,
        requester: Requester,
    ) -> Self {
        // Connections over an object's own proxy or certificates are not shared with other namespaces.
        let owner = if route.is_own() { requester.namespace.as_str() } else { "" };
        let is_open = [u8::from(options.local_addresses == LocalAddresses::Allowed)];
        let key = Fingerprint::of([owner.as_bytes(), route.fingerprint().as_bytes(), &is_open]);
        let guard = SsrfGuard::new(options.local_addresses, &route.proxy, options.capacity.lookups.clone());
        Self {
            route_fingerprint: route.server_fingerprint(),
            route: Arc::new(route),
            key,
            guard,
            options,
            state,
            requester,
        }
    }

    /// Returns a client for the same route that acts for another requester.
    pub(crate) fn on_behalf_of(&self, requester: Requester) -> Self {
        Self { requester, ..self.clone() }
    }

    /// Returns the transport of this route, from the cache or newly made.
    ///
    /// # Errors
    ///
    /// If certificates or the proxy's address cannot be used.
    pub(crate) async fn transport(&self) -> Result<Arc<Transport>, HttpError> {
        let cached = self.state.transports.lock().get(&self.key);
        if let Some(transport) = cached {
            return Ok(transport);
        }
        // The certificates come from a Secret and must be parsed, so this runs on a blocking thread.
        let (route, options) = (Arc::clone(&self.route), Arc::clone(&self.options));
        let namespace = &self.requester.namespace;
        let made = self.state.capacity.pool.run(namespace, move || Transport::new(&route, &options)).await;
        let transport = Arc::new(made?);
        self.state.transports.lock().insert(namespace, self.key, Arc::clone(&transport));
        Ok(transport)
    }

    /// Sends a request with retries, and reads the response; its status may be an error.
    ///
    /// If a server is busy, or a connection breaks, the request is retried. A server that asks for a pause gets no
    /// request of this requester meanwhile; if the deadline does not leave time for that, its response is returned at
    /// once.
    pub(crate) async fn send(&self, request: &Request, deadline: &Deadline) -> Result<Response, HttpError> {
        deadline.limit(|| request.describe(), Box::pin(self.send_with_retries(request, deadline))).await
    }

    async fn send_with_retries(&self, request: &Request, deadline: &Deadline) -> Result<Response, HttpError> {
        let mut pauses = RETRY_DELAYS.iter().filter(|_| request.is_retried);
        loop {
            let result = self.follow(request, deadline).await;
            let retry_after = result.as_ref().ok().and_then(Response::retry_after);
            if let (Some(retry_after), Ok(response)) = (retry_after, &result) {
                // Pauses the server that responded, not the one that redirected to it.
                let target = self.target(&response.url);
                self.state.pauses.pause(&target, &self.requester, Instant::now() + retry_after);
            }
            let is_transient = match &result {
                Ok(response) => response.is_transient(),
                Err(error) => error.is_transient(),
            };
            let Some(pause) = pauses.next().filter(|_| is_transient) else { return result };
            let pause = retry_after.unwrap_or_default().max(with_jitter(*pause, (self.options.jitter)()));
            if !deadline.has_time_for(pause) {
                return result;
            }
            drop(result);
            sleep(pause).await;
        }
    }

    /// Sends a request and follows its redirects.
    async fn follow(&self, request: &Request, deadline: &Deadline) -> Result<Response, HttpError> {
        let asked = request.url.origin();
        let mut request = request.clone();
        for _ in 0..=MAX_REDIRECTS {
            let is_foreign = request.url.origin() != asked;
            // Boxed: thousands of requests may wait for a slot, and an exchange is a large future.
            let response = Box::pin(self.exchange(&request, is_foreign, deadline)).await?;
            let is_redirect =
                !request.keeps_redirects && matches!(response.status.as_u16(), 301 | 302 | 303 | 307 | 308);
            let location = response.location().filter(|_| is_redirect);
            let Some(location) = location else { return Ok(response) };
            let target = target(&request, location).map_err(|defect| HttpError::Redirect {
                request: request.describe(),
                to: request.url.join(location).map_or_else(|_| "elsewhere".to_owned(), |url| origin(&url)),
                defect,
            })?;
            if target.origin() != request.url.origin() {
                request.authorization = None;
                request.is_redirected = true;
            }
            request.url = target;
        }
        let (request, to) = (request.describe(), origin(&request.url));
        Err(HttpError::Redirect { request, to, defect: "there were too many redirects" })
    }

    /// Sends a request once, after its server has granted a slot.
    async fn exchange(
        &self,
        request: &Request,
        is_foreign: bool,
        deadline: &Deadline,
    ) -> Result<Response, HttpError> {
        let Self { state, requester, .. } = self;
        let admitted = self.guard.admit(&requester.namespace, &request.url).await;
        admitted.map_err(|refusal| forbidden_address(request, refusal.to_string()))?;
        let target = self.target(&request.url);
        let mut reserved = None;
        loop {
            let holding = reserved.as_ref().map(|reserved: &Reserved| reserved.deadline.clone());
            let until = holding.as_ref().unwrap_or(deadline);
            let (memory, namespace) = (&state.capacity.memory, &requester.namespace);
            let reserve = Reserve { memory, namespace, deadline, reserved: reserved.take() };
            let attempt = async {
                let _slot = self.acquire_slot(&target, until).await?;
                self.transport().await?.exchange(request, is_foreign, reserve).await
            };
            let bytes = match until.limit(|| request.describe(), attempt).await? {
                Exchanged::Response(response) => return Ok(*response),
                Exchanged::NeedsMemory(bytes) => bytes,
            };
            let memory = self.reserve(bytes, deadline).await?;
            reserved = Some(Reserved { bytes, memory, deadline: self.holding_memory(deadline) });
        }
    }

    /// Waits for a slot of a server.
    /// A pause is waited out without holding a slot.
    async fn acquire_slot(&self, target: &ServerRoute, deadline: &Deadline) -> Result<Slot, HttpError> {
        let Self { state, requester, .. } = self;
        loop {
            self.wait_for_pause(target, deadline).await?;
            let begin = Instant::now();
            let slot = state.limiters.acquire(target, &requester.namespace).await;
            if let Some(metrics) = &self.options.metrics {
                metrics.slot_waited(SlotResource::registry, &requester.namespace, begin.elapsed());
            }
            if state.pauses.remaining(target, requester).is_none() {
                return Ok(slot);
            }
        }
    }

    /// Returns the server of an address, as reached over this route.
    fn target(&self, url: &Url) -> ServerRoute {
        let host = url.host_str().unwrap_or_default();
        let server = match url.port_or_known_default() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        ServerRoute { server: server.into(), route: self.route_fingerprint }
    }

    async fn wait_for_pause(&self, target: &ServerRoute, deadline: &Deadline) -> Result<(), HttpError> {
        let Self { state, requester, .. } = self;
        if let Some(pause) = state.pauses.remaining(target, requester)
            && !deadline.has_time_for(pause)
        {
            let (server, pause) = (target.server.to_string(), whole_seconds(pause));
            return Err(HttpError::Paused { server, pause });
        }
        state.pauses.wait(target, requester).await;
        Ok(())
    }

    /// Processes a response of so many bytes, on a blocking thread if they are many.
    pub(crate) async fn process<T: Send + 'static>(
        &self,
        bytes: usize,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        self.state.capacity.pool.run_sized(&self.requester.namespace, bytes, job).await
    }

    /// Reserves memory; the deadline is postponed meanwhile.
    ///
    /// The memory may be held until [`Self::holding_memory`] at most.
    ///
    /// # Errors
    ///
    /// If none is free for too long.
    pub(crate) async fn reserve(
        &self,
        bytes: u64,
        deadline: &Deadline,
    ) -> Result<MemoryReservation, HttpError> {
        deadline.wait_for(self.state.capacity.memory.reserve(&self.requester.namespace, bytes)).await
    }

    /// Returns the deadline of work that holds memory from now on.
    pub(crate) fn holding_memory(&self, deadline: &Deadline) -> Deadline {
        deadline.holding_memory(self.options.timeouts.with_memory)
    }

    /// Waits for a slot to read further pages of a list.
    /// The deadline is postponed meanwhile.
    ///
    /// # Errors
    ///
    /// If none is free for too long.
    pub(crate) async fn page_slot(&self, deadline: &Deadline) -> Result<Permit, HttpError> {
        deadline.wait_for(self.state.paging.acquire(&self.requester.namespace, 1)).await
    }
}

/// Adds jitter of up to 10 % to a pause, so that retries spread out.
///
/// `jitter` is from 0 to 1.
fn with_jitter(pause: Duration, jitter: f64) -> Duration {
    pause.mul_f64(1.0 + jitter.clamp(0.0, 1.0) / 10.0)
}

fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs() + u64::from(time.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_delays_have_jitter_of_a_tenth() {
        for (jitter, milliseconds) in [(0.0, 1000), (0.5, 1050), (1.0, 1100), (7.0, 1100), (-1.0, 1000)] {
            assert_eq!(
                with_jitter(Duration::from_secs(1), jitter),
                Duration::from_millis(milliseconds),
                "{jitter}"
            );
        }
    }
}
