//! Redacts our credentials from error responses and from errors.

use std::collections::VecDeque;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::HeaderValue;
use url::form_urlencoded;
use zeroize::Zeroizing;

use super::call::{Call, FORM};
use super::error::RegistryError;
use super::login::Credential;
use crate::secrets::{Redactor, Secret};

/// Parts of the names of form fields that hold secrets.
const SECRET_FIELDS: [&str; 4] = ["token", "assertion", "secret", "password"];

/// The number of headers that are kept: the current one, and the last one before it.
const REMEMBERED: usize = 2;

/// The credentials that were sent lately. They are wiped from memory on drop.
#[derive(Debug, Default)]
pub(super) struct Shown {
    credential: Credential,
    headers: VecDeque<Secret>,
}

impl Shown {
    pub(super) fn note_credential(&mut self, credential: &Credential) {
        self.credential = credential.clone();
    }

    pub(super) fn note_header(&mut self, header: Option<&HeaderValue>) {
        let Some(header) = header.map(HeaderValue::as_bytes) else { return };
        if self.headers.iter().all(|known| known.expose() != header) {
            self.headers.truncate(REMEMBERED - 1);
            self.headers.push_front(Secret::new(header));
        }
    }

    /// Returns a redactor for all of them.
    pub(super) fn scrubber(&self) -> Redactor {
        let mut scrubber = Redactor::default();
        learn_credential(&mut scrubber, &self.credential);
        for header in &self.headers {
            learn_header(&mut scrubber, header.expose());
        }
        scrubber
    }
}

impl Call {
    /// Redacts the secrets of this request from a text.
    pub(super) fn scrub(&self, text: &str) -> String {
        let mut scrubber = Redactor::default();
        let headers = self.headers.values().chain(&self.authorization).filter(|value| value.is_sensitive());
        for value in headers {
            learn_header(&mut scrubber, value.as_bytes());
        }
        for body in self.body.iter().filter(|body| body.kind == FORM) {
            for (name, value) in form_urlencoded::parse(&body.bytes) {
                let name = name.to_ascii_lowercase();
                if SECRET_FIELDS.iter().any(|field| name.contains(field)) && !name.ends_with("_type") {
                    scrubber.add_secret(value.as_bytes());
                }
            }
        }
        scrubber.redact(text)
    }
}

/// Adds the value of `Authorization`: `Basic` and a pair, a scheme and a token, or a token alone.
fn learn_header(scrubber: &mut Redactor, value: &[u8]) {
    let space = value.iter().position(|&byte| byte == b' ');
    let shown = space.map_or(value, |space| &value[space + 1..]);
    if !shown.is_empty() {
        scrubber.add_secret(shown);
    }
    let pair = Zeroizing::new(STANDARD.decode(shown).unwrap_or_default());
    if let Some(colon) = pair.iter().position(|&byte| byte == b':').filter(|_| value.starts_with(b"Basic ")) {
        learn_password(scrubber, &pair[colon + 1..]);
    }
}

/// Adds the secrets of a credential; a user name is not secret.
fn learn_credential(scrubber: &mut Redactor, credential: &Credential) {
    match credential {
        Credential::Anonymous => {}
        Credential::Basic { user, password } => {
            let pair = Zeroizing::new([user.expose(), b":", password.expose()].concat());
            scrubber.add_secret(&pair);
            learn_password(scrubber, password.expose());
        }
        Credential::IdentityToken(token) | Credential::RegistryToken(token) => {
            scrubber.add_secret(token.expose())
        }
    }
}

fn learn_password(scrubber: &mut Redactor, password: &[u8]) {
    if !password.is_empty() {
        scrubber.add_secret(password);
    }
}

impl RegistryError {
    /// Redacts secrets from every field that may quote a server.
    pub(super) fn scrubbed(mut self, scrubber: &Redactor) -> Self {
        let clean = |text: &mut String| *text = scrubber.redact(text);
        match &mut self {
            Self::Refused { request, refusal, .. } => {
                clean(request);
                clean(&mut refusal.words);
                refusal.codes.iter_mut().for_each(clean);
            }
            Self::Barred(cause) => **cause = cause.as_ref().clone().scrubbed(scrubber),
            Self::NeitherScheme { secured, plain } => {
                **secured = secured.as_ref().clone().scrubbed(scrubber);
                **plain = plain.as_ref().clone().scrubbed(scrubber);
            }
            Self::Unreachable { request, trouble: said, .. }
            | Self::Malformed { request, flaw: said }
            | Self::Redirect { request, to: said, .. }
            | Self::Elsewhere { request, server: said }
            | Self::Damaged { request, found: said }
            | Self::Realm { registry: request, realm: said, .. } => {
                clean(request);
                clean(said);
            }
            Self::LeadsAstray { request, host, words } => {
                clean(request);
                clean(host);
                clean(words);
            }
            Self::Silent { request, .. } | Self::TooLarge { request, .. } | Self::Circle { request } => {
                clean(request);
            }
            // These quote no server.
            Self::TooSlow { .. }
            | Self::TooSlowForMemory { .. }
            | Self::NoCapacity
            | Self::Resting { .. }
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
    fn a_request_knows_what_it_shows() {
        let url = Url::parse("https://r.example/").unwrap();
        let call = |authorization| Call::get(url.clone(), 0).authorized(authorization);
        let shown = call(basic(b"robot", b"hunter2 long"));
        let pair = STANDARD.encode("robot:hunter2 long");
        assert_eq!(shown.scrub(&format!("robot, {pair}: hunter2 long")), "robot, ••••: ••••");
        assert_eq!(call(bearer(&Secret::new("t0ken"))).scrub("Bearer t0ken"), "Bearer ••••");
        assert_eq!(call(None).scrub("t0ken"), "t0ken");
        let form = "grant_type=refresh_token&refresh_token=a%2Fb%2Bc&client_assertion=eyJ";
        let call = Call::post(url.clone(), form.as_bytes(), 0);
        assert_eq!(call.scrub("refresh_token a/b+c a%2Fb%2Bc eyJ"), "refresh_token •••• •••• ••••");
        let mut value = HeaderValue::from_static("s3ssion");
        value.set_sensitive(true);
        let call =
            Call::get(url, 0).with_secret(AUTHORIZATION, Some(value)).with(reqwest::header::ACCEPT, "text");
        assert_eq!(call.scrub("text s3ssion"), "text ••••");
    }

    #[test]
    fn a_login_is_no_part_of_an_error() {
        let mut scrubber = Redactor::default();
        let login = Credential::Basic { user: Secret::new("robot"), password: Secret::new("hunter2") };
        learn_credential(&mut scrubber, &login);
        let malformed = RegistryError::Malformed {
            request: "GET https://r/hunter2".to_owned(),
            flaw: "hunter2".to_owned(),
        };
        let error = RegistryError::NeitherScheme {
            secured: Box::new(RegistryError::Elsewhere {
                request: "GET x".to_owned(),
                server: "hunter2".to_owned(),
            }),
            plain: Box::new(RegistryError::Barred(Box::new(malformed))),
        };
        let words = error.scrubbed(&scrubber).to_string();
        assert!(!words.contains("hunter2") && words.matches("••••").count() == 3, "{words}");
    }
}
