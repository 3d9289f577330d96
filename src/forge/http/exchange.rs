//! One HTTP request, and its response of bounded size.

use reqwest::header::{AUTHORIZATION, HeaderValue};
use url::Url;

use crate::forge::exchange::{ApiRequest, Method};
use crate::net::root_cause;

/// The maximum size in bytes of a successful response.
const MAX_BODY: usize = 8 * 1024 * 1024;

/// The maximum size in bytes of any other response.
const MAX_REFUSAL: usize = 64 * 1024;

/// The maximum number and size of the headers of a response that are kept.
const MAX_HEADERS: usize = 100;
const MAX_HEADER: usize = 4096;

/// A response as it was received.
#[derive(Debug)]
pub(super) struct RawResponse {
    pub(super) status: u16,
    /// The headers that are text, with names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
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
    /// The response is too large.
    TooLarge(usize),
}

/// One request to be sent.
pub(super) struct RawRequest<'r> {
    pub(super) url: Url,
    pub(super) request: &'r ApiRequest,
    pub(super) authorization: &'r HeaderValue,
    /// The value of `If-None-Match`.
    pub(super) etag: Option<&'r str>,
}

/// Sends a request once, and reads its response.
///
/// # Errors
///
/// If there is no whole response of bounded size.
pub(super) async fn exchange(client: &reqwest::Client, raw: RawRequest<'_>) -> Result<RawResponse, Failed> {
    let RawRequest { url, request, authorization, etag } = raw;
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
    if let Some(etag) = etag {
        builder = builder.header("if-none-match", etag);
    }
    if let Some(body) = &request.body {
        builder = builder.json(body);
    }
    let failed = |error: reqwest::Error| Failed::Connection(root_cause(&error.without_url()));
    let mut response = builder.send().await.map_err(failed)?;
    let status = response.status();
    let headers = response.headers().iter().filter_map(|(name, value)| {
        let value = value.to_str().ok().filter(|value| value.len() <= MAX_HEADER)?;
        Some((name.as_str().to_owned(), value.to_owned()))
    });
    let headers = headers.take(MAX_HEADERS).collect();
    let largest = if status.is_success() { MAX_BODY } else { MAX_REFUSAL };
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > largest {
            if status.is_success() {
                return Err(Failed::TooLarge(largest));
            }
            break;
        }
        body.extend_from_slice(&chunk);
    }
    Ok(RawResponse { status: status.as_u16(), headers, body })
}
