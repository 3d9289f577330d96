//! Errors of registries.

use std::time::Duration;

use super::error_response::ErrorResponse;
use crate::cloud::LoginError;
use crate::net::http::HttpError;

/// The advice about a timeout of the object.
pub(super) const RAISE_TIMEOUT: &str = "; raise spec.timeout (--timeout of scan)";

/// The remedy in the error of a registry without TLS, for those who scan one.
pub const INSECURE_ADVICE: &str = "; if the registry does not use TLS, only spec.insecure of an ImageRepository (--insecure of scan) allows it";

/// An error of a registry or of the connection to it.
///
/// It can be cloned, because one request may serve several objects.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RegistryError {
    /// The server responds with an error.
    #[error("{request}: {}{}", response.message, pause_text(*retry_after))]
    Refused {
        /// The request, as in `GET https://…`.
        request: String,
        /// The error response.
        response: ErrorResponse,
        /// The `Retry-After` delay of the server.
        retry_after: Option<Duration>,
    },
    /// An error response to a probe or token request, before the request itself is sent.
    #[error(transparent)]
    Handshake(Box<RegistryError>),
    /// Neither HTTPS nor HTTP works.
    #[error("{secured}; {plain}")]
    NeitherScheme {
        /// The error with TLS.
        secured: Box<RegistryError>,
        /// The error without TLS.
        plain: Box<RegistryError>,
    },
    /// A token server that must not get credentials.
    #[error("{registry} requires a token from {realm:?}, which cannot be used: {defect}")]
    TokenRealm {
        /// The registry.
        registry: String,
        /// The address of the token server.
        realm: String,
        /// The reason, as the rest of a sentence.
        defect: &'static str,
    },
    /// The pages of a listing form a circle.
    #[error("{request}: the pages of the tag list form a loop")]
    PaginationLoop {
        /// The request for the last page.
        request: String,
    },
    /// The next page of a listing is on another server.
    #[error("{request}: the next page of tags is on another server, {server:?}")]
    ForeignLink {
        /// The request for the last page.
        request: String,
        /// Scheme, host and port of that server.
        server: String,
    },
    /// The repository has more tags than the maximum.
    #[error(
        "{repository} has more than {max_tags} tags or more than {bytes} bytes of tags, the limit; remove some"
    )]
    TooManyTags {
        /// The repository.
        repository: String,
        /// The maximum number of tags.
        max_tags: usize,
        /// The maximum size of the tags in bytes.
        bytes: usize,
    },
    /// A response with another digest than the requested one.
    #[error("{request}: the content is damaged: its digest is {found}")]
    DigestMismatch {
        /// The request.
        request: String,
        /// The digest of the response.
        found: String,
    },
    /// The login at a cloud fails.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// The registry's address is forbidden for objects.
    #[error("{message}")]
    Forbidden {
        /// A sentence with the host and the remedy.
        message: String,
    },
    /// The request fails.
    #[error(transparent)]
    Http(#[from] HttpError),
}

/// Formats the pause that a server asks for, in whole seconds.
fn pause_text(pause: Option<Duration>) -> String {
    let seconds = pause.map(|pause| Duration::from_secs(pause.as_secs())).filter(|pause| !pause.is_zero());
    seconds.map(|pause| format!("; retry after {pause:?}")).unwrap_or_default()
}

impl RegistryError {
    /// Returns `true` if the registry says that the name does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { response, .. } if response.is_not_found())
    }

    /// Returns `true` if the registry or its token server refuses the login.
    pub fn is_denied(&self) -> bool {
        match self {
            Self::Refused { response, .. } => matches!(response.status, 401 | 403),
            Self::Handshake(cause) => cause.is_denied(),
            _ => false,
        }
    }

    /// Returns the pause that the server asks for.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            Self::Handshake(cause) => cause.retry_after(),
            Self::NeitherScheme { secured, plain } => secured.retry_after().max(plain.retry_after()),
            Self::Http(error) => error.retry_after(),
            Self::Login(error) => error.retry_after(),
            _ => None,
        }
    }

    /// Returns `true` if the server causes the error, so that other requests would fail too.
    pub fn is_server_fault(&self) -> bool {
        match self {
            Self::Refused { response, .. } => matches!(response.status, 408 | 429 | 500..),
            Self::Handshake(_) | Self::NeitherScheme { .. } => true,
            Self::Http(error) => error.is_server_fault(),
            _ => false,
        }
    }

    /// Marks an error response to a request that precedes the actual one.
    pub(super) fn during_handshake(self) -> Self {
        if matches!(self, Self::Refused { .. }) { Self::Handshake(Box::new(self)) } else { self }
    }

    /// Adds the remedy to the error of a server without TLS.
    pub(super) fn with_insecure_advice(mut self) -> Self {
        if let Self::Http(HttpError::Unreachable { cause, .. }) = &mut self
            && cause.contains("received corrupt message")
        {
            cause.push_str(INSECURE_ADVICE);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_classified() {
        let paused = HttpError::Paused { server: "r.io".to_owned(), pause: Duration::from_secs(30) };
        let error = RegistryError::from(paused);
        assert_eq!(
            error.to_string(),
            "requests to r.io are paused for another 30s, as its last response asked (Retry-After)"
        );
        assert_eq!(error.retry_after(), Some(Duration::from_secs(30)));
        assert!(error.is_server_fault());
        let refused = |status: u16| {
            let status = reqwest::StatusCode::from_u16(status).unwrap();
            let response = ErrorResponse::read(status, false, b"");
            RegistryError::Refused { request: "GET /".to_owned(), response, retry_after: None }
        };
        for (status, is_server_fault) in [(429, true), (408, true), (502, true), (404, false), (400, false)] {
            assert_eq!(refused(status).is_server_fault(), is_server_fault, "{status}");
        }
        let paused = |retry_after| match refused(429) {
            RegistryError::Refused { request, response, .. } => {
                RegistryError::Refused { request, response, retry_after }.to_string()
            }
            other => panic!("{other}"),
        };
        let message = "GET /: unexpected status code 429 Too Many Requests";
        assert_eq!(paused(None), message);
        assert_eq!(paused(Some(Duration::from_millis(20))), message);
        assert_eq!(paused(Some(Duration::from_secs(3600))), format!("{message}; retry after 3600s"));
    }
}
