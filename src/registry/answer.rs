//! An answer, as it was read.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
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

/// Reads `Retry-After` (RFC 9110, section 10.2.3): seconds, of which there may be more than any number holds, or a date. A value
/// of another form counts as none.
fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let rest = http_date(value)?.duration_since(TimeZone::UTC.to_datetime(now));
    Some(Duration::try_from(rest).unwrap_or_default())
}

/// Reads a date in any of the three forms of RFC 9110, section 5.6.7. The day of the week says nothing that the date does
/// not.
fn http_date(text: &str) -> Option<DateTime> {
    let (form, date) = match text.split_once(", ") {
        Some((_, date)) if date.contains('-') => ("%d-%b-%y %H:%M:%S GMT", date),
        Some((_, date)) => ("%d %b %Y %H:%M:%S GMT", date),
        None => ("%b %e %H:%M:%S %Y", text.split_once(' ')?.1),
    };
    DateTime::strptime(form, date).ok()
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
            ("Saturday, 21-Nov-26 10:01:00 GMT", Some(60)),
            ("Sat Nov 21 10:01:00 2026", Some(60)),
            ("Tue Dec  1 10:00:00 2026", Some(864_000)),
            ("Mon, 21 Nov 2026 10:01:00 GMT", Some(60)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", Some(u64::MAX)),
            (&"9".repeat(400), Some(u64::MAX)),
            ("00000000000000000000000000000000000000030", Some(30)),
            ("+30", None),
            ("1.5", None),
            ("30, 60", None),
            ("Sat, 21 Nov 2026 10:01:00", None),
            ("Sat, 31 Nov 2026 10:01:00 GMT", None),
            ("-1", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(retry_after(value, now), wanted.map(Duration::from_secs), "{value}");
        }
    }

    /// A number or a date that was too large counted as no wish at all.
    #[test]
    fn no_rest_is_too_long_to_count() {
        for value in ["99999999999999999999", "3601", "Fri, 31 Dec 9999 23:59:59 GMT"] {
            let answer = Answer {
                request: String::new(),
                url: Url::parse("https://r.example/").unwrap(),
                status: StatusCode::TOO_MANY_REQUESTS,
                headers: [(RETRY_AFTER, value.parse().unwrap())].into_iter().collect(),
                body: Vec::new(),
                is_head: false,
                is_foreign: false,
                reserved: None,
            };
            assert_eq!(answer.retry_after(), Some(LONGEST_REST), "{value}");
        }
    }
}
