//! Redacts the secrets of a request from its response, and from errors.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use url::form_urlencoded;
use zeroize::Zeroizing;

use super::error::HttpError;
use super::request::{FORM, Request};
use crate::secrets::Redactor;

/// Parts of the names of form fields that hold secrets.
const SECRET_FIELDS: [&str; 4] = ["token", "assertion", "secret", "password"];

impl Request {
    /// Redacts the secrets of this request from a text.
    pub(crate) fn redact(&self, text: &str) -> String {
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
pub(crate) fn add_header(redactor: &mut Redactor, value: &[u8]) {
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

pub(crate) fn add_password(redactor: &mut Redactor, password: &[u8]) {
    if !password.is_empty() {
        redactor.add_secret(password);
    }
}

impl HttpError {
    /// Redacts secrets from every field that may quote a server.
    pub(crate) fn redacted(mut self, redactor: &Redactor) -> Self {
        let clean = |text: &mut String| *text = redactor.redact(text);
        match &mut self {
            Self::Unreachable { request, cause: detail, .. }
            | Self::Malformed { request, defect: detail }
            | Self::Redirect { request, to: detail, .. } => {
                clean(request);
                clean(detail);
            }
            Self::ForbiddenRedirect { request, host, message } => {
                clean(request);
                clean(host);
                clean(message);
            }
            Self::NoResponse { request, .. } | Self::TooLarge { request, .. } => clean(request),
            // These quote no server.
            Self::Timeout { .. }
            | Self::MemoryTimeout { .. }
            | Self::NoCapacity
            | Self::Paused { .. }
            | Self::Tls(_)
            | Self::Connection(_) => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::{AUTHORIZATION, HeaderValue};
    use url::Url;

    use super::*;
    use crate::net::http::headers::{basic, bearer};
    use crate::secrets::Secret;

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
}
