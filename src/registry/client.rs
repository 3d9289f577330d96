//! HTTP client of one requester: retries, backoff, redirects and limits.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use url::Url;

use super::answer::Answer;
use super::budget::{Slot, Target};
use super::call::Call;
use super::deadline::Deadline;
use super::error::RegistryError;
use super::login::Fingerprint;
use super::options::RegistryOptions;
use super::pauses::Requester;
use super::redirect::target;
use super::refusal::origin;
use super::traffic::Traffic;
use super::transport::{Exchanged, Reserve, Reserved, Transport, astray};
use super::way::Way;
use crate::metrics::SlotResource;
use crate::net::{LocalAddresses, SsrfGuard};
use crate::tenancy::{MemoryReservation, Permit};

/// The maximum number of redirects that are followed.
const REDIRECTS: usize = 5;

/// The pauses before the first and the second retry.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];

/// Sends the requests of one requester over one route.
///
/// It holds no connections: a transport is looked up or made once a request has its slot, so there are never more
/// transports than slots.
#[derive(Debug, Clone)]
pub(super) struct Client {
    way: Arc<Way>,
    route: Fingerprint,
    /// The key of the transport in the cache of transports.
    key: Fingerprint,
    guard: SsrfGuard,
    options: Arc<RegistryOptions>,
    traffic: Arc<Traffic>,
    requester: Requester,
}

impl Client {
    pub(super) fn new(
        way: Way,
        options: Arc<RegistryOptions>,
        traffic: Arc<Traffic>,
        requester: Requester,
    ) -> Self {
        // Connections over an object's own proxy or certificates are not shared with other namespaces.
        let owner = if way.is_own() { requester.namespace.as_str() } else { "" };
        let is_open = [u8::from(options.local_addresses == LocalAddresses::Allowed)];
        let key = Fingerprint::of([owner.as_bytes(), way.fingerprint().as_bytes(), &is_open]);
        let guard = SsrfGuard::new(options.local_addresses, &way.proxy, options.capacity.lookups.clone());
        Self { route: way.route(), way: Arc::new(way), key, guard, options, traffic, requester }
    }

    /// Returns a client for the same route that acts for another requester.
    pub(super) fn on_behalf_of(&self, requester: Requester) -> Self {
        Self { requester, ..self.clone() }
    }

    /// Returns the transport of this route, from the cache or newly made.
    ///
    /// # Errors
    ///
    /// When certificates or the proxy's address cannot be used.
    pub(super) async fn transport(&self) -> Result<Arc<Transport>, RegistryError> {
        if let Some(transport) = self.traffic.transports.get(&self.key) {
            return Ok(transport);
        }
        // The certificates come from a Secret and must be parsed, so this runs on a blocking thread.
        let (way, options) = (Arc::clone(&self.way), Arc::clone(&self.options));
        let namespace = &self.requester.namespace;
        let made = self.traffic.capacity.pool.run(namespace, move || Transport::new(&way, &options)).await;
        self.traffic.transports.insert(namespace, self.key, || made)
    }

    /// Sends a request with retries, and reads the response; its status may be an error.
    ///
    /// If a server is busy, or a connection breaks, the request is retried. A server that asks for a pause gets no
    /// request of this requester meanwhile; if the deadline does not leave time for that, its response is returned at
    /// once.
    pub(super) async fn send(&self, call: &Call, deadline: &Deadline) -> Result<Answer, RegistryError> {
        deadline.hold(|| call.shown(), Box::pin(self.send_repeatedly(call, deadline))).await
    }

    async fn send_repeatedly(&self, call: &Call, deadline: &Deadline) -> Result<Answer, RegistryError> {
        let mut pauses = PAUSES.iter().filter(|_| call.is_repeated);
        loop {
            let ended = self.follow(call, deadline).await;
            let rest = match &ended {
                Ok(answer) if answer.is_passing() => answer.retry_after(),
                Err(error) if error.is_passing() => None,
                _ => return ended,
            };
            if let (Some(rest), Ok(answer)) = (rest, &ended) {
                // Pauses the server that responded, not the one that redirected to it.
                let target = self.target(&answer.url);
                self.traffic.pauses.pause(&target, &self.requester, Instant::now() + rest);
            }
            let Some(pause) = pauses.next() else { return ended };
            let pause = rest.unwrap_or_default().max(spread(*pause, (self.options.chance)()));
            if !deadline.leaves(pause) {
                return ended;
            }
            drop(ended);
            sleep(pause).await;
        }
    }

    /// Sends a request and follows its redirects.
    async fn follow(&self, call: &Call, deadline: &Deadline) -> Result<Answer, RegistryError> {
        let asked = call.url.origin();
        let mut call = call.clone();
        for _ in 0..=REDIRECTS {
            let is_foreign = call.url.origin() != asked;
            // Boxed: thousands of requests may wait for a slot, and an exchange is a large future.
            let answer = Box::pin(self.exchange(&call, is_foreign, deadline)).await?;
            let is_redirect = !call.stays && matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308);
            let location = answer.location().filter(|_| is_redirect);
            let Some(location) = location else { return Ok(answer) };
            let target = target(&call, location).map_err(|flaw| RegistryError::Redirect {
                request: call.shown(),
                to: call.url.join(location).map_or_else(|_| "elsewhere".to_owned(), |url| origin(&url)),
                flaw,
            })?;
            if target.origin() != call.url.origin() {
                call.authorization = None;
                call.is_redirected = true;
            }
            call.url = target;
        }
        let (request, to) = (call.shown(), origin(&call.url));
        Err(RegistryError::Redirect { request, to, flaw: "there were too many redirects before" })
    }

    /// Sends a request once, after its server has granted a slot.
    async fn exchange(
        &self,
        call: &Call,
        is_foreign: bool,
        deadline: &Deadline,
    ) -> Result<Answer, RegistryError> {
        let Self { traffic, requester, .. } = self;
        let admitted = self.guard.admit(&requester.namespace, &call.url).await;
        admitted.map_err(|refusal| astray(call, refusal.to_string()))?;
        let target = self.target(&call.url);
        let mut reserved = None;
        loop {
            let holding = reserved.as_ref().map(|reserved: &Reserved| reserved.deadline.clone());
            let until = holding.as_ref().unwrap_or(deadline);
            let (memory, namespace) = (&traffic.capacity.memory, &requester.namespace);
            let reserve = Reserve { memory, namespace, deadline, reserved: reserved.take() };
            let attempt = async {
                let _slot = self.enter(&target, until).await?;
                self.transport().await?.exchange(call, is_foreign, reserve).await
            };
            let bytes = match until.hold(|| call.shown(), attempt).await? {
                Exchanged::Answer(answer) => return Ok(*answer),
                Exchanged::NeedsMemory(bytes) => bytes,
            };
            let memory = self.reserve(bytes, deadline).await?;
            reserved = Some(Reserved { bytes, memory, deadline: self.holding_memory(deadline) });
        }
    }

    /// Waits for a slot of a server. A pause is waited out without holding a slot.
    async fn enter(&self, target: &Target, deadline: &Deadline) -> Result<Slot, RegistryError> {
        let Self { traffic, requester, .. } = self;
        loop {
            self.wait_for_pause(target, deadline).await?;
            let begin = Instant::now();
            let slot = traffic.budgets.enter(target, &requester.namespace).await;
            if let Some(metrics) = &self.options.metrics {
                metrics.slot_waited(SlotResource::registry, &requester.namespace, begin.elapsed());
            }
            if traffic.pauses.remaining(target, requester).is_none() {
                return Ok(slot);
            }
        }
    }

    /// Returns the server of an address, as reached over this route.
    fn target(&self, url: &Url) -> Target {
        let host = url.host_str().unwrap_or_default();
        let server = match url.port_or_known_default() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        Target { server: server.into(), route: self.route }
    }

    async fn wait_for_pause(&self, target: &Target, deadline: &Deadline) -> Result<(), RegistryError> {
        let Self { traffic, requester, .. } = self;
        if let Some(pause) = traffic.pauses.remaining(target, requester)
            && !deadline.leaves(pause)
        {
            let (server, pause) = (target.server.to_string(), whole_seconds(pause));
            return Err(RegistryError::Resting { server, pause });
        }
        traffic.pauses.wait(target, requester).await;
        Ok(())
    }

    /// Processes a response of so many bytes, on a blocking thread if they are many.
    pub(super) async fn process<T: Send + 'static>(
        &self,
        bytes: usize,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        self.traffic.capacity.pool.run_sized(&self.requester.namespace, bytes, job).await
    }

    /// Reserves memory; the deadline is postponed meanwhile.
    ///
    /// The memory may be held until [`Self::holding_memory`] at most.
    ///
    /// # Errors
    ///
    /// When none is free for too long.
    pub(super) async fn reserve(
        &self,
        bytes: u64,
        deadline: &Deadline,
    ) -> Result<MemoryReservation, RegistryError> {
        deadline.wait_for(self.traffic.capacity.memory.reserve(&self.requester.namespace, bytes)).await
    }

    /// Returns the deadline of work that holds memory from now on.
    pub(super) fn holding_memory(&self, deadline: &Deadline) -> Deadline {
        deadline.holding_memory(self.options.limits.with_memory)
    }

    /// Waits for a slot to read further pages of a list; the deadline is postponed meanwhile.
    ///
    /// # Errors
    ///
    /// When none is free for too long.
    pub(super) async fn page_slot(&self, deadline: &Deadline) -> Result<Permit, RegistryError> {
        deadline.wait_for(self.traffic.paging.acquire(&self.requester.namespace, 1)).await
    }
}

/// Adds jitter of up to a tenth to a pause, so that retries spread out.
///
/// `chance` is from 0 to 1.
fn spread(pause: Duration, chance: f64) -> Duration {
    pause.mul_f64(1.0 + chance.clamp(0.0, 1.0) / 10.0)
}

fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs() + u64::from(time.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_spread_by_a_tenth() {
        for (chance, milliseconds) in [(0.0, 1000), (0.5, 1050), (1.0, 1100), (7.0, 1100), (-1.0, 1000)] {
            assert_eq!(
                spread(Duration::from_secs(1), chance),
                Duration::from_millis(milliseconds),
                "{chance}"
            );
        }
    }
}
