//! HTTP responses, completely read.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::StatusCode;
use reqwest::header::{
    CONTENT_TYPE, ETAG, HeaderMap, HeaderName, LINK, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
};
use serde::Deserialize;
use serde::de::Error as _;
use url::Url;

use crate::net::retry_after;
use crate::tenancy::MemoryReservation;

/// The maximum of `Retry-After` that is respected.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60 * 60);

/// A response.
pub(crate) struct Response {
    /// The request, formatted for messages.
    pub(crate) request: String,
    /// The address that responded.
    pub(crate) url: Url,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) is_head: bool,
    /// Set if another server responded, after a redirect from the requested one.
    pub(crate) is_foreign: bool,
    /// The memory that is reserved for a large body and for processing it.
    pub(crate) reserved: Option<MemoryReservation>,
}

impl Response {
    /// Returns the values of a header that are text.
    fn values(&self, name: HeaderName) -> impl Iterator<Item = &str> {
        self.headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok())
    }

    pub(crate) fn header(&self, name: &'static str) -> Option<&str> {
        self.values(HeaderName::from_static(name)).next()
    }

    /// Returns the login challenges of the requested server.
    ///
    /// A challenge of another server, after a redirect, is ignored: its token server would get credentials that are
    /// meant for the first one.
    pub(crate) fn challenges(&self) -> impl Iterator<Item = &str> {
        self.values(WWW_AUTHENTICATE).filter(|_| !self.is_foreign)
    }

    pub(crate) fn links(&self) -> impl Iterator<Item = &str> {
        self.values(LINK)
    }

    /// Returns the target of a redirect.
    pub(crate) fn location(&self) -> Option<&str> {
        self.values(LOCATION).next()
    }

    pub(crate) fn etag(&self) -> Option<&str> {
        self.values(ETAG).next()
    }

    pub(crate) fn content_type(&self) -> Option<&str> {
        self.values(CONTENT_TYPE).next()
    }

    /// Parses the body as a JSON object.
    /// A list is refused; serde would accept a list with all members in order as well.
    pub(crate) fn object<'b, T: Deserialize<'b>>(&'b self) -> serde_json::Result<T> {
        if self.body.trim_ascii_start().first() == Some(&b'{') {
            return serde_json::from_slice(&self.body);
        }
        Err(serde_json::Error::custom("it does not begin with a brace"))
    }

    /// Returns the pause that an overloaded server asks for with `Retry-After`.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        // GitHub answers 403 to its limits.
        let may_rest = matches!(self.status.as_u16(), 403 | 429 | 503);
        let value = self.values(RETRY_AFTER).next().filter(|_| may_rest)?;
        Some(retry_after(value, Timestamp::now())?.min(MAX_RETRY_AFTER))
    }

    /// Returns `true` if a retry of the same request may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self.status.as_u16(), 408 | 429 | 499 | 500 | 502 | 503 | 504 | 522)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number or a date that was too large was ignored.
    #[test]
    fn a_very_long_retry_after_is_capped() {
        for value in ["99999999999999999999", "3601", "Fri, 31 Dec 9999 23:59:59 GMT"] {
            let answer = Response {
                request: String::new(),
                url: Url::parse("https://r.example/").unwrap(),
                status: StatusCode::TOO_MANY_REQUESTS,
                headers: [(RETRY_AFTER, value.parse().unwrap())].into_iter().collect(),
                body: Vec::new(),
                is_head: false,
                is_foreign: false,
                reserved: None,
            };
            assert_eq!(answer.retry_after(), Some(MAX_RETRY_AFTER), "{value}");
        }
    }
}
