//! Why a registry did not give what it was asked for.

use std::time::Duration;

use tagboat_api::Reason;

use super::login::LoginError;
use super::refusal::Refusal;
use super::tls::TlsError;
use crate::failing::Failing;
use crate::http::ConnectionError;

/// A failure on the way to a registry or there. It can be copied, because one request may be for several objects.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RegistryError {
    /// The server answers with an error.
    #[error("{request}: {}{}", refusal.words, rest(*retry_after))]
    Refused {
        /// The request, as in `GET https://…`.
        request: String,
        /// What the server says.
        refusal: Refusal,
        /// How long the server wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// A greeting, or the question for a token, is answered with an error: nothing is known of what was to be asked then.
    #[error(transparent)]
    Barred(Box<RegistryError>),
    /// There is no answer, or only a part of one.
    #[error("{request}: {trouble}")]
    Unreachable {
        /// The request.
        request: String,
        /// What happened.
        trouble: String,
        /// Whether there was no connection at all.
        is_connection: bool,
    },
    /// Neither way of speaking to a registry works.
    #[error("{secured}; {plain}")]
    NeitherScheme {
        /// Why not with TLS.
        secured: Box<RegistryError>,
        /// Why not without.
        plain: Box<RegistryError>,
    },
    /// The time of the whole call is over.
    #[error(
        "{what}: there was no complete answer within {allowed:?}; a longer timeout (spec.timeout, or \
         --timeout of scan) gives it more time"
    )]
    TooSlow {
        /// What was asked for.
        what: String,
        /// The time that was given.
        allowed: Duration,
    },
    /// An answer that memory is held for did not arrive soon enough.
    #[error(
        "{what}: a large answer must be complete within {allowed:?} after memory was reserved for it, and was not; the \
         next run tries again"
    )]
    TooSlowForMemory {
        /// The request or the list.
        what: String,
        /// The time in which it must be complete.
        allowed: Duration,
    },
    /// No memory or slot for a large answer was free for too long.
    #[error(
        "no memory was free for a large answer of the registry, because other runs hold it; the next run tries again"
    )]
    NoCapacity,
    /// The server said nothing for too long.
    #[error("{request}: the server did not begin to answer within {allowed:?}")]
    Silent {
        /// The request.
        request: String,
        /// The time that it was given.
        allowed: Duration,
    },
    /// The server has asked to be left alone for longer than there is time.
    #[error("{server} wants no requests for another {pause:?}, as it has said before")]
    Resting {
        /// The server's host and port.
        server: String,
        /// For how long.
        pause: Duration,
    },
    /// There is more than is read.
    #[error("{request}: the answer is larger than {largest} bytes")]
    TooLarge {
        /// The request.
        request: String,
        /// How much is read.
        largest: usize,
    },
    /// The answer is not what it should be.
    #[error("{request}: the answer is not what a registry sends: {flaw}")]
    Malformed {
        /// The request.
        request: String,
        /// What is wrong with it.
        flaw: String,
    },
    /// A redirect that is not followed.
    #[error("{request}: the redirect to {to:?} is not followed, for {flaw}")]
    Redirect {
        /// The request.
        request: String,
        /// Where it leads.
        to: String,
        /// Why not.
        flaw: &'static str,
    },
    /// A server for tokens that gets no credentials.
    #[error("{registry} wants a token of {realm:?}, which is not asked for one, because {flaw}")]
    Realm {
        /// The registry.
        registry: String,
        /// The address of that server.
        realm: String,
        /// Why not.
        flaw: &'static str,
    },
    /// The pages of a listing lead in a circle.
    #[error("{request}: the listing of tags leads in a circle: the next page has been read before")]
    Circle {
        /// The request for the last page.
        request: String,
    },
    /// The next page of a listing is on another server.
    #[error("{request}: the next page of tags is not at this registry, but at {server:?}")]
    Elsewhere {
        /// The request for the last page.
        request: String,
        /// Scheme, host and port of that server.
        server: String,
    },
    /// There are more tags than are kept.
    #[error(
        "{repository} has more than {most} tags or more than {bytes} bytes of them, which are too many to choose from; \
         remove some"
    )]
    TooManyTags {
        /// The repository.
        repository: String,
        /// How many are taken.
        most: usize,
        /// How many bytes of them are taken.
        bytes: usize,
    },
    /// A digest that is not that of what was sent.
    #[error("{request}: what was sent is damaged: its digest is {found}")]
    Damaged {
        /// The request.
        request: String,
        /// The digest of what was sent.
        found: String,
    },
    /// The certificates of the object cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A cloud gives no login.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// No connection can be made at all.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The registry is where objects may not lead.
    #[error("{words}")]
    Forbidden {
        /// Which host that is, and what to do.
        words: String,
    },
    /// A registry leads to where objects may not.
    #[error("{request}: {words}")]
    LeadsAstray {
        /// The request.
        request: String,
        /// The host that was to be asked.
        host: String,
        /// Which host that is, and what to do.
        words: String,
    },
}

/// For how long the server wants to be left alone, in whole seconds.
fn rest(pause: Option<Duration>) -> String {
    let seconds = pause.map(|pause| Duration::from_secs(pause.as_secs())).filter(|pause| !pause.is_zero());
    seconds.map(|pause| format!("; it wants no requests for {pause:?}")).unwrap_or_default()
}

impl RegistryError {
    /// Whether the registry says that there is nothing of that name.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { refusal, .. } if refusal.is_not_found())
    }

    /// Whether the registry, or whoever hands out its tokens, does not let us in.
    pub fn is_denied(&self) -> bool {
        match self {
            Self::Refused { refusal, .. } => matches!(refusal.status, 401 | 403),
            Self::Barred(cause) => cause.is_denied(),
            _ => false,
        }
    }

    /// How long the server wants to be left alone, where it has said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            Self::Barred(cause) => cause.retry_after(),
            Self::NeitherScheme { secured, plain } => secured.retry_after().max(plain.retry_after()),
            Self::Resting { pause, .. } => Some(*pause),
            Self::Login(error) => error.retry_after(),
            _ => None,
        }
    }

    /// Whether the server is to blame, so that it would be the same whatever it was asked for.
    pub fn is_of_the_server(&self) -> bool {
        match self {
            Self::Refused { refusal, .. } => matches!(refusal.status, 408 | 429 | 500..),
            Self::Barred(_)
            | Self::Unreachable { .. }
            | Self::NeitherScheme { .. }
            | Self::TooSlow { .. }
            | Self::TooSlowForMemory { .. }
            | Self::Silent { .. }
            | Self::Resting { .. } => true,
            _ => false,
        }
    }

    /// The same, where what was refused came before the question itself.
    pub(super) fn on_the_way(self) -> Self {
        if matches!(self, Self::Refused { .. }) { Self::Barred(Box::new(self)) } else { self }
    }

    /// The same with what to do, where a server answers without TLS.
    pub(super) fn in_the_open(mut self) -> Self {
        if let Self::Unreachable { trouble, .. } = &mut self
            && trouble.contains("received corrupt message")
        {
            trouble.push_str(
                "; if the registry speaks without TLS, set spec.insecure of the ImageRepository (--insecure of scan)",
            );
        }
        self
    }

    /// Whether the same request may fare better in a moment.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { is_connection: false, .. })
    }
}

/// Whatever happens on the way to a registry may be over the next time, unless it is the registry itself that nobody
/// may go to.
impl Failing for RegistryError {
    fn reason(&self) -> Reason {
        match self {
            Self::Tls(_) | Self::Connection(ConnectionError::Proxy { .. }) => Reason::AuthenticationFailed,
            Self::Forbidden { .. } => Reason::AccessDenied,
            _ => Reason::ReadOperationFailed,
        }
    }

    fn is_retryable(&self) -> bool {
        !matches!(self, Self::Forbidden { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_knows_what_it_means() {
        let error = RegistryError::Resting { server: "r.io".to_owned(), pause: Duration::from_secs(30) };
        assert_eq!(error.to_string(), "r.io wants no requests for another 30s, as it has said before");
        assert_eq!((error.reason(), error.is_retryable()), (Reason::ReadOperationFailed, true));
        assert_eq!(error.retry_after(), Some(Duration::from_secs(30)));
        assert!(error.is_of_the_server());
        let refused = |status: u16| {
            let status = reqwest::StatusCode::from_u16(status).unwrap();
            let refusal = Refusal::read(status, false, b"");
            RegistryError::Refused { request: "GET /".to_owned(), refusal, retry_after: None }
        };
        for (status, is_of_the_server) in [(429, true), (408, true), (502, true), (404, false), (400, false)]
        {
            assert_eq!(refused(status).is_of_the_server(), is_of_the_server, "{status}");
        }
        let resting = |retry_after| match refused(429) {
            RegistryError::Refused { request, refusal, .. } => {
                RegistryError::Refused { request, refusal, retry_after }.to_string()
            }
            other => panic!("{other}"),
        };
        let words = "GET /: unexpected status code 429 Too Many Requests";
        assert_eq!(resting(None), words);
        assert_eq!(resting(Some(Duration::from_millis(20))), words);
        assert_eq!(
            resting(Some(Duration::from_secs(3600))),
            format!("{words}; it wants no requests for 3600s")
        );
        let error = RegistryError::from(ConnectionError::Proxy { trouble: "x".to_owned() });
        assert_eq!(error.reason(), Reason::AuthenticationFailed);
    }
}
