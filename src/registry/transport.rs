//! HTTP connections of one route.

use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use reqwest::{Method, Response};
use tokio::time::timeout;

use super::answer::Answer;
use super::call::Call;
use super::deadline::Deadline;
use super::error::RegistryError;
use super::options::RegistryOptions;
use super::refusal::cut;
use super::tls::Tls;
use super::way::{Limits, Way};
use crate::net::{self, HttpClientOptions, ProxyChoice, root_cause};
use crate::tenancy::{INLINE_BYTES, MemoryBudget, MemoryReservation};

/// The size of a response in bytes beyond which memory is reserved for it.
const UNRESERVED: usize = 256 * 1024;

/// HTTP connections of one route.
#[derive(Debug)]
pub(super) struct Transport {
    http: reqwest::Client,
    /// The same connections without a client certificate, for targets of redirects.
    elsewhere: reqwest::Client,
    proxy: ProxyChoice,
    limits: Limits,
}

/// The namespace that memory of large responses is reserved for, and an existing reservation.
pub(super) struct Reserve<'r> {
    pub(super) memory: &'r MemoryBudget,
    pub(super) namespace: &'r str,
    /// The deadline of the request.
    pub(super) deadline: &'r Deadline,
    pub(super) reserved: Option<Reserved>,
}

/// Memory that is reserved for a response.
pub(super) struct Reserved {
    pub(super) bytes: u64,
    pub(super) memory: MemoryReservation,
    /// The time at which the response must be complete.
    pub(super) deadline: Deadline,
}

/// The end of one exchange.
pub(super) enum Exchanged {
    /// The response.
    Answer(Box<Answer>),
    /// Not enough memory is free for the response, which needs so many bytes.
    ///
    /// The request is sent again when they are reserved: no slot of the server is held during the wait for memory.
    NeedsMemory(u64),
}

impl Transport {
    pub(super) fn new(way: &Way, options: &RegistryOptions) -> Result<Self, RegistryError> {
        let limits = options.limits;
        let connections = |tls: &Tls| {
            tls.apply(HttpClientOptions {
                proxy: way.proxy.clone(),
                local_addresses: options.local_addresses,
                lookups: options.capacity.lookups.clone(),
                ..HttpClientOptions::within(limits.connect, limits.between_bytes)
            })
        };
        let http = connections(&way.tls)?.client()?;
        let elsewhere = match &way.tls.identity {
            Some(_) => connections(&Tls { identity: None, ..way.tls.clone() })?.client()?,
            None => http.clone(),
        };
        Ok(Self { http, elsewhere, proxy: way.proxy.clone(), limits })
    }

    /// Sends a request once, and reads its response.
    ///
    /// `is_foreign` is set after a redirect by another server.
    pub(super) async fn exchange(
        &self,
        call: &Call,
        is_foreign: bool,
        reserve: Reserve<'_>,
    ) -> Result<Exchanged, RegistryError> {
        let mut response = net::on_behalf_of(reserve.namespace, self.begin(call, is_foreign)).await?;
        let status = response.status();
        let packing = response.headers().get(CONTENT_ENCODING).filter(|packing| *packing != "identity");
        if packing.is_some_and(|packing| status.is_success() && !packing.is_empty()) {
            let flaw = "it is packed (Content-Encoding), which was not asked for".to_owned();
            return Err(RegistryError::Malformed { request: call.shown(), flaw });
        }
        let largest = if status.is_success() { call.largest } else { INLINE_BYTES };
        let mut body = Vec::new();
        let Reserve { memory: budget, namespace, deadline, mut reserved } = reserve;
        let mut is_reserved = false;
        loop {
            let next = async { response.chunk().await.map_err(|error| self.unreachable(call, error)) };
            let chunk = match &reserved {
                Some(reserved) => reserved.deadline.hold(|| call.shown(), next).await?,
                None => next.await?,
            };
            let Some(chunk) = chunk else { break };
            let length = body.len() + chunk.len();
            if length > largest {
                if status.is_success() {
                    return Err(RegistryError::TooLarge { request: call.shown(), largest });
                }
                break;
            }
            if let Some(memory) = call.memory.filter(|_| length > UNRESERVED && !is_reserved) {
                let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
                let expected = announced.unwrap_or(largest).min(largest);
                let mut bytes = memory.bytes(expected);
                if let Some(before) = reserved.take_if(|reserved| reserved.bytes < bytes) {
                    // A server that announces more each time gets a single retry.
                    bytes = memory.bytes(largest);
                    drop(before);
                }
                if reserved.is_none() {
                    let Some(memory) = budget.try_reserve(namespace, bytes) else {
                        return Ok(Exchanged::NeedsMemory(bytes));
                    };
                    let deadline = deadline.holding_memory(self.limits.with_memory);
                    reserved = Some(Reserved { bytes, memory, deadline });
                }
                is_reserved = true;
            }
            body.extend_from_slice(&chunk);
        }
        let headers = std::mem::take(response.headers_mut());
        if !status.is_success() {
            // Redacted before a part of it is quoted: half a secret would not be recognized.
            body = call.scrub(&String::from_utf8_lossy(&body)).into_bytes();
        }
        let is_head = call.method == Method::HEAD;
        let (request, url) = (call.shown(), call.url.clone());
        let reserved = reserved.filter(|_| is_reserved).map(|reserved| reserved.memory);
        let answer = Answer { request, url, status, headers, body, is_head, is_foreign, reserved };
        Ok(Exchanged::Answer(Box::new(answer)))
    }

    /// Sends a request and waits for the head of its response.
    async fn begin(&self, call: &Call, is_foreign: bool) -> Result<Response, RegistryError> {
        let http = if is_foreign { &self.elsewhere } else { &self.http };
        let mut request = http.request(call.method.clone(), call.url.clone()).headers(call.headers.clone());
        // A compressed response cannot be read, and has another digest.
        request = request.header(ACCEPT_ENCODING, "identity");
        if let Some(authorization) = &call.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        if let Some(body) = &call.body {
            request = request.header(CONTENT_TYPE, body.kind).body(body.bytes.to_vec());
        }
        let allowed = self.limits.first_byte;
        let response = timeout(allowed, request.send()).await;
        let response = response.map_err(|_| RegistryError::Silent { request: call.shown(), allowed })?;
        response.map_err(|error| match net::ssrf_refusal(&error) {
            Some(refusal) => astray(call, refusal.to_string()),
            None if error.is_timeout() && !error.is_connect() => {
                RegistryError::Silent { request: call.shown(), allowed: self.limits.between_bytes }
            }
            None => self.unreachable(call, error),
        })
    }

    fn unreachable(&self, call: &Call, error: reqwest::Error) -> RegistryError {
        let is_connection = error.is_connect();
        // Connection errors are the proxy's, if there is one.
        let proxy = self.proxy.shown_for(&call.url).filter(|_| is_connection);
        let by = proxy.map(|proxy| format!("by the proxy {proxy}: ")).unwrap_or_default();
        let trouble = cut(&format!("{by}{}", root_cause(&error.without_url())));
        RegistryError::Unreachable { request: call.shown(), is_connection, trouble }
    }
}

/// Returns the error of a request to a forbidden address.
pub(super) fn astray(call: &Call, words: String) -> RegistryError {
    let host = call.url.host_str().unwrap_or_default().to_owned();
    RegistryError::LeadsAstray { request: call.shown(), host, words }
}
