//! A request to an API and its response, as values.
//!
//! The code of a forge makes requests and reads responses. A [`Transport`] sends them, with login, rate limiter, redaction and
//! limits of size and time.

use serde_json::Value;

use super::error::ForgeError;
use crate::tenancy::MemoryReservation;

/// A request to the API of a forge.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiRequest {
    /// The method.
    pub method: Method,
    /// The segments of the path below the base URL, not percent-encoded.
    pub path: Vec<String>,
    /// The parameters of the query.
    pub query: Vec<(&'static str, String)>,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Option<Value>,
    /// The cost for rate limits.
    pub cost: Cost,
    /// The name of the operation, for metrics and errors.
    pub operation: &'static str,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET.
    Get,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

/// The cost of a request for rate limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// It reads.
    Read,
    /// It changes something.
    Write,
    /// It creates content of which users are notified.
    Create,
    /// It opens, closes or signs.
    ///
    /// This goes on when little is left of a limit.
    Essential,
    /// It reads something for that.
    EssentialRead,
}

/// The response of an API to a request that was answered.
///
/// The transport follows redirects, repeats what may be repeated, and turns rate limits into errors. Every other status is
/// left to the code of the forge.
#[derive(Debug)]
pub struct ApiResponse {
    /// The status.
    pub status: u16,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, of bounded size; null if it is empty.
    pub body: Value,
    /// The memory that is reserved for a large body.
    pub memory: Option<MemoryReservation>,
}

impl ApiResponse {
    /// Makes a response for whose body no memory is reserved.
    pub fn new(status: u16, headers: Vec<(String, String)>, body: Value) -> Self {
        Self { status, headers, body, memory: None }
    }
}

/// Sends requests to one API with one login.
pub trait Transport: Send + Sync {
    /// Sends a request.
    ///
    /// # Errors
    ///
    /// If there is no answer, a redirect leads elsewhere, a rate limit applies, or the body is no JSON of bounded size.
    fn send(&self, request: ApiRequest) -> impl Future<Output = Result<ApiResponse, ForgeError>> + Send;

    /// Redacts the login from a text of a success that is shown.
    ///
    /// The texts of refusals are redacted already.
    fn redact(&self, text: &str) -> String {
        text.to_owned()
    }
}
