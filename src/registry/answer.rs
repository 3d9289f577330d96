//! An answer, as it was read.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::StatusCode;
use reqwest::header::{
    CONTENT_TYPE, ETAG, HeaderMap, HeaderName, LINK, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
};
use serde::Deserialize;
use serde::de::Error as _;
use url::Url;

use super::challenge::Challenge;
use super::error::RegistryError;
use super::refusal::Refusal;
use crate::tenancy::MemoryReservation;

/// The longest rest that a server is given because it asks for one.
const LONGEST_REST: Duration = Duration::from_secs(60 * 60);

/// What a server answered.
pub(super) struct Answer {
    /// The request for messages.
    pub(super) request: String,
    /// The address that answered.
    pub(super) url: Url,
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    pub(super) is_head: bool,
    /// Whether it is another server's, to which the one that was asked had sent us.
    pub(super) is_foreign: bool,
    /// The memory that is reserved for the body and what is made of it, if it is large.
    pub(super) reserved: Option<MemoryReservation>,
}

impl Answer {
    /// The values of a header that are text.
    fn values(&self, name: HeaderName) -> impl Iterator<Item = &str> {
        self.headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok())
    }

    pub(super) fn header(&self, name: &'static str) -> Option<&str> {
        self.values(HeaderName::from_static(name)).next()
    }

    /// How the server that was asked wants to be shown who we are. What another one says, to which it had sent us, is none
    /// of that: its server for tokens would get what was meant for the first one's.
    pub(super) fn challenges(&self) -> impl Iterator<Item = &str> {
        self.values(WWW_AUTHENTICATE).filter(|_| !self.is_foreign)
    }

    pub(super) fn links(&self) -> impl Iterator<Item = &str> {
        self.values(LINK)
    }

    /// Where a redirect leads.
    pub(super) fn location(&self) -> Option<&str> {
        self.values(LOCATION).next()
    }

    pub(super) fn etag(&self) -> Option<&str> {
        self.values(ETAG).next()
    }

    pub(super) fn content_type(&self) -> Option<&str> {
        self.values(CONTENT_TYPE).next()
    }

    pub(super) fn refusal(&self) -> Refusal {
        let mut refusal = Refusal::read(self.status, self.is_head, &self.body);
        let mut unknown = Challenge::unknown(self.challenges());
        // The name of a scheme is a word; what is none is not worth telling, and nor are many.
        unknown.retain(|name| name.len() <= 32);
        unknown.truncate(4);
        if self.status == StatusCode::UNAUTHORIZED && !unknown.is_empty() {
            let names = unknown.join(", ");
            refusal
                .words
                .push_str(&format!("; it wants a login by {names}, and only Basic and Bearer are known"));
        }
        refusal
    }

    /// This answer as an error.
    pub(super) fn to_error(&self) -> RegistryError {
        RegistryError::Refused {
            request: self.request.clone(),
            refusal: self.refusal(),
            retry_after: self.retry_after(),
        }
    }

    /// Reads the body as a JSON object, for a list would pass for one with all its members in order.
    pub(super) fn object<'b, T: Deserialize<'b>>(&'b self) -> serde_json::Result<T> {
        if self.body.trim_ascii_start().first() == Some(&b'{') {
            return serde_json::from_slice(&self.body);
        }
        Err(serde_json::Error::custom("it does not begin with a brace"))
    }

    /// How long the server wants to be left alone; only where it refuses because of what is too much for it.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let may_rest = matches!(self.status.as_u16(), 429 | 503);
        let value = self.values(RETRY_AFTER).next().filter(|_| may_rest)?;
        Some(retry_after(value, Timestamp::now())?.min(LONGEST_REST))
    }

    /// Whether the same request may fare better in a moment.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self.status.as_u16(), 408 | 429 | 499 | 500 | 502 | 503 | 504 | 522)
    }
}

/// Reads `Retry-After`: seconds, or a date.
fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = DateTimeParser::new().parse_timestamp(value.trim()).ok()?;
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_is_given_in_seconds_or_as_a_date() {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        for (value, wanted) in [
            ("30", Some(30)),
            (" 0 ", Some(0)),
            ("Sat, 21 Nov 2026 10:01:00 GMT", Some(60)),
            ("Sat, 21 Nov 2026 09:00:00 GMT", Some(0)),
            ("-1", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(retry_after(value, now), wanted.map(Duration::from_secs), "{value}");
        }
    }
}
