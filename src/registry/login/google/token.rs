//! Access tokens of Google.

use serde::Deserialize;
use url::Url;

use crate::net::Host;
use crate::registry::login::context::LoginContext;
use crate::registry::login::error::LoginError;
use crate::registry::login::kept::Lasting;
use crate::registry::login::network::Matter;
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
pub(super) fn read(
    matter: Matter,
    response: &Response,
    context: LoginContext<'_>,
) -> Result<Lasting<Secret>, LoginError> {
    let token: Token = matter.json(response)?;
    if token.access_token.expose().is_empty() {
        return Err(matter.malformed("has an empty one"));
    }
    let ends = context.now.checked_add(jiff::SignedDuration::from_secs(token.expires_in)).ok();
    Ok(Lasting { value: token.access_token, ends })
}

/// Parses an address that secrets may be sent to: HTTPS, or this machine.
pub(super) fn guarded(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_near = url.scheme() == "http" && Host::read(url.host_str()?).is_local();
    (url.scheme() == "https" || is_near).then_some(url)
}
