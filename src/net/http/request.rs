//! HTTP requests, before they are sent.

use std::sync::Arc;

use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH};
use url::Url;

use super::text::{origin, redacted_url};

/// One request.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    /// Headers that any server may see.
    pub(crate) headers: HeaderMap,
    /// The header `Authorization`, for the server of `url` only.
    pub(crate) authorization: Option<HeaderValue>,
    /// The body, which contains secrets and is sent to no other server.
    pub(crate) body: Option<Body>,
    /// The maximum size in bytes of a successful response.
    pub(crate) largest: usize,
    /// The memory that must be reserved for a large response.
    /// It is `None` if the memory is reserved already.
    pub(crate) memory: Option<WorkingMemory>,
    /// Set if the request is retried when that may help.
    pub(crate) is_retried: bool,
    /// Set if redirects are not followed, but returned like any other response.
    pub(crate) keeps_redirects: bool,
    /// Set if messages name only the server.
    ///
    /// Another server chose the rest of the address then.
    pub(crate) is_redirected: bool,
}

/// The memory that a response needs while it is processed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WorkingMemory {
    /// Bytes per byte of the body, beyond the body itself.
    pub(crate) factor: u64,
    /// Bytes in addition.
    pub(crate) base: u64,
}

impl WorkingMemory {
    /// Returns the memory for a body of so many bytes.
    pub(crate) fn bytes(self, body: usize) -> u64 {
        let body = u64::try_from(body).unwrap_or(u64::MAX);
        body.saturating_mul(self.factor + 1).saturating_add(self.base)
    }
}

/// The body of a request.
#[derive(Clone)]
pub(crate) struct Body {
    /// The media type.
    pub(crate) kind: &'static str,
    pub(crate) bytes: Arc<[u8]>,
}

/// The media type of a form.
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";

impl Request {
    pub(crate) fn get(url: Url, largest: usize) -> Self {
        Self {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            authorization: None,
            body: None,
            largest,
            memory: Some(WorkingMemory::default()),
            is_retried: true,
            keeps_redirects: false,
            is_redirected: false,
        }
    }

    pub(crate) fn head(url: Url) -> Self {
        Self { method: Method::HEAD, ..Self::get(url, 0) }
    }

    pub(crate) fn post(url: Url, form: impl Into<Arc<[u8]>>, largest: usize) -> Self {
        Self::get(url, largest).with_body(Body { kind: FORM, bytes: form.into() })
    }

    pub(crate) fn put(url: Url, largest: usize) -> Self {
        Self { method: Method::PUT, ..Self::get(url, largest) }
    }

    /// Turns the request into a POST of a body.
    pub(crate) fn with_body(self, body: Body) -> Self {
        Self { method: Method::POST, body: Some(body), ..self }
    }

    pub(crate) fn accept(self, types: &str) -> Self {
        self.with_header(ACCEPT, types)
    }

    pub(crate) fn if_none_match(self, etag: Option<&str>) -> Self {
        match etag {
            Some(etag) => self.with_header(IF_NONE_MATCH, etag),
            None => self,
        }
    }

    /// Adds a header; a value that no header can have is left out.
    pub(crate) fn with_header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    pub(crate) fn with_authorization(mut self, authorization: Option<HeaderValue>) -> Self {
        self.authorization = authorization;
        self
    }

    /// Follows no redirects: some headers are secrets too.
    pub(crate) fn without_redirects(mut self) -> Self {
        self.keeps_redirects = true;
        self
    }

    /// Adds a header with a secret value.
    pub(crate) fn with_secret(mut self, name: HeaderName, secret: Option<HeaderValue>) -> Self {
        if let Some(secret) = secret {
            self.headers.insert(name, secret);
        }
        self
    }

    pub(crate) fn without_retries(mut self) -> Self {
        self.is_retried = false;
        self
    }

    /// Formats the request for messages.
    pub(crate) fn describe(&self) -> String {
        let address = if self.is_redirected { origin(&self.url) } else { redacted_url(&self.url) };
        format!("{} {address}", self.method)
    }
}
