//! Redacts our credentials from error responses and from errors.

use std::collections::VecDeque;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::HeaderValue;
use url::form_urlencoded;
use zeroize::Zeroizing;

use super::error::RegistryError;
use super::login::Credential;
use super::request::{FORM, Request};
use crate::secrets::{Redactor, Secret};

/// Parts of the names of form fields that hold secrets.
const SECRET_FIELDS: [&str; 4] = ["token", "assertion", "secret", "password"];

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

impl Request {
    /// Redacts the secrets of this request from a text.
    pub(super) fn redact(&self, text: &str) -> String {
        let mut redactor = Redactor::default();
        let headers = self.headers.values().chain(&self.authorization).filter(|value| value.is_sensitive());
        for value in headers {
            add_header(&mut redactor, value.as_bytes());
        }
        for body in self.body.iter().filter(|body| body.kind == FORM) {
            for (name, value) in form_urlencoded::parse(&body.bytes) {
                let name = name.to_ascii_lowercase();
                if SECRET_FIELDS.iter().any(|field| name.contains(field)) && !name.ends_with("_type") {
                    redactor.add_secret(value.as_bytes());
                }
            }
        }
        redactor.redact(text)
    }
}

/// Adds the secrets in the value of an `Authorization` header.
/// The value is `Basic` and a pair, a scheme and a token, or a token alone.
fn add_header(redactor: &mut Redactor, value: &[u8]) {
    let space = value.iter().position(|&byte| byte == b' ');
    let sent = space.map_or(value, |space| &value[space + 1..]);
    if !sent.is_empty() {
        redactor.add_secret(sent);
    }
    let pair = Zeroizing::new(STANDARD.decode(sent).unwrap_or_default());
    if let Some(colon) = pair.iter().position(|&byte| byte == b':').filter(|_| value.starts_with(b"Basic ")) {
        add_password(redactor, &pair[colon + 1..]);
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

fn add_password(redactor: &mut Redactor, password: &[u8]) {
    if !password.is_empty() {
        redactor.add_secret(password);
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
            Self::Unreachable { request, cause: detail, .. }
            | Self::Malformed { request, defect: detail }
            | Self::Redirect { request, to: detail, .. }
            | Self::ForeignLink { request, server: detail }
            | Self::DigestMismatch { request, found: detail }
            | Self::TokenRealm { registry: request, realm: detail, .. } => {
                clean(request);
                clean(detail);
            }
            Self::ForbiddenRedirect { request, host, message } => {
                clean(request);
                clean(host);
                clean(message);
            }
            Self::NoResponse { request, .. }
            | Self::TooLarge { request, .. }
            | Self::PaginationLoop { request } => {
                clean(request);
            }
            // These quote no server.
            Self::Timeout { .. }
            | Self::MemoryTimeout { .. }
            | Self::NoCapacity
            | Self::Paused { .. }
            | Self::TooManyTags { .. }
            | Self::Tls(_)
            | Self::Login(_)
            | Self::Connection(_)
            | Self::Forbidden { .. } => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::{AUTHORIZATION, HeaderValue};
    use url::Url;

    use super::*;
    use crate::registry::headers::{basic, bearer};

    #[test]
    fn a_request_redacts_its_own_secrets() {
        let url = Url::parse("https://r.example/").unwrap();
        let request = |authorization| Request::get(url.clone(), 0).with_authorization(authorization);
        let sent = request(basic(b"robot", b"hunter2 long"));
        let pair = STANDARD.encode("robot:hunter2 long");
        assert_eq!(sent.redact(&format!("robot, {pair}: hunter2 long")), "robot, ••••: ••••");
        assert_eq!(request(bearer(&Secret::new("t0ken"))).redact("Bearer t0ken"), "Bearer ••••");
        assert_eq!(request(None).redact("t0ken"), "t0ken");
        let form = "grant_type=refresh_token&refresh_token=a%2Fb%2Bc&client_assertion=eyJ";
        let request = Request::post(url.clone(), form.as_bytes(), 0);
        assert_eq!(request.redact("refresh_token a/b+c a%2Fb%2Bc eyJ"), "refresh_token •••• •••• ••••");
        let mut value = HeaderValue::from_static("s3ssion");
        value.set_sensitive(true);
        let request = Request::get(url, 0)
            .with_secret(AUTHORIZATION, Some(value))
            .with_header(reqwest::header::ACCEPT, "text");
        assert_eq!(request.redact("text s3ssion"), "text ••••");
    }

    #[test]
    fn credentials_are_redacted_from_errors() {
        let mut redactor = Redactor::default();
        let login = Credential::Basic { user: Secret::new("robot"), password: Secret::new("hunter2") };
        add_credential(&mut redactor, &login);
        let malformed = RegistryError::Malformed {
            request: "GET https://r/hunter2".to_owned(),
            defect: "hunter2".to_owned(),
        };
        let error = RegistryError::NeitherScheme {
            secured: Box::new(RegistryError::ForeignLink {
                request: "GET x".to_owned(),
                server: "hunter2".to_owned(),
            }),
            plain: Box::new(RegistryError::Handshake(Box::new(malformed))),
        };
        let message = error.redacted(&redactor).to_string();
        assert!(!message.contains("hunter2") && message.matches("••••").count() == 3, "{message}");
    }
}
