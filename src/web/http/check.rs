//! The checks of every request, and the headers of every response.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::hosts::Hosts;
use super::problem::Problem;

/// The methods that every route has.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD");

/// The policy of documents, which are no pages.
const NO_SOURCES: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

/// The headers of every response.
///
/// Statuses are stored nowhere, never guessed to be of another type, and read by no page of another site.
const HEADERS: [(HeaderName, HeaderValue); 4] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

/// Refuses requests for other hosts and with other methods, and adds headers to every response.
///
/// A response keeps its own Content-Security-Policy.
pub(in crate::web) async fn check(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    let mut response = match refusal(&hosts, &request) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(NO_SOURCES);
    for (name, value) in HEADERS {
        headers.insert(name, value);
    }
    response
}

/// Returns the response to a request that is not served.
fn refusal(hosts: &Hosts, request: &Request) -> Option<Response> {
    if !hosts.accept(request) {
        let detail =
            "the Host of the request is neither an IP address nor localhost nor a name of --status-host";
        return Some(Problem::new(StatusCode::MISDIRECTED_REQUEST, detail).into_response());
    }
    let method = request.method();
    if method == Method::GET || method == Method::HEAD {
        return None;
    }
    let mut response =
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are allowed").into_response();
    response.headers_mut().insert(ALLOW, METHODS);
    Some(response)
}
