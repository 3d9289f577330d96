//! Access tokens of Google.

use serde::Deserialize;
use url::Url;

use crate::net::Host;
use crate::registry::login::cache::Expiring;
use crate::registry::login::context::LoginContext;
use crate::registry::login::error::LoginError;
use crate::registry::login::network::RequestLabel;
use crate::registry::response::Response;
use crate::secrets::Secret;

/// The name of the cloud in messages.
pub(super) const CLOUD: &str = "GCP";

/// The scopes of a token, as in Flux.
pub(super) const SCOPES: [&str; 2] =
    ["https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/userinfo.email"];

#[derive(Deserialize)]
struct Token {
    access_token: Secret,
    expires_in: i64,
}

/// Parses the token in a response.
pub(super) fn parse_token(
    label: RequestLabel,
    response: &Response,
    context: LoginContext<'_>,
) -> Result<Expiring<Secret>, LoginError> {
    let token: Token = label.json(response)?;
    if token.access_token.expose().is_empty() {
        return Err(label.malformed("has an empty one"));
    }
    let expires_at = context.now.checked_add(jiff::SignedDuration::from_secs(token.expires_in)).ok();
    Ok(Expiring { value: token.access_token, expires_at })
}

/// Parses an address that secrets may be sent to: HTTPS, or this machine.
pub(super) fn secure_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_local = url.scheme() == "http" && Host::read(url.host_str()?).is_local();
    (url.scheme() == "https" || is_local).then_some(url)
}
