//! Errors, as in RFC 9457.

use std::fmt;

use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use super::json::json;
use crate::printable::printable;
use crate::rollout::bounds;
use crate::web::store::{Missing, Unknown, UnknownPools};

/// The content type of a problem.
pub(in crate::web) const PROBLEM: &str = "application/problem+json";

/// The maximum length of the text of a problem, in characters.
const MAX_DETAIL: usize = 400;

/// The time after which a client may try again, in seconds.
const RETRY_SECONDS: &str = "10";

/// Error of a request, as in RFC 9457.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(in crate::web) struct Problem {
    /// Type of the problem; `about:blank` says no more than the status.
    #[serde(rename = "type")]
    type_: String,
    /// Phrase of the HTTP status.
    title: String,
    /// HTTP status.
    #[schemars(range(min = 400, max = 599))]
    status: u16,
    /// Explanation for users, one sentence.
    #[schemars(length(min = 1))]
    detail: String,
}

impl Problem {
    /// Creates a problem; `detail` may quote the request.
    pub(in crate::web) fn new(status: StatusCode, detail: impl AsRef<str>) -> Self {
        Self {
            type_: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            detail: bounds::cut(printable(detail.as_ref()).into_owned(), MAX_DETAIL),
        }
    }

    /// Creates the problem of a parameter or a part of the path.
    pub(in crate::web) fn bad_request(detail: impl AsRef<str>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Creates the problem of an object or a path that does not exist.
    pub(in crate::web) fn not_found(detail: impl AsRef<str>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// Creates a problem after which the client may try again.
    pub(in crate::web) fn unavailable(detail: impl AsRef<str>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    /// Returns the phrase of the HTTP status.
    pub(in crate::web) fn title(&self) -> &str {
        &self.title
    }

    /// Returns the explanation for users.
    pub(in crate::web) fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the HTTP status.
    pub(in crate::web) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}: {}", self.status, self.title, self.detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut response = (status, [(CONTENT_TYPE, PROBLEM)], json(&self)).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS));
        }
        response
    }
}

/// The deployments are not known now.
impl From<Unknown> for Problem {
    fn from(unknown: Unknown) -> Self {
        Self::unavailable(unknown.to_string())
    }
}

/// The node pools are not known now, or the cluster has none.
impl From<UnknownPools> for Problem {
    fn from(unknown: UnknownPools) -> Self {
        match unknown {
            UnknownPools::Missing(Missing::NotServed(_)) => Self::not_found(unknown.to_string()),
            _ => Self::unavailable(unknown.to_string()),
        }
    }
}
