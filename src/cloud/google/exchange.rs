//! Token exchange at Google's STS, and impersonation of service accounts.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::cloud::LoginError;
use crate::cloud::cache::Expiring;
use crate::cloud::context::LoginContext;
use crate::cloud::network::{MAX_RESPONSE, RequestLabel, form};
use crate::net::http::bearer;
use crate::net::http::{Body, Request};
use crate::secrets::Secret;

/// The name of the cloud in messages.
pub(super) const CLOUD: &str = "GCP";

/// The scopes of a token, as in Flux.
pub(super) const SCOPES: [&str; 2] =
    ["https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/userinfo.email"];

const EXCHANGE: RequestLabel = RequestLabel { cloud: CLOUD, item: "a token of Google for that of another" };
const IMPERSONATE: RequestLabel =
    RequestLabel { cloud: CLOUD, item: "a token of the service account of Google (generateAccessToken)" };

/// The default type of subject tokens.
pub(super) const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";

/// The lifetime of impersonation tokens.
const TOKEN_LIFETIME: &str = "3600s";

/// A token exchange.
pub(super) struct Exchange<'e> {
    /// The STS endpoint.
    pub(super) url: Url,
    /// The workload identity provider that verifies the token.
    pub(super) audience: &'e str,
    /// The token's type.
    pub(super) kind: &'e str,
    /// The subject token.
    pub(super) token: &'e str,
    /// The endpoint that impersonates a service account, if one is named.
    pub(super) account: Option<Url>,
}

#[derive(Serialize)]
struct ImpersonationRequest {
    scope: [&'static str; 2],
    lifetime: &'static str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImpersonationResponse {
    access_token: Secret,
    expire_time: Timestamp,
}

impl Exchange<'_> {
    /// Exchanges the token, and impersonates the service account if one is named.
    pub(super) async fn execute(self, context: LoginContext<'_>) -> Result<Expiring<Secret>, LoginError> {
        // Impersonation needs only the first scope.
        let scope = if self.account.is_some() { SCOPES[0].to_owned() } else { SCOPES.join(" ") };
        let form = form([
            ("audience", self.audience),
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
            ("scope", &scope),
            ("subject_token", self.token),
            ("subject_token_type", self.kind),
        ]);
        let request = Request::post(self.url, form, MAX_RESPONSE);
        let response = context.service(EXCHANGE, request).await?;
        let token = EXCHANGE.access_token(&response, context.now)?;
        match self.account {
            None => Ok(token),
            Some(url) => impersonate(url, &token.value, context).await,
        }
    }
}

async fn impersonate(
    url: Url,
    token: &Secret,
    context: LoginContext<'_>,
) -> Result<Expiring<Secret>, LoginError> {
    let request = serde_json::to_vec(&ImpersonationRequest { scope: SCOPES, lifetime: TOKEN_LIFETIME });
    let bytes = request.expect("texts are JSON").into();
    let request = Request::get(url, MAX_RESPONSE)
        .with_body(Body { kind: "application/json", bytes })
        .with_authorization(bearer(token));
    let response = context.service(IMPERSONATE, request).await?;
    let response: ImpersonationResponse = IMPERSONATE.json(&response)?;
    let value = IMPERSONATE.not_empty(response.access_token)?;
    Ok(Expiring { value, expires_at: Some(response.expire_time) })
}
