//! Requests of a GitHub App to the API.

use jiff::Timestamp;
use reqwest::header::HeaderName;
use serde::{Deserialize, Serialize};

use super::keys::{GithubApp, Installation};
use crate::cloud::LoginError;
use crate::cloud::cache::Expiring;
use crate::cloud::network::{MAX_RESPONSE, Network, RequestLabel, error_message};
use crate::net::http::{Body, Request, Requester, Response, Route, bearer};
use crate::net::tells_rate_limit;
use crate::secrets::Secret;

const ACCEPT: &str = "application/vnd.github+json";
const VERSION: (&str, &str) = ("x-github-api-version", "2022-11-28");

const LOOKUP: RequestLabel = RequestLabel { cloud: "GitHub", item: "the installation of the App" };
const TOKEN: RequestLabel = RequestLabel { cloud: "GitHub", item: "a token of the App's installation" };

/// A request for an installation token.
pub(super) struct TokenRequest<'r> {
    pub(super) app: &'r GithubApp,
    /// The name of the repository that the token is for.
    pub(super) repository: &'r str,
    /// The route to the API.
    pub(super) route: &'r Route,
    /// The namespace and login that the requests are made for.
    pub(super) requester: Requester,
    pub(super) now: Timestamp,
}

/// An installation token.
pub(super) struct InstallationToken {
    pub(super) token: Expiring<Secret>,
    /// Set if the token is valid for all repositories.
    /// GitHub does not know the name of this one then.
    pub(super) is_unrestricted: bool,
}

#[derive(Deserialize)]
struct FoundInstallation {
    id: u64,
}

#[derive(Serialize)]
struct Restriction<'r> {
    repositories: [&'r str; 1],
}

#[derive(Deserialize)]
struct TokenResponse {
    token: Secret,
    expires_at: Timestamp,
}

impl TokenRequest<'_> {
    /// Looks up the installation of the owner: first as an organization, then as a user.
    pub(super) async fn installation(&self, network: &Network) -> Result<u64, LoginError> {
        let owner = match &self.app.installation {
            Installation::Id(id) => return Ok(*id),
            Installation::Owner(owner) => owner,
        };
        for kind in ["orgs", "users"] {
            let request = Request::get(self.app.address(&[kind, owner, "installation"]), MAX_RESPONSE);
            let response = self.send(LOOKUP, network, request).await?;
            match response.status.as_u16() {
                200 => return Ok(LOOKUP.json::<FoundInstallation>(&response)?.id),
                404 if is_unknown_app(&response) => return Err(self.unknown_app()),
                404 => {}
                _ => return Err(self.refused(LOOKUP, &response)),
            }
        }
        Err(self.problem(format!(
            "it is not installed for '{owner}': install it there, or correct githubAppInstallationOwner"
        )))
    }

    /// Requests a token of an installation, for the repository alone.
    ///
    /// A repository that was renamed, or is not one of the installation, is unknown there; its token is unrestricted.
    ///
    /// Returns `None` if there is no such installation.
    pub(super) async fn token(
        &self,
        installation: u64,
        network: &Network,
    ) -> Result<Option<InstallationToken>, LoginError> {
        let restriction = serde_json::to_vec(&Restriction { repositories: [self.repository] });
        let restriction = restriction.expect("a list of texts is JSON");
        let mut response = self.ask_token(installation, restriction, network).await?;
        let is_unrestricted = response.status.as_u16() == 422;
        if is_unrestricted {
            response = self.ask_token(installation, b"{}".to_vec(), network).await?;
        }
        match response.status.as_u16() {
            201 => {}
            404 if is_unknown_app(&response) => return Err(self.unknown_app()),
            404 => return Ok(None),
            _ => return Err(self.refused(TOKEN, &response)),
        }
        let TokenResponse { token, expires_at } = TOKEN.json(&response)?;
        let token = Expiring { value: TOKEN.not_empty(token)?, expires_at: Some(expires_at) };
        Ok(Some(InstallationToken { token, is_unrestricted }))
    }

    /// Returns the error of an App without this installation.
    pub(super) fn not_installed(&self, installation: u64) -> LoginError {
        self.problem(match &self.app.installation {
            Installation::Id(_) => {
                format!(
                    "it has no installation {installation}: install it, or correct githubAppInstallationID"
                )
            }
            Installation::Owner(owner) => {
                format!("its installation {installation} for '{owner}' is gone: install it there again")
            }
        })
    }

    fn unknown_app(&self) -> LoginError {
        self.problem("the API knows no App with this ID: correct githubAppID, or githubAppBaseURL".to_owned())
    }

    async fn ask_token(
        &self,
        installation: u64,
        body: Vec<u8>,
        network: &Network,
    ) -> Result<Response, LoginError> {
        let url = self.app.address(&["app", "installations", &installation.to_string(), "access_tokens"]);
        let body = Body { kind: "application/json", bytes: body.into() };
        self.send(TOKEN, network, Request::get(url, MAX_RESPONSE).with_body(body)).await
    }

    /// Sends a request with a JWT of the App.
    async fn send(
        &self,
        label: RequestLabel,
        network: &Network,
        request: Request,
    ) -> Result<Response, LoginError> {
        let jwt = Secret::new(self.app.jwt(self.now).as_bytes());
        let (name, version) = VERSION;
        let request = request
            .accept(ACCEPT)
            .with_header(HeaderName::from_static(name), version)
            .with_authorization(bearer(&jwt));
        let sent = network.of_object(self.route, self.requester.clone(), request).await;
        sent.map_err(|cause| label.unreachable(cause))
    }

    fn problem(&self, problem: String) -> LoginError {
        LoginError::App { app: self.app.id, problem }
    }

    /// Returns the error of a response that is no success.
    fn refused(&self, label: RequestLabel, response: &Response) -> LoginError {
        let (status, message) = (response.status.as_u16(), error_message(&response.body));
        let remedy = match status {
            401 if message.contains("claim") => ": correct the clock of this machine",
            401 => ": give the githubAppID and a githubAppPrivateKey of the same App",
            403 | 429 if is_limited(response, &message) => {
                ": the API limits the requests of this App, and the next run tries again"
            }
            403 => {
                ": the installation is suspended, or lacks a permission; the App needs write access to contents"
            }
            _ => "",
        };
        self.problem(format!("{} is refused with status {status}: {message}{remedy}", label.item))
    }
}

/// Returns true if there is no App with the ID of the JWT.
fn is_unknown_app(response: &Response) -> bool {
    error_message(&response.body).contains("Integration not found")
}

/// Returns true if a request is refused because of a rate limit.
fn is_limited(response: &Response, message: &str) -> bool {
    tells_rate_limit(message) || response.status.as_u16() == 429 || response.retry_after().is_some()
}
