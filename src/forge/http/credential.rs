//! A login at the API of a forge, and its header.

use reqwest::header::HeaderValue;

use crate::forge::kind::ForgeKind;
use crate::net::http::{add_header, basic, bearer, with_scheme};
use crate::secrets::{Fingerprint, Redactor, Secret};

/// A login at the API of a forge.
#[derive(Clone, Debug)]
pub enum ForgeCredential {
    /// A token of the forge, such as a personal access token.
    Token(Secret),
    /// A bearer token of OAuth, or of an App.
    Bearer(Secret),
    /// User and password.
    Basic {
        /// The user.
        user: Secret,
        /// The password.
        password: Secret,
    },
}

impl ForgeCredential {
    /// Returns the value of `Authorization`, unless a header cannot carry the secret.
    pub(super) fn header(&self, kind: ForgeKind) -> Option<HeaderValue> {
        match (self, kind) {
            (Self::Token(token), ForgeKind::Gitea | ForgeKind::Forgejo) => {
                with_scheme("token", token.expose())
            }
            // Azure DevOps takes its tokens as passwords.
            (Self::Token(token), ForgeKind::AzureDevops) => basic(b"", token.expose()),
            (Self::Token(token) | Self::Bearer(token), _) => bearer(token),
            (Self::Basic { user, password }, _) => basic(user.expose(), password.expose()),
        }
    }

    /// Returns a redactor of all that is sent.
    pub fn redactor(&self, kind: ForgeKind) -> Redactor {
        let mut redactor = Redactor::default();
        if let Some(header) = self.header(kind) {
            add_header(&mut redactor, header.as_bytes());
        }
        let secrets = match self {
            Self::Token(token) | Self::Bearer(token) => vec![token.clone()],
            Self::Basic { user, password } => {
                let both = [user.expose(), b":", password.expose()].concat();
                vec![Secret::new(both), password.clone()]
            }
        };
        for secret in secrets.iter().filter(|secret| !secret.expose().is_empty()) {
            redactor.add_secret(secret.expose());
        }
        redactor
    }

    /// Returns a fingerprint that is equal for equal logins.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        match self {
            Self::Token(token) => Fingerprint::of([&b"token"[..], token.expose()]),
            Self::Bearer(token) => Fingerprint::of([&b"bearer"[..], token.expose()]),
            Self::Basic { user, password } => {
                Fingerprint::of([&b"basic"[..], user.expose(), password.expose()])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_forge_gets_the_header_that_it_reads() {
        let token = || ForgeCredential::Token(Secret::new("t0ken"));
        let basic = || ForgeCredential::Basic { user: Secret::new("u@x"), password: Secret::new("p") };
        for (credential, kind, expected) in [
            (token(), ForgeKind::Github, "Bearer t0ken"),
            (token(), ForgeKind::Gitlab, "Bearer t0ken"),
            (token(), ForgeKind::Gitea, "token t0ken"),
            (token(), ForgeKind::Forgejo, "token t0ken"),
            (token(), ForgeKind::BitbucketDataCenter, "Bearer t0ken"),
            (token(), ForgeKind::AzureDevops, "Basic OnQwa2Vu"),
            (ForgeCredential::Bearer(Secret::new("b")), ForgeKind::AzureDevops, "Bearer b"),
            (basic(), ForgeKind::Bitbucket, "Basic dUB4OnA="),
        ] {
            let header = credential.header(kind).unwrap();
            assert!(header.is_sensitive());
            assert_eq!(header.as_bytes(), expected.as_bytes());
        }
        assert_eq!(ForgeCredential::Token(Secret::new("a\nb")).header(ForgeKind::Github), None);
    }

    #[test]
    fn what_is_sent_is_redacted_in_every_form() {
        let basic = ForgeCredential::Basic { user: Secret::new("robot"), password: Secret::new("hunter2") };
        let sent =
            String::from_utf8_lossy(basic.header(ForgeKind::Bitbucket).unwrap().as_bytes()).into_owned();
        let redacted = basic.redactor(ForgeKind::Bitbucket).redact(&format!("robot hunter2 {sent}"));
        assert_eq!(redacted, "robot •••• Basic ••••");
        // Azure DevOps gets a token as a password; only the token itself was redacted.
        for kind in [ForgeKind::AzureDevops, ForgeKind::Gitea, ForgeKind::Github] {
            let token = ForgeCredential::Token(Secret::new("t0ken"));
            let sent = String::from_utf8_lossy(token.header(kind).unwrap().as_bytes()).into_owned();
            let (scheme, _) = sent.split_once(' ').unwrap();
            let redacted = token.redactor(kind).redact(&format!("{sent} t0ken"));
            assert_eq!(redacted, format!("{scheme} •••• ••••"), "{kind}");
        }
        assert!(!format!("{basic:?}").contains("hunter2"));
    }
}
