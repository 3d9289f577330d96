//! Errors of HTTP requests.

use std::time::Duration;

use super::tls::TlsError;
use crate::net::HttpClientError;

/// An error of a request, before there is a complete response.
///
/// It can be cloned, because one request may serve several objects.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HttpError {
    /// The response is missing or incomplete.
    #[error("{request}: {cause}")]
    Unreachable {
        /// The request.
        request: String,
        /// The cause.
        cause: String,
        /// Set if no connection was made.
        is_connection: bool,
    },
    /// The timeout of the whole operation is over.
    #[error("{operation}: no complete response within {allowed:?}{advice}")]
    Timeout {
        /// The operation.
        operation: String,
        /// The timeout.
        allowed: Duration,
        /// The rest of the sentence, if the timeout can be raised.
        advice: &'static str,
    },
    /// A response that memory is held for did not arrive soon enough.
    #[error(
        "{operation}: the large response was not complete within {allowed:?} after memory was reserved for it; the next run \
         tries again"
    )]
    MemoryTimeout {
        /// The request or the list.
        operation: String,
        /// The time in which it must be complete.
        allowed: Duration,
    },
    /// No memory or slot for a large response was free for too long.
    #[error("no memory was free for a large response, because other runs hold it; the next run tries again")]
    NoCapacity,
    /// The server did not begin to respond in time.
    #[error("{request}: the server did not start to respond within {allowed:?}")]
    NoResponse {
        /// The request.
        request: String,
        /// The timeout.
        allowed: Duration,
    },
    /// The server has asked for a pause that is longer than the deadline allows.
    #[error(
        "requests to {server} are paused for another {pause:?}, as its last response asked (Retry-After)"
    )]
    Paused {
        /// The server's host and port.
        server: String,
        /// The rest of the pause.
        pause: Duration,
    },
    /// The response is too large.
    #[error("{request}: the response is larger than {largest} bytes")]
    TooLarge {
        /// The request.
        request: String,
        /// The maximum size in bytes.
        largest: usize,
    },
    /// The response is malformed.
    #[error("{request}: malformed response: {defect}")]
    Malformed {
        /// The request.
        request: String,
        /// The defect.
        defect: String,
    },
    /// A redirect that is not followed.
    #[error("{request}: cannot follow the redirect to {to:?}: {defect}")]
    Redirect {
        /// The request.
        request: String,
        /// The target.
        to: String,
        /// The reason, as the rest of a sentence.
        defect: &'static str,
    },
    /// The certificates of the object cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// No HTTP client can be made.
    #[error(transparent)]
    Connection(#[from] HttpClientError),
    /// A redirect, or a token server, leads to an address that is forbidden for objects.
    #[error("{request}: {message}")]
    ForbiddenRedirect {
        /// The request.
        request: String,
        /// The forbidden host.
        host: String,
        /// A sentence with the host and the remedy.
        message: String,
    },
}

impl HttpError {
    /// Returns the pause that the server asks for.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Paused { pause, .. } => Some(*pause),
            _ => None,
        }
    }

    /// Returns `true` if the server causes the error, so that other requests would fail too.
    pub fn is_server_fault(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Timeout { .. }
                | Self::MemoryTimeout { .. }
                | Self::NoResponse { .. }
                | Self::Paused { .. }
        )
    }

    /// Returns `true` if a retry of the same request may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { is_connection: false, .. })
    }
}
