//! Header values that hold secrets, marked as sensitive so that no log prints them.

use reqwest::header::HeaderValue;
use zeroize::Zeroizing;

use crate::secrets::Secret;

/// Returns a bearer token as the value of `Authorization`.
pub(crate) fn bearer(token: &Secret) -> Option<HeaderValue> {
    with_scheme("Bearer", token.expose())
}

/// Returns user and password as the value of `Authorization`.
pub(crate) fn basic(user: &[u8], password: &[u8]) -> Option<HeaderValue> {
    use base64::Engine;
    let pair = Zeroizing::new([user, b":", password].concat());
    let text = Zeroizing::new(base64::engine::general_purpose::STANDARD.encode(&*pair));
    with_scheme("Basic", text.as_bytes())
}

/// Returns a secret of an authentication scheme as the value of `Authorization`.
pub(crate) fn with_scheme(scheme: &str, secret: &[u8]) -> Option<HeaderValue> {
    sensitive(&Zeroizing::new([scheme.as_bytes(), b" ", secret].concat()))
}

/// Returns a secret as the value of a header.
pub(crate) fn secret_header(secret: &Secret) -> Option<HeaderValue> {
    sensitive(secret.expose())
}

fn sensitive(value: &[u8]) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_bytes(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}
