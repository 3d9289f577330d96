//! HTTP requests to clouds.
//!
//! Services are reached over the object's proxy, metadata servers directly. The certificates of objects are not used:
//! with an authority and a proxy of their own, objects could read the credentials.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use url::Url;
use url::form_urlencoded::Serializer;

use super::cache::Expiring;
use super::error::LoginError;
use crate::net::http::Deadline;
use crate::net::http::HttpError;
use crate::net::http::HttpOptions;
use crate::net::http::Request;
use crate::net::http::Requester;
use crate::net::http::Response;
use crate::net::http::single_line;
use crate::net::http::{Client, ClientState};
use crate::net::http::{Route, Timeouts};
use crate::net::{LocalAddresses, ProxyChoice};
use crate::secrets::Secret;

/// The timeout of one request, as in Flux.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The connect timeout of a metadata server, which is on the same link or absent.
const METADATA_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum size of a response in bytes.
pub(super) const MAX_RESPONSE: usize = 1024 * 1024;

/// The maximum number of characters of a cloud's message.
const MAX_MESSAGE: usize = 300;

/// Sends requests to clouds.
#[derive(Debug)]
pub(super) struct Network {
    services: Arc<HttpOptions>,
    metadata: Arc<HttpOptions>,
    state: Arc<ClientState>,
}

/// The cloud and the requested item, for error messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestLabel {
    pub(super) cloud: &'static str,
    pub(super) item: &'static str,
}

impl Network {
    pub(super) fn new(options: HttpOptions, state: Arc<ClientState>) -> Self {
        let metadata = HttpOptions {
            local_addresses: LocalAddresses::Allowed,
            timeouts: Timeouts { connect: METADATA_CONNECT_TIMEOUT, ..options.timeouts },
            ..options.clone()
        };
        Self { services: Arc::new(options), metadata: Arc::new(metadata), state }
    }

    /// Sends a request to a service of a cloud.
    /// Any response but success is an error.
    pub(super) async fn service(
        &self,
        label: RequestLabel,
        proxy: &ProxyChoice,
        requester: Requester,
        request: Request,
    ) -> Result<Response, LoginError> {
        let route = Route { proxy: proxy.clone(), ..Route::default() };
        let client = Client::new(route, Arc::clone(&self.services), Arc::clone(&self.state), requester);
        let response = client.send(&request.without_redirects(), &Deadline::within(REQUEST_TIMEOUT)).await;
        label.success(response.map_err(|cause| label.unreachable(cause))?)
    }

    /// Sends a request with the secrets of an object over the object's own route.
    pub(super) async fn of_object(
        &self,
        route: &Route,
        requester: Requester,
        request: Request,
    ) -> Result<Response, HttpError> {
        let client =
            Client::new(route.clone(), Arc::clone(&self.services), Arc::clone(&self.state), requester);
        client.send(&request.without_redirects(), &Deadline::within(REQUEST_TIMEOUT)).await
    }

    /// Sends a request to a metadata server.
    ///
    /// The address is ours, not an object's, so it may be on the machine's own link, and no proxy is used.
    pub(super) async fn metadata(
        &self,
        requester: Requester,
        request: Request,
    ) -> Result<Response, HttpError> {
        let route = Route { proxy: ProxyChoice::Direct, ..Route::default() };
        let client = Client::new(route, Arc::clone(&self.metadata), Arc::clone(&self.state), requester);
        client.send(&request.without_redirects(), &Deadline::within(REQUEST_TIMEOUT)).await
    }
}

impl RequestLabel {
    pub(super) fn malformed(self, defect: &'static str) -> LoginError {
        LoginError::Malformed { cloud: self.cloud, item: self.item, defect }
    }

    pub(super) fn unreachable(self, cause: HttpError) -> LoginError {
        LoginError::Unreachable { cloud: self.cloud, item: self.item, cause: Box::new(cause) }
    }

    /// Returns a successful response, or the error of any other.
    pub(super) fn success(self, response: Response) -> Result<Response, LoginError> {
        if response.status.is_success() {
            return Ok(response);
        }
        Err(LoginError::Refused {
            cloud: self.cloud,
            item: self.item,
            status: response.status.as_u16(),
            message: error_message(&response.body),
        })
    }

    /// Parses the body of a response as JSON.
    ///
    /// The parser's message is dropped, because it may contain a token.
    pub(super) fn json<T: serde::de::DeserializeOwned>(self, response: &Response) -> Result<T, LoginError> {
        response.object().map_err(|_| self.malformed("is not the expected JSON"))
    }

    /// Parses the access token in the response of an OAuth token endpoint.
    pub(super) fn access_token(
        self,
        response: &Response,
        now: Timestamp,
    ) -> Result<Expiring<Secret>, LoginError> {
        let token: AccessToken = self.json(response)?;
        let expires_at = now.checked_add(SignedDuration::from_secs(token.expires_in)).ok();
        Ok(Expiring { value: self.not_empty(token.access_token)?, expires_at })
    }

    /// Returns a token that is not empty, or an error.
    pub(super) fn not_empty(self, token: Secret) -> Result<Secret, LoginError> {
        if token.expose().is_empty() { Err(self.malformed("has an empty one")) } else { Ok(token) }
    }
}

/// The response of an OAuth token endpoint.
#[derive(Deserialize)]
struct AccessToken {
    access_token: Secret,
    #[serde(deserialize_with = "seconds")]
    expires_in: i64,
}

/// Deserializes a number, which Azure's metadata server sends as a string.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Seconds {
        Number(i64),
        Text(String),
    }
    match Seconds::deserialize(deserializer)? {
        Seconds::Number(number) => Ok(number),
        Seconds::Text(text) => text.parse().map_err(serde::de::Error::custom),
    }
}

/// Joins a path to the address of an endpoint.
pub(super) fn join(endpoint: &Url, path: &str) -> Url {
    endpoint.join(path).expect("a path can be joined to an address of a web server")
}

/// Serializes a form.
pub(super) fn form<'p>(pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> Vec<u8> {
    Serializer::new(String::new()).extend_pairs(pairs).finish().into_bytes()
}

/// Extracts code and message from the error response of a cloud, as one line.
pub(super) fn error_message(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let parts = match serde_json::from_str::<Value>(&text) {
        Ok(json) => {
            // Azure's registries send a list, Google and some of Azure's servers a nested object.
            let inner = json["errors"].get(0).or_else(|| json["error"].as_object().map(|_| &json["error"]));
            let json = inner.unwrap_or(&json);
            let member =
                |names: &[&str]| names.iter().find_map(|name| json[*name].as_str().map(str::to_owned));
            let code = member(&["__type", "code", "Code", "error", "status"]);
            let code = code.map(|code| code.rsplit('#').next().unwrap_or_default().to_owned());
            let message = member(&["message", "Message", "error_description"]);
            [code, message].into_iter().flatten().collect::<Vec<_>>()
        }
        Err(_) => ["Code", "Message"].iter().filter_map(|name| element(&text, name)).collect(),
    };
    // Further lines repeat the request, which contains credentials.
    let firsts = parts.iter().filter_map(|part| part.trim().lines().next());
    let message = single_line(&firsts.collect::<Vec<_>>().join(": "));
    if message.is_empty() {
        "no reason given".to_owned()
    } else {
        message.chars().take(MAX_MESSAGE).collect()
    }
}

/// Returns the text of the first XML element of a name that contains only text.
pub(super) fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    let plain = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    Some(plain.iter().fold(text.trim().to_owned(), |text, (escaped, plain)| text.replace(escaped, plain)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_messages_of_clouds_are_one_line() {
        for (body, expected) in [
            (
                r#"{"__type":"com.amazon#AccessDeniedException","message":"User is not authorized"}"#,
                "AccessDeniedException: User is not authorized",
            ),
            (
                "<ErrorResponse><Error><Type>Sender</Type><Code>InvalidIdentityToken</Code>\
                 <Message>No &quot;issuer&quot;</Message></Error></ErrorResponse>",
                "InvalidIdentityToken: No \"issuer\"",
            ),
            (
                r#"{"error":"invalid_client","error_description":"AADSTS700016: not found.\r\nTrace ID: 1"}"#,
                "invalid_client: AADSTS700016: not found.",
            ),
            (r#"{"errors":[{"code":"UNAUTHORIZED","message":"no"}]}"#, "UNAUTHORIZED: no"),
            (r#"{"error":{"code":404,"message":"gone","status":"NOT_FOUND"}}"#, "NOT_FOUND: gone"),
            (
                r#"{"__type":"X","message":"It does not match.\n\nThe Canonical String was\nx-amz-security-token:hunter2"}"#,
                "X: It does not match.",
            ),
            ("<html>hunter2</html>", "no reason given"),
            ("", "no reason given"),
            ("[]", "no reason given"),
        ] {
            assert_eq!(error_message(body.as_bytes()), expected, "{body}");
        }
    }
}
