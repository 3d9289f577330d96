//! One HTTP request, and its response of bounded size.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderValue};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::body::ResponseMemory;
use crate::forge::exchange::{ApiRequest, Method};
use crate::net::root_cause;
use crate::tenancy::MemoryReservation;

/// The maximum size in bytes of a successful response.
const MAX_BODY: usize = 8 * 1024 * 1024;

/// The maximum size in bytes of any other response.
const MAX_REFUSAL: usize = 64 * 1024;

/// The size in bytes of a response that is received without a reservation.
const UNRESERVED_SIZE: usize = 256 * 1024;

/// The time in which such a response must then be complete.
const WITH_MEMORY: Duration = Duration::from_secs(20);

/// The maximum number and size of the headers of a response that are kept.
const MAX_HEADERS: usize = 100;
const MAX_HEADER: usize = 4096;

/// A response as it was received.
#[derive(Debug)]
pub(super) struct RawResponse {
    pub(super) status: u16,
    /// The headers that are text, with names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Arc<Vec<u8>>,
    /// The memory that is reserved for a large response.
    pub(super) memory: Option<MemoryReservation>,
}

impl RawResponse {
    /// Returns the first value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The failure of an exchange.
#[derive(Debug)]
pub(super) enum Failed {
    /// There is no connection, or it broke.
    Connection(String),
    /// No connection was made in time.
    NotConnected(String),
    /// The server did not answer in time.
    Silent,
    /// The response is too large.
    TooLarge(usize),
    /// No memory was free for a large response.
    NoMemory,
    /// A large response was not complete in time.
    Slow,
}

/// One request to be sent.
pub(super) struct RawRequest<'r> {
    pub(super) url: Url,
    pub(super) request: &'r ApiRequest,
    pub(super) authorization: &'r HeaderValue,
    /// A header that the forge needs.
    pub(super) header: Option<(&'static str, &'static str)>,
    /// The value of `If-None-Match`.
    pub(super) etag: Option<&'r str>,
    /// The memory for a large response.
    pub(super) memory: ResponseMemory<'r>,
}

/// Sends a request once, and reads its response.
///
/// # Errors
///
/// If there is no whole response of bounded size.
pub(super) async fn exchange(client: &reqwest::Client, raw: RawRequest<'_>) -> Result<RawResponse, Failed> {
    let RawRequest { url, request, authorization, header, etag, memory } = raw;
    let method = match request.method {
        Method::Get => reqwest::Method::GET,
        Method::Post => reqwest::Method::POST,
        Method::Put => reqwest::Method::PUT,
        Method::Patch => reqwest::Method::PATCH,
        Method::Delete => reqwest::Method::DELETE,
    };
    let mut builder = client.request(method, url).header(AUTHORIZATION, authorization.clone());
    for (name, value) in &request.headers {
        builder = builder.header(*name, value);
    }
    if let Some((name, value)) = header {
        builder = builder.header(name, value);
    }
    if let Some(etag) = etag {
        builder = builder.header("if-none-match", etag);
    }
    if let Some(body) = &request.body {
        builder = builder.json(body);
    }
    let failed = |error: reqwest::Error| match (error.is_timeout(), error.is_connect()) {
        (true, false) => Failed::Silent,
        (true, true) => Failed::NotConnected(root_cause(&error.without_url())),
        (false, _) => Failed::Connection(root_cause(&error.without_url())),
    };
    let mut response = builder.send().await.map_err(failed)?;
    let status = response.status();
    let headers = response.headers().iter().filter_map(|(name, value)| {
        let value = value.to_str().ok().filter(|value| value.len() <= MAX_HEADER)?;
        Some((name.as_str().to_owned(), value.to_owned()))
    });
    let headers = headers.take(MAX_HEADERS).collect();
    let largest = if status.is_success() { MAX_BODY } else { MAX_REFUSAL };
    let (mut body, mut reserved, mut deadline) = (Vec::new(), None, None);
    loop {
        let chunk = match deadline {
            Some(deadline) => timeout_at(deadline, response.chunk()).await.map_err(|_| Failed::Slow)?,
            None => response.chunk().await,
        };
        let Some(chunk) = chunk.map_err(failed)? else { break };
        let length = body.len() + chunk.len();
        if length > largest {
            if status.is_success() {
                return Err(Failed::TooLarge(largest));
            }
            break;
        }
        if length > UNRESERVED_SIZE && reserved.is_none() {
            let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
            reserved = Some(memory.for_length(announced.unwrap_or(largest).min(largest)).await?);
            deadline = Some(Instant::now() + WITH_MEMORY);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(RawResponse { status: status.as_u16(), headers, body: Arc::new(body), memory: reserved })
}
