//! One API with one login: retries, redirects, conditional requests and rate limits.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::HeaderValue;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use url::Url;

use super::body::{MAX_REFUSAL_VALUES, MAX_VALUES, ResponseMemory, count_values};
use super::clients::{ForgeState, limiter_key};
use super::credential::ForgeCredential;
use super::exchange::{Failed, RawRequest, RawResponse, exchange};
use super::quota::{LimitedResponse, is_limited_query};
use super::rate_limit::{LimiterKey, RateLimiter};
use crate::forge::error::{ForgeError, SizeLimit};
use crate::forge::exchange::{ApiRequest, ApiResponse, Method, Transport};
use crate::forge::kind::ForgeKind;
use crate::forge::reading::NO_JSON;
use crate::net::http::Route;
use crate::net::{self, SsrfGuard};
use crate::printable::printable;
use crate::secrets::{Fingerprint, Redactor};

/// The maximum number of redirects that are followed.
const MAX_REDIRECTS: usize = 3;

/// The pauses before a reading call is repeated.
const RETRIES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// The maximum length of a server's message in an error, in bytes.
pub(super) const MAX_MESSAGE: usize = 500;

/// The body in place of a page for signing in.
const SIGN_IN: &str = r#"{"message": "it answers with a page to sign in"}"#;

/// The members by which a body says what is wrong.
///
/// GraphQL does so with a status of success.
const DEFECTS: [&str; 5] = ["message", "error", "error_description", "errors", "detail"];

/// The resource of GitHub's GraphQL API.
const GRAPHQL: &str = "graphql";

/// The bytes of a path segment that are not escaped.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A login at an API, and the way there.
#[derive(Clone, Debug)]
pub struct ApiLogin {
    /// The namespace for which calls are made.
    pub namespace: String,
    /// The object that has the credentials, for errors.
    pub owner: String,
    /// The login.
    pub credential: ForgeCredential,
    /// The fingerprint of the identity whose token is renewed, if there is one.
    pub identity: Option<Fingerprint>,
    /// The way to the server.
    pub route: Route,
}

/// Sends requests to the API of one forge with one login.
#[derive(Clone, Debug)]
pub struct HttpTransport {
    shared: Arc<ForgeState>,
    kind: ForgeKind,
    /// The base URL, without a slash at its end.
    base: Url,
    /// The host of the base URL, with its port unless that is the usual one.
    host: String,
    owner: String,
    authorization: HeaderValue,
    /// Redacts from texts that are shown.
    redactor: Arc<Redactor>,
    /// Redacts from data, which a password may resemble.
    token_redactor: Arc<Redactor>,
    route: Arc<Route>,
    guard: SsrfGuard,
    /// The key of cached responses and connections.
    key: LimiterKey,
    limiter: LimiterKey,
    /// The resource whose limit counts, where the server has several.
    resource: &'static str,
}

impl HttpTransport {
    pub(super) fn new(
        shared: Arc<ForgeState>,
        kind: ForgeKind,
        base: Url,
        login: ApiLogin,
    ) -> Result<Self, ForgeError> {
        let ApiLogin { namespace, owner, credential, identity, route } = login;
        let host = host_of(&base);
        let key = limiter_key(&base, &namespace, &route, &credential);
        // A new token of an App has the rate limits of the one before.
        let limiter = LimiterKey { login: identity.unwrap_or(key.login), ..key.clone() };
        let authorization = credential.header(kind).filter(|_| !host.is_empty());
        let authorization = authorization.ok_or_else(|| ForgeError::Unauthenticated {
            host: host.clone(),
            login: owner.clone(),
            detail: "a header cannot carry them: correct the Secret".to_owned(),
        })?;
        let resource = match kind {
            ForgeKind::Github if base.path().ends_with("/graphql") => GRAPHQL,
            ForgeKind::Github => "core",
            _ => "",
        };
        let redactor = Arc::new(credential.redactor(kind));
        let token_redactor = Arc::new(redactor.of_tokens());
        let (guard, route) = (shared.guard(&route), Arc::new(route));
        Ok(Self {
            shared,
            kind,
            base,
            host,
            owner,
            authorization,
            redactor,
            token_redactor,
            route,
            guard,
            key,
            limiter,
            resource,
        })
    }

    /// Returns the object that has the credentials.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Returns the keys of cached responses and of the rate limiter.
    #[cfg(test)]
    pub(super) fn keys(&self) -> (&LimiterKey, &LimiterKey) {
        (&self.key, &self.limiter)
    }

    /// Returns the host of the API, with its port unless that is the usual one.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the address of a request.
    fn url_of(&self, request: &ApiRequest) -> Result<Url, ForgeError> {
        let mut path = self.base.path().trim_end_matches('/').to_owned();
        for segment in &request.path {
            if matches!(segment.as_str(), "" | "." | "..") {
                return Err(self.malformed(request, format!("no answer: the path has the part {segment:?}")));
            }
            path.push('/');
            path.extend(utf8_percent_encode(segment, SEGMENT));
        }
        let mut url = self.base.clone();
        url.set_path(&path);
        url.set_query(None);
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
        }
        Ok(url)
    }

    fn malformed(&self, request: &ApiRequest, detail: String) -> ForgeError {
        ForgeError::Malformed { host: self.host.clone(), operation: request.operation, detail }
    }

    /// Returns the host without a port.
    fn bare_host(&self) -> &str {
        self.base.host_str().unwrap_or_default()
    }

    fn unreachable(&self, cause: &str) -> ForgeError {
        ForgeError::unreachable(&self.host, &excerpt(&self.redactor.redact(cause)))
    }

    /// Makes the error of an exchange without a result.
    ///
    /// The detail is the rest of a sentence about the host.
    fn unavailable(&self, detail: String) -> ForgeError {
        ForgeError::Unavailable { host: self.host.clone(), detail }
    }

    /// Makes the error of a call without an answer in time.
    fn no_answer(&self) -> ForgeError {
        self.unavailable(format!("gives no answer within {} s", self.shared.options.timeout.as_secs()))
    }

    /// Takes note of the error of a server that is silent, and returns it.
    fn silent(&self, error: ForgeError) -> ForgeError {
        self.shared.note_silence(&self.key, &error);
        error
    }

    fn too_large(&self, request: &ApiRequest, limit: SizeLimit) -> ForgeError {
        ForgeError::TooLarge { host: self.host.clone(), operation: request.operation, limit }
    }

    fn failed(&self, request: &ApiRequest, failed: Failed) -> ForgeError {
        match failed {
            Failed::Connection(cause) => self.unreachable(&cause),
            Failed::NotConnected(cause) => self.silent(self.unreachable(&cause)),
            Failed::Silent => self.silent(self.no_answer()),
            Failed::TooLarge(limit) => self.too_large(request, SizeLimit::Bytes(limit)),
            Failed::Slow => self.unavailable("did not complete a large answer in time".to_owned()),
            Failed::NoMemory => self.unavailable(
                "gives a large answer, for which this process had no memory free, because other runs hold it; it is tried \
                 again"
                    .to_owned(),
            ),
        }
    }

    /// Returns the memory that is reserved for large responses.
    fn memory(&self) -> ResponseMemory<'_> {
        ResponseMemory { budget: &self.shared.options.capacity.memory, namespace: &self.key.namespace }
    }

    /// Sends a request with retries, if it only reads.
    async fn send_with_retries(&self, request: &ApiRequest) -> Result<ApiResponse, ForgeError> {
        let mut retries = RETRIES.iter().filter(|_| request.method == Method::Get);
        let limiter = self.shared.limiters.of(&self.limiter, self.bare_host());
        loop {
            let result = self.send_once(request, &limiter).await;
            let is_transient =
                matches!(result, Err(ForgeError::Unavailable { .. } | ForgeError::Failed { .. }));
            let is_retried = is_transient && self.shared.silence(&self.key).is_none();
            let Some(pause) = retries.next().filter(|_| is_retried) else { return result };
            sleep(*pause).await;
        }
    }

    /// Sends a request when the limiter admits it, and reads the response.
    async fn send_once(
        &self,
        request: &ApiRequest,
        limiter: &RateLimiter,
    ) -> Result<ApiResponse, ForgeError> {
        let metrics = &self.shared.options.metrics;
        let rested = |from, rest| metrics.forge_rested(self.kind.name(), limiter.count_rest(from, rest));
        let limited = |retry_after| {
            rested(Timestamp::now(), retry_after);
            ForgeError::RateLimited { host: self.host.clone(), retry_after }
        };
        let begin = Timestamp::now();
        let admitted = limiter.admit(request.cost, self.resource).await.map_err(limited)?;
        rested(begin, admitted.waited);
        if let Some(error) = self.shared.silence(&self.key) {
            return Err(error);
        }
        let url = self.url_of(request)?;
        let cached = match request.method {
            Method::Get => self.shared.cache.get(&self.key, &url),
            _ => None,
        };
        let etag = cached.as_ref().map(|cached| cached.etag.as_str());
        let limit = self.shared.options.timeout;
        let raw = match timeout(limit, self.follow(request, url.clone(), etag)).await {
            Ok(raw) => raw,
            Err(_) => Err(self.silent(self.no_answer())),
        };
        let code = raw.as_ref().ok().map(|raw| raw.status);
        metrics.forge_requested(self.kind.name(), request.operation, code);
        let raw = raw?;
        if let (304, Some(cached)) = (raw.status, &cached) {
            let resource = self.resource;
            limiter.note(LimitedResponse { status: 304, headers: &raw.headers, message: "", resource });
            let (headers, body) = (cached.headers.clone(), Arc::clone(&cached.body));
            return self.parse(request, RawResponse { status: 200, headers, body, memory: None }).await;
        }
        let (status, headers, received) = (raw.status, raw.headers.clone(), Arc::clone(&raw.body));
        let parsed = self.parse(request, raw).await;
        let body = parsed.as_ref().ok().map(|response| &response.body);
        let message = body.and_then(|body| body["message"].as_str()).unwrap_or_default();
        // GraphQL states its limits in a response that is a success.
        let is_limited = body.is_some_and(|body| self.resource == GRAPHQL && is_limited_query(body));
        let limited_status = if is_limited { 429 } else { status };
        let resource = self.resource;
        let noted = LimitedResponse { status: limited_status, headers: &headers, message, resource };
        let pause = limiter.note(noted);
        if let Some(remaining) = limiter.remaining() {
            metrics.forge_remaining(self.bare_host(), remaining);
        }
        if let Some(retry_after) = pause {
            return Err(limited(retry_after));
        }
        if status >= 500 {
            return Err(ForgeError::failing(&self.host, status, &excerpt(&self.redactor.redact(message))));
        }
        let response = parsed?;
        if request.method == Method::Get && status == 200 {
            self.shared.cache.insert(&self.key, &url, &headers, &received);
        }
        Ok(response)
    }

    /// Sends a request and follows redirects within the origin.
    async fn follow(
        &self,
        request: &ApiRequest,
        mut url: Url,
        etag: Option<&str>,
    ) -> Result<RawResponse, ForgeError> {
        let namespace = &self.key.namespace;
        self.guard.admit(namespace, &url).await.map_err(|error| self.unreachable(&error.to_string()))?;
        let client = self.shared.client(&self.key, &self.route).await;
        let client = client.map_err(|error| self.unreachable(&error))?;
        for _ in 0..=MAX_REDIRECTS {
            let (authorization, memory) = (&self.authorization, self.memory());
            // Otherwise a login that is not accepted is sent to a page for signing in.
            let header =
                (self.kind == ForgeKind::AzureDevops).then_some(("X-TFS-FedAuthRedirect", "Suppress"));
            let raw = RawRequest { url: url.clone(), request, authorization, header, etag, memory };
            let sent = net::on_behalf_of(namespace, exchange(&client, raw)).await;
            let response = sent.map_err(|failed| self.failed(request, failed))?;
            if self.kind == ForgeKind::AzureDevops && is_sign_in(&response) {
                let body = Arc::new(SIGN_IN.as_bytes().to_vec());
                return Ok(RawResponse { status: 401, body, ..response });
            }
            let is_redirect = match response.status {
                301 | 307 | 308 => true,
                302 | 303 => request.method == Method::Get,
                _ => false,
            };
            if !is_redirect {
                return Ok(response);
            }
            let target = response.header("location").and_then(|location| url.join(location).ok());
            let target = target.ok_or_else(|| self.malformed(request, "a redirect to nowhere".to_owned()))?;
            if target.origin() != self.base.origin() {
                let host = excerpt(&self.redactor.redact(&host_of(&target)));
                let detail =
                    format!("a redirect to another server, {host}, which does not get the credentials");
                return Err(self.malformed(request, detail));
            }
            url = target;
        }
        Err(self.malformed(request, "too many redirects".to_owned()))
    }

    /// Parses a body of a bounded number of values.
    ///
    /// The texts of a refusal, and those of a success that say what is wrong, are only shown: all secrets are redacted. The others
    /// are data, such as the text of a person or the name of a branch: only tokens are, as a password may be a word of them.
    async fn parse(&self, request: &ApiRequest, raw: RawResponse) -> Result<ApiResponse, ForgeError> {
        let is_html = raw.header("content-type").is_some_and(|kind| kind.starts_with("text/html"));
        let RawResponse { status, mut headers, body, mut memory } = raw;
        let (is_success, size) = (status < 300, body.len());
        let redactor = Arc::clone(if is_success { &self.token_redactor } else { &self.redactor });
        for (_, value) in headers.iter_mut().filter(|(_, value)| redactor.may_be_in(value)) {
            *value = redactor.redact(value);
        }
        if body.is_empty() {
            return Ok(ApiResponse { status, headers, body: Value::Null, memory });
        }
        let (pool, namespace) = (&self.shared.options.capacity.pool, &self.key.namespace);
        let counted = Arc::clone(&body);
        let values = pool.run_sized(namespace, size, move || count_values(&counted)).await;
        if !is_success && values > MAX_REFUSAL_VALUES {
            return Ok(ApiResponse { status, headers, body: Value::Null, memory });
        }
        if values > MAX_VALUES {
            return Err(self.too_large(request, SizeLimit::Values(MAX_VALUES)));
        }
        if memory.is_none() {
            let reserved = self.memory().for_values(size, values).await;
            memory = reserved.map_err(|failed| self.failed(request, failed))?;
        }
        let full_redactor = Arc::clone(&self.redactor);
        let read = move || {
            let mut value = serde_json::from_slice::<Value>(&body)?;
            redactor.redact_json(&mut value);
            for member in DEFECTS {
                value.get_mut(member).into_iter().for_each(|text| full_redactor.redact_json(text));
            }
            Ok(value)
        };
        let parsed: Result<Value, serde_json::Error> = pool.run_sized(namespace, size, read).await;
        let body = match parsed {
            Ok(body) => body,
            // The status counts, whatever a proxy in between writes.
            Err(_) if !is_success => unreadable_refusal(status, is_html),
            Err(error) => {
                let kind = match (is_html, error.is_eof()) {
                    (true, _) => "a page of HTML instead of JSON: check tagboat.dev/forge-url",
                    (false, true) => "JSON that ends too early",
                    (false, false) => "a body that is no JSON",
                };
                return Err(self.malformed(request, kind.to_owned()));
            }
        };
        Ok(ApiResponse { status, headers, body, memory })
    }
}

/// Returns the body in place of one that is no JSON.
///
/// An API says in JSON what it does not have, so another server answers in other words.
fn unreadable_refusal(status: u16, is_html: bool) -> Value {
    match status {
        404 | 405 => {
            let kind = if is_html { "a page of HTML" } else { "a text" };
            json!({ "message": format!("{status}, with {kind} {NO_JSON}") })
        }
        _ => Value::Null,
    }
}

/// Returns the host of an address, with its port unless that is the usual one.
fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

impl Transport for HttpTransport {
    async fn send(&self, request: ApiRequest) -> Result<ApiResponse, ForgeError> {
        // Boxed: many calls may wait for their turn.
        Box::pin(self.send_with_retries(&request)).await
    }

    fn redact(&self, text: &str) -> String {
        self.redactor.redact(text)
    }
}

/// Returns true for the answers of Azure DevOps to credentials that it does not accept.
fn is_sign_in(response: &RawResponse) -> bool {
    let leads_to_it = || response.header("location").is_some_and(|target| target.contains("/_signin"));
    response.status == 203 || response.status == 302 && leads_to_it()
}

/// Returns a server's text in one line of bounded length.
pub(super) fn excerpt(text: &str) -> String {
    let text = printable(text).into_owned();
    let text = text.trim();
    if text.len() <= MAX_MESSAGE {
        text.to_owned()
    } else {
        format!("{}…", &text[..text.floor_char_boundary(MAX_MESSAGE)])
    }
}
