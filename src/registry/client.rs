//! HTTP as all talk with registries uses it: the only place with clients, time limits, proxies, redirects and repeats.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, LINK,
    LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
};
use reqwest::{Method, StatusCode, redirect, retry};
use serde::Deserialize;
use serde::de::Error as _;
use tokio::time::{Instant, sleep, timeout};
use url::{Host, Url};

use super::budget::Budgets;
use super::error::{RegistryError, innermost};
use super::login::Fingerprint;
use super::refusal::{Refusal, shown};
use super::tls::Tls;
use crate::git::Proxy;

/// How many redirects are followed.
const REDIRECTS: usize = 5;

/// The pauses before a request is repeated.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];

/// How much is read of an answer that is no success.
const REFUSAL_SIZE: usize = 64 * 1024;

/// The longest rest that a server is given because it asks for one.
const LONGEST_REST: Duration = Duration::from_secs(60 * 60);

/// What we call ourselves.
const USER_AGENT: &str = concat!("tagboat/", env!("CARGO_PKG_VERSION"));

/// How long each part of a request may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Until there is a connection.
    pub connect: Duration,
    /// Until the answer begins.
    pub first_byte: Duration,
    /// Without anything new of the answer.
    pub between_bytes: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let limit = Duration::from_secs(30);
        Self { connect: Duration::from_secs(10), first_byte: limit, between_bytes: limit }
    }
}

/// How a registry is reached: what all requests there share.
#[derive(Debug, Clone, Default)]
pub struct Way {
    /// Whom we trust, and who we are.
    pub tls: Tls,
    /// The proxy between.
    pub proxy: ProxyChoice,
}

/// Which proxy is used.
#[derive(Debug, Clone, Default)]
pub enum ProxyChoice {
    /// That of the variables `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`.
    #[default]
    Environment,
    /// This one.
    Given(Proxy),
    /// None.
    Direct,
}

impl Way {
    /// Equal for equal ways.
    pub fn fingerprint(&self) -> Fingerprint {
        let tls = self.tls.fingerprint();
        let proxy = match &self.proxy {
            ProxyChoice::Environment => Fingerprint::of([&b"environment"[..]]),
            ProxyChoice::Direct => Fingerprint::of([&b"direct"[..]]),
            ProxyChoice::Given(proxy) => Fingerprint::of([&b"given"[..], proxy.to_setting().expose()]),
        };
        Fingerprint::of([tls.as_bytes(), proxy.as_bytes()])
    }
}

/// When a piece of work has to be done.
#[derive(Debug, Clone)]
pub(super) struct Deadline {
    at: Instant,
    allowed: Duration,
}

impl Deadline {
    /// So long from now.
    pub(super) fn within(allowed: Duration) -> Self {
        Self { at: Instant::now() + allowed, allowed }
    }

    /// What a future gives, unless the time is over first.
    pub(super) async fn hold<T>(
        &self,
        what: impl FnOnce() -> String,
        work: impl Future<Output = Result<T, RegistryError>>,
    ) -> Result<T, RegistryError> {
        let ended = tokio::time::timeout_at(self.at, work).await;
        ended.unwrap_or_else(|_| Err(RegistryError::TooSlow { what: what(), allowed: self.allowed }))
    }

    fn leaves(&self, pause: Duration) -> bool {
        Instant::now() + pause < self.at
    }
}

/// One request.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) url: Url,
    /// Headers that any server may see.
    pub(super) headers: HeaderMap,
    /// What only the server of `url` may see.
    pub(super) authorization: Option<HeaderValue>,
    /// What is sent, which has secrets in it and goes to no other server.
    pub(super) form: Option<Arc<[u8]>>,
    /// How much is read of a good answer.
    pub(super) largest: usize,
    /// Whether it is repeated where that may help.
    pub(super) is_repeated: bool,
}

impl Call {
    pub(super) fn get(url: Url, largest: usize) -> Self {
        Self {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            authorization: None,
            form: None,
            largest,
            is_repeated: true,
        }
    }

    pub(super) fn head(url: Url) -> Self {
        Self { method: Method::HEAD, ..Self::get(url, 0) }
    }

    pub(super) fn post(url: Url, form: impl Into<Arc<[u8]>>, largest: usize) -> Self {
        Self { method: Method::POST, form: Some(form.into()), ..Self::get(url, largest) }
    }

    pub(super) fn accepting(self, types: &str) -> Self {
        self.with(ACCEPT, types)
    }

    pub(super) fn unless(self, etag: Option<&str>) -> Self {
        match etag {
            Some(etag) => self.with(IF_NONE_MATCH, etag),
            None => self,
        }
    }

    /// Adds a header; a value that no header can have is left out.
    pub(super) fn with(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    pub(super) fn authorized(mut self, authorization: Option<HeaderValue>) -> Self {
        self.authorization = authorization;
        self
    }

    pub(super) fn once(mut self) -> Self {
        self.is_repeated = false;
        self
    }

    /// The request for messages.
    pub(super) fn shown(&self) -> String {
        format!("{} {}", self.method, shown(&self.url))
    }
}

/// What a server answered.
pub(super) struct Answer {
    /// The request for messages.
    pub(super) request: String,
    pub(super) status: StatusCode,
    headers: HeaderMap,
    pub(super) body: Vec<u8>,
    is_head: bool,
}

impl Answer {
    /// The values of a header that are text.
    fn values(&self, name: HeaderName) -> impl Iterator<Item = &str> {
        self.headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok())
    }

    pub(super) fn header(&self, name: &'static str) -> Option<&str> {
        self.values(HeaderName::from_static(name)).next()
    }

    pub(super) fn challenges(&self) -> impl Iterator<Item = &str> {
        self.values(WWW_AUTHENTICATE)
    }

    pub(super) fn links(&self) -> impl Iterator<Item = &str> {
        self.values(LINK)
    }

    pub(super) fn etag(&self) -> Option<&str> {
        self.values(ETAG).next()
    }

    pub(super) fn content_type(&self) -> Option<&str> {
        self.values(CONTENT_TYPE).next()
    }

    pub(super) fn refusal(&self) -> Refusal {
        Refusal::read(self.status, self.is_head, &self.body)
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

    pub(super) fn malformed(&self, flaw: impl Into<String>) -> RegistryError {
        RegistryError::Malformed { request: self.request.clone(), flaw: flaw.into() }
    }

    /// How long the server wants to be left alone; only where it refuses because of what is too much for it.
    fn retry_after(&self) -> Option<Duration> {
        let may_rest = matches!(self.status.as_u16(), 429 | 503);
        let value = self.values(RETRY_AFTER).next().filter(|_| may_rest)?;
        Some(retry_after(value, Timestamp::now())?.min(LONGEST_REST))
    }

    fn is_passing(&self) -> bool {
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

/// Connections of one way, under the budgets of the servers that they lead to.
#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    budgets: Arc<Budgets>,
    limits: Limits,
}

impl Client {
    pub(super) fn new(way: &Way, limits: Limits, budgets: Arc<Budgets>) -> Result<Self, RegistryError> {
        // Fails where there is one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .connect_timeout(limits.connect)
            .read_timeout(limits.between_bytes)
            .pool_max_idle_per_host(8)
            .pool_idle_timeout(Duration::from_secs(60));
        let builder = match &way.proxy {
            ProxyChoice::Environment => builder,
            ProxyChoice::Direct => builder.no_proxy(),
            ProxyChoice::Given(proxy) => {
                let address = proxy.to_setting();
                let address = String::from_utf8_lossy(address.expose());
                let proxy = reqwest::Proxy::all(address.as_ref())
                    .map_err(|error| RegistryError::Proxy { trouble: innermost(&error.without_url()) })?;
                builder.proxy(proxy)
            }
        };
        let http = way.tls.apply(builder)?.build();
        let http = http.map_err(|error| RegistryError::Client { trouble: innermost(&error) })?;
        Ok(Self { http, budgets, limits })
    }

    /// Sends a request, as often as it makes sense, and reads the answer, whatever its status.
    ///
    /// Where a server is busy, or a connection breaks, the request is repeated. A server that wants to be left alone
    /// is, by all; where there is no time for that, its answer is given at once.
    pub(super) async fn send(&self, call: &Call, deadline: &Deadline) -> Result<Answer, RegistryError> {
        deadline.hold(|| call.shown(), self.persist(call, deadline)).await
    }

    async fn persist(&self, call: &Call, deadline: &Deadline) -> Result<Answer, RegistryError> {
        let budget = self.budgets.of(&server(&call.url));
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
            let pause = rest.unwrap_or_default().max(*pause + jitter(*pause / 10));
            if !deadline.leaves(pause) {
                return ended;
            }
            sleep(pause).await;
        }
    }

    /// Sends a request to where it leads in the end.
    async fn follow(&self, call: &Call) -> Result<Answer, RegistryError> {
        let mut call = call.clone();
        for _ in 0..=REDIRECTS {
            let answer = self.exchange(&call).await?;
            let is_redirect = matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308);
            let location = answer.values(LOCATION).next().filter(|_| is_redirect);
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

    async fn exchange(&self, call: &Call) -> Result<Answer, RegistryError> {
        let _place = self.budgets.of(&server(&call.url)).enter().await;
        let mut request =
            self.http.request(call.method.clone(), call.url.clone()).headers(call.headers.clone());
        if let Some(authorization) = &call.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        if let Some(form) = &call.form {
            request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form.to_vec());
        }
        let unreachable = |error: reqwest::Error| RegistryError::Unreachable {
            request: call.shown(),
            trouble: innermost(&error.without_url()),
            is_connection: false,
        };
        let allowed = self.limits.first_byte;
        let response = timeout(allowed, request.send()).await;
        let response = response.map_err(|_| RegistryError::Silent { request: call.shown(), allowed })?;
        let mut response = response.map_err(|error| {
            if error.is_timeout() && !error.is_connect() {
                return RegistryError::Silent { request: call.shown(), allowed: self.limits.between_bytes };
            }
            let is_connection = error.is_connect();
            match unreachable(error) {
                RegistryError::Unreachable { request, trouble, .. } => {
                    RegistryError::Unreachable { request, trouble, is_connection }
                }
                other => other,
            }
        })?;
        let status = response.status();
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
        Ok(Answer {
            request: call.shown(),
            status,
            headers: std::mem::take(response.headers_mut()),
            body,
            is_head: call.method == Method::HEAD,
        })
    }
}

/// Where a redirect leads, or why it is not followed.
fn target(call: &Call, location: &str) -> Result<Url, &'static str> {
    let mut target = call.url.join(location).map_err(|_| "it is no address")?;
    if !matches!(target.scheme(), "http" | "https") {
        return Err("it is no address of a web server");
    }
    if call.url.scheme() == "https" && target.scheme() == "http" {
        return Err("it leads from an encrypted connection to one that is not");
    }
    if is_inside(&target) && !is_inside(&call.url) {
        return Err("it leads from a public server into a private network");
    }
    if call.form.is_some() && target.origin() != call.url.origin() {
        return Err("it leads to another server, which must not get what is sent");
    }
    // What a redirect says of a login is none of ours.
    let _ = target.set_username("");
    let _ = target.set_password(None);
    Ok(target)
}

/// Whether an address names a machine of a private network, or this one, by its number or as `localhost`.
pub(super) fn is_inside(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => {
            ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_unspecified()
        }
        Some(Host::Ipv6(ip)) => match ip.to_ipv4_mapped() {
            Some(ip) => ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_unspecified(),
            None => {
                ip.is_loopback() || ip.is_unspecified() || ip.is_unique_local() || ip.is_unicast_link_local()
            }
        },
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

/// Host and port of an address.
fn server(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port_or_known_default().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// A part of `longest` by chance, so that those who met once do not meet again.
fn jitter(longest: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish() % 1000;
    longest * u32::try_from(random).expect("it is less than a thousand") / 1000
}

fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs() + u64::from(time.subsec_nanos() > 0))
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

    #[test]
    fn redirects_lead_nowhere_in_secret() {
        let call = |url: &str| Call::get(Url::parse(url).unwrap(), 1);
        for (from, location, wanted) in [
            ("https://r.example/v2/", "/v2/x", Ok("https://r.example/v2/x")),
            ("https://r.example/v2/", "https://u:p@cdn.example/x", Ok("https://cdn.example/x")),
            ("http://r.example/v2/", "https://r.example/v2/", Ok("https://r.example/v2/")),
            (
                "https://r.example/",
                "http://r.example/",
                Err("it leads from an encrypted connection to one that is not"),
            ),
            (
                "https://r.example/",
                "https://169.254.169.254/",
                Err("it leads from a public server into a private network"),
            ),
            (
                "https://r.example/",
                "https://[::ffff:10.0.0.1]/",
                Err("it leads from a public server into a private network"),
            ),
            (
                "http://r.example/",
                "http://localhost:1/",
                Err("it leads from a public server into a private network"),
            ),
            ("http://10.0.0.2/", "http://10.0.0.1/", Ok("http://10.0.0.1/")),
            ("https://r.example/", "ftp://r.example/", Err("it is no address of a web server")),
            ("https://r.example/", "https://[", Err("it is no address")),
        ] {
            let found = target(&call(from), location);
            assert_eq!(found.as_ref().map(Url::as_str).map_err(|flaw| *flaw), wanted, "{from} {location}");
        }
        let post = Call::post(Url::parse("https://t.example/").unwrap(), *b"x", 1);
        assert!(target(&post, "https://other.example/").is_err());
        assert!(target(&post, "/token").is_ok());
    }

    #[test]
    fn no_chance_is_longer_than_allowed() {
        for _ in 0..100 {
            assert!(jitter(Duration::from_millis(100)) < Duration::from_millis(100));
        }
    }
}
