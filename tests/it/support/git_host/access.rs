//! Authentication of a git host's clients.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::request::Request;

/// The credentials that a host demands of every request.
#[derive(Debug, Clone, Default)]
pub(crate) enum Access {
    /// Nothing.
    #[default]
    Anonymous,
    /// A user name and a password.
    Basic { user: String, password: String },
    /// A bearer token.
    Bearer { token: String },
}

impl Access {
    pub(crate) fn basic(user: &str, password: &str) -> Self {
        Self::Basic { user: user.to_owned(), password: password.to_owned() }
    }

    pub(crate) fn bearer(token: &str) -> Self {
        Self::Bearer { token: token.to_owned() }
    }

    /// Returns the user of the request, or the challenge to answer with.
    pub(super) fn admit(&self, request: &Request) -> Result<Option<&str>, &'static str> {
        let (wanted, user, challenge) = match self {
            Self::Anonymous => return Ok(None),
            Self::Basic { user, password } => {
                let pair = STANDARD.encode(format!("{user}:{password}"));
                (format!("Basic {pair}"), user.as_str(), r#"Basic realm="git", charset="UTF-8""#)
            }
            Self::Bearer { token } => (format!("Bearer {token}"), "bearer", r#"Bearer realm="git""#),
        };
        if request.authorization() == Some(wanted.as_str()) { Ok(Some(user)) } else { Err(challenge) }
    }
}
