//! HTTP as all talk with registries uses it: budgets, time limits, redirects and repeats.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep, timeout};
use url::Url;

use super::answer::Answer;
use super::budget::Budgets;
use super::call::Call;
use super::deadline::Deadline;
use super::error::RegistryError;
use super::redirect::target;
use super::refusal::shown;
use super::registries::RegistryOptions;
use super::tls::Tls;
use super::way::{Limits, Way};
use crate::http::{self, Connections, Guard, ProxyChoice, innermost};

/// How many redirects are followed.
const REDIRECTS: usize = 5;

/// The pauses before a request is repeated.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];

/// How much is read of an answer that is no success.
const REFUSAL_SIZE: usize = 64 * 1024;

/// Connections of one way, under the budgets of the servers that they lead to.
#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    /// The same without a client certificate, for servers that a redirect leads to.
    elsewhere: reqwest::Client,
    guard: Guard,
    proxy: ProxyChoice,
    budgets: Arc<Budgets>,
    /// The budgets of servers that want a rest, as they are seen by this way.
    rests: Arc<Budgets>,
    limits: Limits,
    chance: fn() -> f64,
}

impl Client {
    pub(super) fn new(
        way: &Way,
        options: &RegistryOptions,
        budgets: Arc<Budgets>,
    ) -> Result<Self, RegistryError> {
        let limits = options.limits;
        let connections = |tls: &Tls| {
            tls.apply(Connections {
                proxy: way.proxy.clone(),
                local_addresses: options.local_addresses,
                ..Connections::within(limits.connect, limits.between_bytes)
            })
        };
        let own = connections(&way.tls)?;
        let guard = own.guard();
        let http = own.client()?;
        let elsewhere = match &way.tls.identity {
            Some(_) => connections(&Tls { identity: None, ..way.tls.clone() })?.client()?,
            None => http.clone(),
        };
        let proxy = way.proxy.clone();
        // Who is behind an object's own proxy, or vouched for by its own authority, may say anything in a server's name.
        let is_own = matches!(way.proxy, ProxyChoice::Given(_)) || way.tls.authority.is_some();
        let rests = if is_own { Arc::new(Budgets::new(options.budget)) } else { Arc::clone(&budgets) };
        Ok(Self { http, elsewhere, guard, proxy, budgets, rests, limits, chance: options.chance })
    }

    /// Sends a request, as often as it makes sense, and reads the answer, whatever its status.
    ///
    /// Where a server is busy, or a connection breaks, the request is repeated. A server that wants to be left alone
    /// is, by all; where there is no time for that, its answer is given at once.
    pub(super) async fn send(&self, call: &Call, deadline: &Deadline) -> Result<Answer, RegistryError> {
        deadline.hold(|| call.shown(), Box::pin(self.persist(call, deadline))).await
    }

    async fn persist(&self, call: &Call, deadline: &Deadline) -> Result<Answer, RegistryError> {
        let budget = self.rests.of(&server(&call.url));
        let mut pauses = PAUSES.iter().filter(|_| call.is_repeated);
        loop {
            if let Some(until) = budget.resting_until() {
                let pause = until.saturating_duration_since(Instant::now());
                if !deadline.leaves(pause) {
                    return Err(RegistryError::Resting {
                        server: server(&call.url),
                        pause: whole_seconds(pause),
                    });
                }
            }
            let ended = self.follow(call).await;
            let rest = match &ended {
                Ok(answer) if answer.is_passing() => answer.retry_after(),
                Err(error) if error.is_passing() => None,
                _ => return ended,
            };
            if let Some(rest) = rest {
                budget.rest(Instant::now() + rest);
            }
            let Some(pause) = pauses.next() else { return ended };
            let pause = rest.unwrap_or_default().max(spread(*pause, (self.chance)()));
            if !deadline.leaves(pause) {
                return ended;
            }
            sleep(pause).await;
        }
    }

    /// Sends a request to where it leads in the end.
    async fn follow(&self, call: &Call) -> Result<Answer, RegistryError> {
        let asked = call.url.origin();
        let mut call = call.clone();
        for _ in 0..=REDIRECTS {
            let is_foreign = call.url.origin() != asked;
            let http = if is_foreign { &self.elsewhere } else { &self.http };
            let answer = Answer { is_foreign, ..self.exchange(http, &call).await? };
            let is_redirect = !call.stays && matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308);
            let location = answer.location().filter(|_| is_redirect);
            let Some(location) = location else { return Ok(answer) };
            let target = target(&call, location).map_err(|flaw| RegistryError::Redirect {
                request: call.shown(),
                to: call.url.join(location).map_or_else(|_| location.to_owned(), |url| shown(&url)),
                flaw,
            })?;
            if target.origin() != call.url.origin() {
                call.authorization = None;
            }
            call.url = target;
        }
        let (request, to) = (call.shown(), shown(&call.url));
        Err(RegistryError::Redirect { request, to, flaw: "there were too many redirects before" })
    }

    async fn exchange(&self, http: &reqwest::Client, call: &Call) -> Result<Answer, RegistryError> {
        self.guard.admit(&call.url).await.map_err(|refusal| astray(call, refusal.to_string()))?;
        let _place = self.enter(&server(&call.url)).await;
        // Thousands may wait for a place, and what an exchange needs is large.
        Box::pin(self.exchange_now(http, call)).await
    }

    /// Waits until a server may be asked. Who waits for the end of a rest that is only this way's takes nobody's place.
    async fn enter(&self, server: &str) -> OwnedSemaphorePermit {
        let (budget, rests) = (self.budgets.of(server), self.rests.of(server));
        loop {
            rests.rested().await;
            let place = budget.enter().await;
            if rests.resting_until().is_none() {
                return place;
            }
        }
    }

    async fn exchange_now(&self, http: &reqwest::Client, call: &Call) -> Result<Answer, RegistryError> {
        let mut request = http.request(call.method.clone(), call.url.clone()).headers(call.headers.clone());
        // What is packed cannot be read, and has another digest.
        request = request.header(ACCEPT_ENCODING, "identity");
        if let Some(authorization) = &call.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        if let Some(body) = &call.body {
            request = request.header(CONTENT_TYPE, body.kind).body(body.bytes.to_vec());
        }
        let unreachable = |error: reqwest::Error| {
            let is_connection = error.is_connect();
            // It is the proxy that was connected to, or that did not connect further.
            let proxy = self.proxy.shown_for(&call.url).filter(|_| is_connection);
            let by = proxy.map(|proxy| format!("by the proxy {proxy}: ")).unwrap_or_default();
            let trouble = format!("{by}{}", innermost(&error.without_url()));
            RegistryError::Unreachable { request: call.shown(), is_connection, trouble }
        };
        let allowed = self.limits.first_byte;
        let response = timeout(allowed, request.send()).await;
        let response = response.map_err(|_| RegistryError::Silent { request: call.shown(), allowed })?;
        let mut response = response.map_err(|error| match http::refusal(&error) {
            Some(refusal) => astray(call, refusal.to_string()),
            None if error.is_timeout() && !error.is_connect() => {
                RegistryError::Silent { request: call.shown(), allowed: self.limits.between_bytes }
            }
            None => unreachable(error),
        })?;
        let status = response.status();
        let packing = response.headers().get(CONTENT_ENCODING).filter(|packing| *packing != "identity");
        if let Some(packing) = packing.filter(|packing| status.is_success() && !packing.is_empty()) {
            let flaw = format!("it is packed ({packing:?}), which was not asked for");
            return Err(RegistryError::Malformed { request: call.shown(), flaw });
        }
        let largest = if status.is_success() { call.largest } else { REFUSAL_SIZE };
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if body.len() + chunk.len() > largest {
                if status.is_success() {
                    return Err(RegistryError::TooLarge { request: call.shown(), largest });
                }
                break;
            }
            body.extend_from_slice(&chunk);
        }
        let headers = std::mem::take(response.headers_mut());
        if !status.is_success() {
            // Before anybody quotes a part of it: half a secret is not known as one.
            body = call.scrub(&String::from_utf8_lossy(&body)).into_bytes();
        }
        let (request, is_head) = (call.shown(), call.method == Method::HEAD);
        Ok(Answer { request, status, headers, body, is_head, is_foreign: false })
    }
}

/// A request that would go to where none may.
fn astray(call: &Call, words: String) -> RegistryError {
    let host = call.url.host_str().unwrap_or_default().to_owned();
    RegistryError::LeadsAstray { request: call.shown(), host, words }
}

/// Host and port of an address.
fn server(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port_or_known_default().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// A pause, and up to a tenth of it more by chance, which is from 0 to 1: those who met once do not meet again.
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
