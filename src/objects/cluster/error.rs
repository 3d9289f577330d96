//! Why a cluster did not do what it was asked.

use std::time::Duration;

use kube::core::Status;

use crate::sentence::chain;

/// Why the cluster did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The API server says no.
    #[error("{}", words(.0))]
    Refused(Box<Status>),
    /// The API server says nothing.
    #[error("the API server did not answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// There is no way to the API server, or its answer makes no sense.
    #[error("cannot speak with the API server: {words}")]
    Unreachable {
        /// What went wrong, in the words of whoever noticed.
        words: String,
    },
    /// Another may be the one who writes.
    #[error("another controller may have become the leader, so the API server is asked for nothing more")]
    Deposed,
    /// Others changed the object each time that it was to be written.
    #[error("others changed the object during each of {tries} tries to write it")]
    Overtaken {
        /// How often it was tried.
        tries: u32,
    },
}

/// What the server says, or at least its number.
fn words(status: &Status) -> String {
    if status.message.is_empty() {
        format!("the API server answered with status {}", status.code)
    } else {
        status.message.clone()
    }
}

impl ClusterError {
    /// Returns whether what was asked for does not exist, be it the whole kind: then the server answers without a reason.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused(status) if status.is_not_found() || status.code == 404)
    }

    /// Returns whether somebody else changed the object meanwhile.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused(status) if status.is_conflict())
    }

    /// Returns whether it exists already.
    pub fn is_already_there(&self) -> bool {
        matches!(self, Self::Refused(status) if status.is_already_exists())
    }

    /// Returns true if the request itself is invalid, such as one with a label selector that cannot be parsed.
    pub fn is_bad_request(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == 400)
    }

    /// Returns whether we may not do this.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused(status) if status.is_forbidden() || status.code == 403)
    }

    /// Returns whether the same request may succeed in a moment.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Refused(status) => status.code >= 500 || status.code == 429,
            Self::Silent(_) | Self::Unreachable { .. } => true,
            Self::Deposed | Self::Overtaken { .. } => false,
        }
    }
}

impl From<kube::Error> for ClusterError {
    fn from(error: kube::Error) -> Self {
        // Their own texts end with that of their cause, which would stand in a sentence twice.
        let words = match error {
            kube::Error::Api(status) => return Self::Refused(status),
            kube::Error::Service(cause) => chain(cause.as_ref()),
            kube::Error::HyperError(cause) => chain(&cause),
            kube::Error::Auth(cause) => format!("logging in failed: {cause}"),
            other => other.to_string(),
        };
        Self::Unreachable { words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_says_is_kept_and_told_apart() {
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
            let status = Status::failure("its words", reason).with_code(code);
            let error = ClusterError::from(kube::Error::Api(status.boxed()));
            let found = [
                error.is_not_found(),
                error.is_conflict(),
                error.is_already_there(),
                error.is_forbidden(),
                error.is_passing(),
            ];
            assert_eq!(found, expected, "{code} {reason}");
            assert_eq!(error.to_string(), "its words");
        }
        let silent = ClusterError::from(kube::Error::Api(Status::failure("", "").with_code(502).boxed()));
        assert_eq!(silent.to_string(), "the API server answered with status 502");
    }
}
