//! Redacts our credentials from error responses and from errors.

use std::collections::VecDeque;

use reqwest::header::HeaderValue;
use zeroize::Zeroizing;

use super::error::RegistryError;
use crate::cloud::Credential;
use crate::net::http::{add_header, add_password};
use crate::secrets::{Redactor, Secret};

/// The number of headers that are kept.
/// These are the current header and the last one before it.
const MAX_HEADERS: usize = 2;

/// The credentials that were sent lately. They are wiped from memory on drop.
#[derive(Debug, Default)]
pub(super) struct SentSecrets {
    credential: Credential,
    headers: VecDeque<Secret>,
}

impl SentSecrets {
    pub(super) fn note_credential(&mut self, credential: &Credential) {
        self.credential = credential.clone();
    }

    pub(super) fn note_header(&mut self, header: Option<&HeaderValue>) {
        let Some(header) = header.map(HeaderValue::as_bytes) else { return };
        if self.headers.iter().all(|known| known.expose() != header) {
            self.headers.truncate(MAX_HEADERS - 1);
            self.headers.push_front(Secret::new(header));
        }
    }

    /// Returns a redactor for all of them.
    pub(super) fn redactor(&self) -> Redactor {
        let mut redactor = Redactor::default();
        add_credential(&mut redactor, &self.credential);
        for header in &self.headers {
            add_header(&mut redactor, header.expose());
        }
        redactor
    }
}

/// Adds the secrets of a credential; a user name is not secret.
fn add_credential(redactor: &mut Redactor, credential: &Credential) {
    match credential {
        Credential::Anonymous => {}
        Credential::Basic { user, password } => {
            let pair = Zeroizing::new([user.expose(), b":", password.expose()].concat());
            redactor.add_secret(&pair);
            add_password(redactor, password.expose());
        }
        Credential::IdentityToken(token) | Credential::RegistryToken(token) => {
            redactor.add_secret(token.expose());
        }
    }
}

impl RegistryError {
    /// Redacts secrets from every field that may quote a server.
    pub(super) fn redacted(mut self, redactor: &Redactor) -> Self {
        let clean = |text: &mut String| *text = redactor.redact(text);
        match &mut self {
            Self::Refused { request, response, .. } => {
                clean(request);
                clean(&mut response.message);
                response.codes.iter_mut().for_each(clean);
            }
            Self::Handshake(cause) => **cause = cause.as_ref().clone().redacted(redactor),
            Self::NeitherScheme { secured, plain } => {
                **secured = secured.as_ref().clone().redacted(redactor);
                **plain = plain.as_ref().clone().redacted(redactor);
            }
            Self::Http(error) => *error = error.clone().redacted(redactor),
            Self::ForeignLink { request, server: detail }
            | Self::DigestMismatch { request, found: detail }
            | Self::TokenRealm { registry: request, realm: detail, .. } => {
                clean(request);
                clean(detail);
            }
            Self::PaginationLoop { request } => clean(request),
            // These quote no server.
            Self::TooManyTags { .. } | Self::Login(_) | Self::Forbidden { .. } => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::http::HttpError;

    #[test]
    fn credentials_are_redacted_from_errors() {
        let mut redactor = Redactor::default();
        let login = Credential::Basic { user: Secret::new("robot"), password: Secret::new("hunter2") };
        add_credential(&mut redactor, &login);
        let malformed = HttpError::Malformed {
            request: "GET https://r/hunter2".to_owned(),
            defect: "hunter2".to_owned(),
        };
        let error = RegistryError::NeitherScheme {
            secured: Box::new(RegistryError::ForeignLink {
                request: "GET x".to_owned(),
                server: "hunter2".to_owned(),
            }),
            plain: Box::new(RegistryError::Handshake(Box::new(malformed.into()))),
        };
        let message = error.redacted(&redactor).to_string();
        assert!(!message.contains("hunter2") && message.matches("••••").count() == 3, "{message}");
    }
}
