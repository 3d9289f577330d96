//! The errors of calls to a forge.

use std::fmt;
use std::time::Duration;

/// The error of a call to a forge.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForgeError {
    /// The forge cannot be reached, or gives no answer in time.
    #[error("{host} {detail}")]
    Unavailable {
        /// The host.
        host: String,
        /// The problem without secrets, as the rest of a sentence about the host.
        detail: String,
    },
    /// The forge answers that it has failed (5xx).
    #[error("{host} answers {status}{said}")]
    Failed {
        /// The host.
        host: String,
        /// The status of the response.
        status: u16,
        /// The forge's message after a colon, without secrets; empty if there is none.
        said: String,
    },
    /// The login is refused (401).
    #[error("{host} refuses the credentials of {login}: {detail}")]
    Unauthenticated {
        /// The host.
        host: String,
        /// The object that has the credentials.
        login: String,
        /// The forge's message.
        detail: String,
    },
    /// A permission is missing (403), or the repository is not visible to the login (404).
    #[error("{host} refuses to {operation}: {detail}")]
    Forbidden {
        /// The host.
        host: String,
        /// The operation.
        operation: &'static str,
        /// The forge's message and the missing permission, if it names one.
        detail: String,
    },
    /// A rate limit applies.
    #[error("{host} limits requests: the next one is sent in {} s", .retry_after.as_secs())]
    RateLimited {
        /// The host.
        host: String,
        /// The time until the next request.
        retry_after: Duration,
    },
    /// The forge refuses the request for another reason (409, 422).
    #[error("{host} refuses to {operation}: {detail}")]
    Refused {
        /// The host.
        host: String,
        /// The operation.
        operation: &'static str,
        /// The status.
        status: u16,
        /// The forge's message.
        detail: String,
    },
    /// The answer is larger than is read.
    #[error("{host} answers to {operation} with more than {limit}")]
    TooLarge {
        /// The host.
        host: String,
        /// The operation.
        operation: &'static str,
        /// The limit.
        limit: SizeLimit,
    },
    /// Pull requests take more memory than is kept.
    #[error(
        "the pull requests of {of} take more than {limit}: shorten their texts, or rename branches that have very many"
    )]
    TooMuchKept {
        /// The ones that count together.
        of: &'static str,
        /// The limit.
        limit: SizeLimit,
    },
    /// The answer is not what the API promises.
    #[error("{host} answers to {operation} with {detail}")]
    Malformed {
        /// The host.
        host: String,
        /// The operation.
        operation: &'static str,
        /// The defect.
        detail: String,
    },
}

/// A limit of the size of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeLimit {
    /// A number of bytes.
    Bytes(usize),
    /// A number of values in JSON.
    Values(usize),
}

impl fmt::Display for SizeLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(formatter, "{bytes} bytes"),
            Self::Values(values) => write!(formatter, "{values} values"),
        }
    }
}

impl ForgeError {
    /// Makes the error of a host that cannot be reached.
    pub(super) fn unreachable(host: &str, cause: &str) -> Self {
        Self::Unavailable { host: host.to_owned(), detail: format!("cannot be reached: {cause}") }
    }

    /// Makes the error of a host that answers with a status of 500 or above.
    pub(super) fn failing(host: &str, status: u16, said: &str) -> Self {
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        Self::Failed { host: host.to_owned(), status, said }
    }

    /// Returns true if the forge refuses the same request again.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Forbidden { .. } => true,
            Self::Refused { status, .. } => matches!(status, 400..=499) && *status != 429,
            _ => false,
        }
    }

    /// Returns true if labels cannot be added now, and perhaps later.
    ///
    /// A permission may be given at any time.
    pub(super) fn delays_labels(&self) -> bool {
        !self.is_final() || matches!(self, Self::Forbidden { .. })
    }

    /// Returns true if requests for other pull requests fail as well.
    ///
    /// A permission can be missing for one branch, or one kind of change, alone. When little is left of a limit, pull requests
    /// can still be opened or closed.
    pub fn is_of_every_request(&self) -> bool {
        matches!(self, Self::Unauthenticated { .. } | Self::Unavailable { .. } | Self::Failed { .. })
    }

    /// Makes the error of a change to a pull request that others have changed.
    pub(super) fn changed_meanwhile(host: &str, operation: &'static str) -> Self {
        let detail = "it has changed meanwhile, and the next round decides anew".to_owned();
        Self::Refused { host: host.to_owned(), operation, status: 409, detail }
    }
}
