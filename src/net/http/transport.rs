//! HTTP connections of one route.

use reqwest::Method;
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use tokio::time::timeout;

use super::deadline::Deadline;
use super::error::HttpError;
use super::options::HttpOptions;
use super::request::Request;
use super::response::Response;
use super::route::{Route, Timeouts};
use super::text::truncate;
use super::tls::Tls;
use crate::net::{self, HttpClientOptions, ProxyChoice, root_cause};
use crate::tenancy::{INLINE_BYTES, MemoryBudget, MemoryReservation};

/// The size of a response in bytes beyond which memory is reserved for it.
const UNRESERVED: usize = 256 * 1024;

/// HTTP connections of one route.
#[derive(Debug)]
pub(crate) struct Transport {
    http: reqwest::Client,
    /// The same connections without a client certificate, for targets of redirects.
    without_identity: reqwest::Client,
    proxy: ProxyChoice,
    timeouts: Timeouts,
}

/// The namespace that memory of large responses is reserved for, and an existing reservation.
pub(crate) struct Reserve<'r> {
    pub(crate) memory: &'r MemoryBudget,
    pub(crate) namespace: &'r str,
    /// The deadline of the request.
    pub(crate) deadline: &'r Deadline,
    pub(crate) reserved: Option<Reserved>,
}

/// Memory that is reserved for a response.
pub(crate) struct Reserved {
    pub(crate) bytes: u64,
    pub(crate) memory: MemoryReservation,
    /// The time at which the response must be complete.
    pub(crate) deadline: Deadline,
}

/// The end of one exchange.
pub(crate) enum Exchanged {
    /// The response.
    Response(Box<Response>),
    /// Not enough memory is free for the response, which needs so many bytes.
    ///
    /// The request is sent again when they are reserved: no slot of the server is held during the wait for memory.
    NeedsMemory(u64),
}

impl Transport {
    pub(crate) fn new(route: &Route, options: &HttpOptions) -> Result<Self, HttpError> {
        let timeouts = options.timeouts;
        let connections = |tls: &Tls| {
            tls.apply(HttpClientOptions {
                proxy: route.proxy.clone(),
                local_addresses: options.local_addresses,
                lookups: options.capacity.lookups.clone(),
                ..HttpClientOptions::with_timeouts(timeouts.connect, timeouts.between_bytes)
            })
        };
        let http = connections(&route.tls)?.build()?;
        let without_identity = match &route.tls.identity {
            Some(_) => connections(&Tls { identity: None, ..route.tls.clone() })?.build()?,
            None => http.clone(),
        };
        Ok(Self { http, without_identity, proxy: route.proxy.clone(), timeouts })
    }

    /// Sends a request once, and reads its response.
    ///
    /// `is_foreign` is set after a redirect by another server.
    pub(crate) async fn exchange(
        &self,
        request: &Request,
        is_foreign: bool,
        reserve: Reserve<'_>,
    ) -> Result<Exchanged, HttpError> {
        let mut response = net::on_behalf_of(reserve.namespace, self.begin(request, is_foreign)).await?;
        let status = response.status();
        let packing = response.headers().get(CONTENT_ENCODING).filter(|packing| *packing != "identity");
        if packing.is_some_and(|packing| status.is_success() && !packing.is_empty()) {
            let defect = "it is compressed (Content-Encoding), which was not requested".to_owned();
            return Err(HttpError::Malformed { request: request.describe(), defect });
        }
        let largest = if status.is_success() { request.largest } else { INLINE_BYTES };
        let mut body = Vec::new();
        let Reserve { memory: budget, namespace, deadline, mut reserved } = reserve;
        let mut is_reserved = false;
        loop {
            let next = async { response.chunk().await.map_err(|error| self.unreachable(request, error)) };
            let chunk = match &reserved {
                Some(reserved) => reserved.deadline.limit(|| request.describe(), next).await?,
                None => next.await?,
            };
            let Some(chunk) = chunk else { break };
            let length = body.len() + chunk.len();
            if length > largest {
                if status.is_success() {
                    return Err(HttpError::TooLarge { request: request.describe(), largest });
                }
                break;
            }
            if let Some(memory) = request.memory.filter(|_| length > UNRESERVED && !is_reserved) {
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
                    let deadline = deadline.holding_memory(self.timeouts.with_memory);
                    reserved = Some(Reserved { bytes, memory, deadline });
                }
                is_reserved = true;
            }
            body.extend_from_slice(&chunk);
        }
        let headers = std::mem::take(response.headers_mut());
        if !status.is_success() {
            // Redacted before a part of it is quoted: half a secret would not be recognized.
            body = request.redact(&String::from_utf8_lossy(&body)).into_bytes();
        }
        let is_head = request.method == Method::HEAD;
        let (request, url) = (request.describe(), request.url.clone());
        let reserved = reserved.filter(|_| is_reserved).map(|reserved| reserved.memory);
        let response = Response { request, url, status, headers, body, is_head, is_foreign, reserved };
        Ok(Exchanged::Response(Box::new(response)))
    }

    /// Sends a request and waits for the head of its response.
    async fn begin(&self, request: &Request, is_foreign: bool) -> Result<reqwest::Response, HttpError> {
        let http = if is_foreign { &self.without_identity } else { &self.http };
        let mut builder =
            http.request(request.method.clone(), request.url.clone()).headers(request.headers.clone());
        // A compressed response cannot be read, and has another digest.
        builder = builder.header(ACCEPT_ENCODING, "identity");
        if let Some(authorization) = &request.authorization {
            builder = builder.header(AUTHORIZATION, authorization.clone());
        }
        if let Some(body) = &request.body {
            builder = builder.header(CONTENT_TYPE, body.kind).body(body.bytes.to_vec());
        }
        let allowed = self.timeouts.first_byte;
        let response = timeout(allowed, builder.send()).await;
        let response =
            response.map_err(|_| HttpError::NoResponse { request: request.describe(), allowed })?;
        response.map_err(|error| match net::ssrf_refusal(&error) {
            Some(refusal) => forbidden_address(request, refusal.to_string()),
            None if error.is_timeout() && !error.is_connect() => {
                HttpError::NoResponse { request: request.describe(), allowed: self.timeouts.between_bytes }
            }
            None => self.unreachable(request, error),
        })
    }

    fn unreachable(&self, request: &Request, error: reqwest::Error) -> HttpError {
        let is_connection = error.is_connect();
        // Connection errors are the proxy's, if there is one.
        let proxy = self.proxy.address_for(&request.url).filter(|_| is_connection);
        let by = proxy.map(|proxy| format!("by the proxy {proxy}: ")).unwrap_or_default();
        let cause = truncate(&format!("{by}{}", root_cause(&error.without_url())));
        HttpError::Unreachable { request: request.describe(), is_connection, cause }
    }
}

/// Returns the error of a request to a forbidden address.
pub(crate) fn forbidden_address(request: &Request, message: String) -> HttpError {
    let host = request.url.host_str().unwrap_or_default().to_owned();
    HttpError::ForbiddenRedirect { request: request.describe(), host, message }
}
