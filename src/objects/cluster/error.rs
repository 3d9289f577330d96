//! Errors of requests to the API server.

use std::time::Duration;

use kube::core::Status;

use crate::error::chain;

/// The error of a request to the API server.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The API server rejected the request.
    #[error("{}", message(.0))]
    Rejected(Box<Status>),
    /// The API server did not answer in time.
    #[error("the API server did not respond within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The API server cannot be reached, or its response is invalid.
    #[error("the request to the API server failed: {message}")]
    Unreachable {
        /// The message of the underlying error.
        message: String,
    },
    /// The request was not sent, because another process may be the leader.
    #[error("another process may be the leader, so no more requests are sent to the API server")]
    Fenced,
    /// Others changed the object during each attempt to write it.
    #[error("the object was changed by other clients during each of {tries} attempts to write it")]
    Conflicts {
        /// The number of attempts.
        tries: u32,
    },
}

/// Returns the server's message, or at least its status code.
fn message(status: &Status) -> String {
    if status.message.is_empty() {
        format!("the API server responded with status {}", status.code)
    } else {
        status.message.clone()
    }
}

impl ClusterError {
    /// Returns whether the object does not exist.
    ///
    /// If the whole kind does not exist, the server answers without a reason.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Rejected(status) if status.is_not_found() || status.code == 404)
    }

    /// Returns whether another client changed the object meanwhile.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Rejected(status) if status.is_conflict())
    }

    /// Returns whether the object exists already.
    pub fn is_already_exists(&self) -> bool {
        matches!(self, Self::Rejected(status) if status.is_already_exists())
    }

    /// Returns whether the request itself is invalid.
    ///
    /// For example, if it has a label selector that cannot be parsed.
    pub fn is_bad_request(&self) -> bool {
        matches!(self, Self::Rejected(status) if status.code == 400)
    }

    /// Returns whether the request is forbidden.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Rejected(status) if status.is_forbidden() || status.code == 403)
    }

    /// Returns whether the API server refuses the login.
    pub fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Rejected(status) if status.code == 401)
    }

    /// Returns whether the same request may succeed soon.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Rejected(status) => status.code >= 500 || status.code == 429,
            Self::Timeout(_) | Self::Unreachable { .. } => true,
            Self::Fenced | Self::Conflicts { .. } => false,
        }
    }
}

impl From<kube::Error> for ClusterError {
    fn from(error: kube::Error) -> Self {
        // The messages of these variants end with that of their cause, which the chain would repeat.
        let message = match error {
            kube::Error::Api(status) => return Self::Rejected(status),
            kube::Error::Service(cause) => chain(cause.as_ref()),
            kube::Error::HyperError(cause) => chain(&cause),
            kube::Error::Auth(cause) => format!("logging in failed: {cause}"),
            other => other.to_string(),
        };
        Self::Unreachable { message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_api_server_are_classified_and_keep_their_message() {
        for (code, reason, expected) in [
            (404, "NotFound", [true, false, false, false, false]),
            (404, "Failed to parse error data", [true, false, false, false, false]),
            (403, "Failed to parse error data", [false, false, false, true, false]),
            (409, "Conflict", [false, true, false, false, false]),
            (409, "AlreadyExists", [false, false, true, false, false]),
            (403, "Forbidden", [false, false, false, true, false]),
            (429, "TooManyRequests", [false, false, false, false, true]),
            (500, "InternalError", [false, false, false, false, true]),
            (422, "Invalid", [false; 5]),
        ] {
            let status = Status::failure("its message", reason).with_code(code);
            let error = ClusterError::from(kube::Error::Api(status.boxed()));
            let found = [
                error.is_not_found(),
                error.is_conflict(),
                error.is_already_exists(),
                error.is_forbidden(),
                error.is_transient(),
            ];
            assert_eq!(found, expected, "{code} {reason}");
            assert_eq!(error.to_string(), "its message");
        }
        let silent = ClusterError::from(kube::Error::Api(Status::failure("", "").with_code(502).boxed()));
        assert_eq!(silent.to_string(), "the API server responded with status 502");
    }
}
