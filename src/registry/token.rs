//! Bearer tokens: requested from token servers and cached until they expire.

use std::time::Duration;

use reqwest::header::HeaderValue;
use serde::Deserialize;
use tokio::time::Instant;
use url::Url;
use url::form_urlencoded::Serializer;

use super::challenge::Bearer;
use super::error::RegistryError;
use crate::cloud::Credential;
use crate::net::http::Deadline;
use crate::net::http::Request;
use crate::net::http::Response;
use crate::net::http::is_internal;
use crate::net::http::origin;
use crate::net::http::{Client, HttpError};
use crate::net::http::{basic, bearer};
use crate::secrets::Secret;

/// The maximum size of the response, in bytes.
const MAX_RESPONSE: usize = 1024 * 1024;

/// The longest token, in bytes.
///
/// Tokens are cached, and no registry accepts a longer header.
const MAX_TOKEN: usize = 32 * 1024;

/// The lifetime in seconds of a token without `expires_in`.
const DEFAULT_LIFETIME: u64 = 60;

/// The time before its end at which a token is no longer used.
const MARGIN: Duration = Duration::from_secs(10);

/// The `client_id` of requests to token servers.
const CLIENT: &str = "tagboat";

/// The user name for a token in place of a password, as Docker writes it.
const TOKEN_USER: &str = "<token>";

/// A token with the time until which it is used.
#[derive(Debug, Clone)]
pub(super) struct Token {
    value: Secret,
    expires_at: Instant,
    /// The scopes that the token grants.
    pub(super) scopes: Vec<String>,
}

#[derive(Deserialize)]
struct Body {
    token: Option<Secret>,
    access_token: Option<Secret>,
    expires_in: Option<u64>,
}

/// A request to a token server.
pub(super) struct TokenRequest<'a> {
    /// The registry's own address.
    pub(super) registry: &'a Url,
    /// The challenge, which names the token server.
    pub(super) bearer: &'a Bearer,
    /// The scopes that the token must grant.
    pub(super) scopes: Vec<String>,
    /// The credential for the token server.
    pub(super) credential: &'a Credential,
}

impl Token {
    /// Returns `true` if the token has not expired.
    pub(super) fn is_valid(&self) -> bool {
        Instant::now() < self.expires_at
    }

    /// Returns the value of `Authorization` with this token.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        bearer(&self.value)
    }
}

impl TokenRequest<'_> {
    /// Requests a token.
    pub(super) async fn send(self, client: &Client, deadline: &Deadline) -> Result<Token, RegistryError> {
        let realm = self.realm()?;
        let begin = Instant::now();
        let response = match self.credential {
            Credential::IdentityToken(token) => self.exchange(token, realm, client, deadline).await?,
            Credential::Basic { user, password } => {
                let request =
                    self.get_request(realm).with_authorization(basic(user.expose(), password.expose()));
                client.send(&request, deadline).await?
            }
            Credential::Anonymous | Credential::RegistryToken(_) => {
                client.send(&self.get_request(realm), deadline).await?
            }
        };
        if !response.status.is_success() {
            return Err(response.to_error());
        }
        let (bytes, request) = (response.body.len(), response.request.clone());
        let malformed =
            |defect: &str| RegistryError::from(HttpError::Malformed { request, defect: defect.to_owned() });
        // The parser's message may contain a token.
        let body = client.process(bytes, move || response.object::<Body>().ok()).await;
        let Some(body) = body else { return Err(malformed("it is not JSON with a token")) };
        let given = |text: Option<Secret>| text.filter(|text| !text.expose().is_empty());
        let Some(value) = given(body.token).or_else(|| given(body.access_token)) else {
            return Err(malformed("it contains no token"));
        };
        if value.expose().len() > MAX_TOKEN {
            return Err(malformed("the token in it is longer than 32 KiB"));
        }
        let life =
            Duration::from_secs(body.expires_in.filter(|seconds| *seconds > 0).unwrap_or(DEFAULT_LIFETIME));
        let used = life.saturating_sub(MARGIN.min(life / 5)).min(Duration::from_secs(24 * 60 * 60));
        Ok(Token { value, expires_at: begin + used, scopes: self.scopes })
    }

    /// Exchanges an identity token in a form, or else as a password.
    ///
    /// Servers that do not know the form respond with 404 or 405.
    async fn exchange(
        &self,
        token: &Secret,
        realm: Url,
        client: &Client,
        deadline: &Deadline,
    ) -> Result<Response, RegistryError> {
        let request = Request::post(realm.clone(), self.form(token).into_bytes(), MAX_RESPONSE);
        let response = client.send(&request, deadline).await?;
        if !matches!(response.status.as_u16(), 404 | 405) {
            return Ok(response);
        }
        let request =
            self.get_request(realm).with_authorization(basic(TOKEN_USER.as_bytes(), token.expose()));
        Ok(client.send(&request, deadline).await?)
    }

    fn form(&self, token: &Secret) -> String {
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "refresh_token");
        form.append_pair("client_id", CLIENT);
        form.append_pair("refresh_token", &String::from_utf8_lossy(token.expose()));
        form.append_pair("scope", &self.scopes.join(" "));
        form.extend_pairs(self.bearer.service.iter().map(|service| ("service", service)));
        form.finish()
    }

    fn get_request(&self, mut realm: Url) -> Request {
        {
            let mut pairs = realm.query_pairs_mut();
            pairs.extend_pairs(self.scopes.iter().map(|scope| ("scope", scope)));
            pairs.extend_pairs(self.bearer.service.iter().map(|service| ("service", service)));
        }
        Request::get(realm, MAX_RESPONSE)
    }

    /// Returns the address of the token server, if it may get our credentials.
    fn realm(&self) -> Result<Url, RegistryError> {
        let realm = &self.bearer.realm;
        let invalid = |defect| RegistryError::TokenRealm {
            registry: self.registry.host_str().unwrap_or_default().to_owned(),
            realm: Url::parse(realm).map_or_else(|_| "elsewhere".to_owned(), |url| origin(&url)),
            defect,
        };
        let mut url = Url::parse(realm).map_err(|_| invalid("it is not a URL"))?;
        let is_registry = url.origin() == self.registry.origin();
        match (self.registry.scheme(), url.scheme()) {
            (_, "https") | ("http", "http") => {}
            (_, "http") => {
                return Err(invalid("it is not encrypted, and the registry is"));
            }
            _ => return Err(invalid("it is not an HTTP address")),
        }
        if is_internal(&url) && !is_internal(self.registry) && !is_registry {
            return Err(invalid("it is in a private network, and the registry is not"));
        }
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Ok(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_not_sent_to_less_secure_token_servers() {
        let realm = |registry: &str, realm: &str| {
            let registry = Url::parse(registry).unwrap();
            let bearer = Bearer { realm: realm.to_owned(), ..Bearer::default() };
            let request = TokenRequest {
                registry: &registry,
                bearer: &bearer,
                scopes: Vec::new(),
                credential: &Credential::Anonymous,
            };
            request.realm().map(|url| url.to_string()).map_err(|error| error.to_string())
        };
        for (registry, given, expected) in [
            ("https://r.io/", "https://auth.r.io/token?a=b", "https://auth.r.io/token?a=b"),
            ("https://r.io/", "https://user:password@auth.r.io/token", "https://auth.r.io/token"),
            ("http://r.io/", "http://auth.r.io/token", "http://auth.r.io/token"),
            ("http://r.io/", "https://auth.r.io/token", "https://auth.r.io/token"),
            ("http://127.0.0.1:5000/", "http://127.0.0.1:5001/token", "http://127.0.0.1:5001/token"),
            ("https://10.0.0.1/", "https://10.0.0.2/token", "https://10.0.0.2/token"),
        ] {
            assert_eq!(realm(registry, given).as_deref(), Ok(expected), "{registry} {given}");
        }
        for (registry, given, message) in [
            ("https://r.io/", "http://auth.r.io/token", "is not encrypted"),
            ("https://r.io/", "http://r.io/token", "is not encrypted"),
            ("https://r.io/", "https://169.254.169.254/token", "in a private network"),
            ("https://r.io/", "https://localhost/token", "in a private network"),
            ("https://r.io/", "https://[::1]/token", "in a private network"),
            ("https://r.io/", "/token", "not a URL"),
            ("https://r.io/", "", "not a URL"),
            ("https://r.io/", "file:///etc/passwd", "not an HTTP address"),
        ] {
            let error = realm(registry, given).unwrap_err();
            assert!(error.contains(message), "{registry} {given}: {error}");
        }
    }
}
