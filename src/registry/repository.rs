//! Authenticated requests to a repository.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::StatusCode;
use reqwest::header::HeaderValue;

use super::challenge::{Bearer, Challenge};
use super::choice::{Login, LoginChoice};
use super::error::{RAISE_TIMEOUT, RegistryError};
use super::server::{Server, Servers};
use super::session::Session;
use super::token::TokenRequest;
use crate::cloud::{Credential, LoginError};
use crate::net::http::{Client, Deadline, HttpError, Request, Requester, Response, Route, basic, bearer};
use crate::reference::RepositoryAddress;
use crate::secrets::Fingerprint;

/// A repository with the requester's login and route, as an ImageRepository defines them.
#[derive(Debug, Clone)]
pub struct RepositoryAuth {
    /// The namespace of the object. Responses are never shared with another namespace.
    pub namespace: String,
    /// The namespace of the object that refers to this one, if it differs.
    /// Slots, threads and memory are charged to it.
    pub referred_from: Option<String>,
    /// The repository.
    pub address: RepositoryAddress,
    /// The login.
    pub login: LoginChoice,
    /// The route to the registry.
    pub route: Route,
    /// The names of the objects, such as Secrets, that login and route come from.
    ///
    /// Requesters share responses only if they name the same objects.
    pub secrets: Vec<String>,
    /// The timeout of one listing or manifest lookup.
    /// It is not part of the requester's identity.
    pub timeout: Duration,
}

impl RepositoryAuth {
    /// Returns a fingerprint of the repository and the requester.
    pub fn fingerprint(&self) -> Fingerprint {
        let login = self.login.fingerprint();
        let canonical = self.address.canonical();
        let secrets = Fingerprint::of(self.secrets.iter().map(String::as_bytes));
        Fingerprint::of([
            self.namespace.as_bytes(),
            self.tenant().as_bytes(),
            canonical.as_bytes(),
            self.address.scheme().as_str().as_bytes(),
            login.as_bytes(),
            self.route.fingerprint().as_bytes(),
            secrets.as_bytes(),
        ])
    }

    /// Returns the namespace that the work is charged to.
    pub(super) fn tenant(&self) -> &str {
        self.referred_from.as_deref().unwrap_or(&self.namespace)
    }

    /// Returns the requester of requests with the login.
    pub(super) fn requester(&self) -> Requester {
        let login = self.login.fingerprint();
        let login = Fingerprint::of([self.namespace.as_bytes(), login.as_bytes()]);
        Requester { namespace: self.tenant().to_owned(), login }
    }

    /// Returns the requester of requests without a login.
    fn anonymous_requester(&self) -> Requester {
        Self { login: LoginChoice::default(), ..self.clone() }.requester()
    }
}

/// A repository as one requester sees it.
#[derive(Debug, Clone)]
pub struct Repository {
    pub(super) auth: RepositoryAuth,
    pub(super) route: Fingerprint,
    pub(super) login: Arc<Login>,
    pub(super) client: Client,
    pub(super) servers: Arc<Servers>,
    pub(super) session: Arc<Session>,
    /// The deadline of coalesced work.
    pub(super) deadline: Option<Deadline>,
}

impl Repository {
    /// Returns the same repository for work that has a deadline already.
    pub(super) fn within(self, deadline: Deadline) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// Returns the repository's address.
    pub fn address(&self) -> &RepositoryAddress {
        &self.auth.address
    }

    /// Returns the deadline of a piece of work that begins now.
    pub(super) fn deadline(&self) -> Deadline {
        self.deadline.clone().unwrap_or_else(|| Deadline::within(self.auth.timeout).advising(RAISE_TIMEOUT))
    }

    /// Returns the probed registry.
    pub(super) async fn server(&self, deadline: &Deadline) -> Result<Arc<Server>, RegistryError> {
        let RepositoryAuth { address, .. } = &self.auth;
        // Errors of certificates or proxy are reported once, not once per scheme.
        self.client.transport().await?;
        let anonymous = self.client.on_behalf_of(self.auth.anonymous_requester());
        let probe =
            Box::pin(self.servers.probe(address, self.auth.tenant(), self.route, &anonymous, deadline));
        let probed = deadline.limit(|| format!("GET {}/v2/", self.auth.address.registry()), probe).await;
        probed.map_err(RegistryError::during_handshake)
    }

    /// Redacts the sent credentials from the error of a piece of work.
    pub(super) async fn redacting_errors<T>(
        &self,
        work: impl Future<Output = Result<T, RegistryError>>,
    ) -> Result<T, RegistryError> {
        work.await.map_err(|error| error.redacted(&self.session.sent_secrets().redactor()))
    }

    /// Sends a request to the registry, with credentials if it asks for them.
    ///
    /// A token that has expired, or does not suffice, is replaced once.
    pub(super) async fn send_authenticated(
        &self,
        server: &Server,
        request: Request,
        deadline: &Deadline,
    ) -> Result<Response, RegistryError> {
        let challenge = self.session.challenge(server);
        let authorization = self.authorization(server, challenge.as_ref(), None, deadline).await?;
        self.session.sent_secrets().note_header(authorization.as_ref());
        let request = request.with_authorization(authorization);
        let response = self.send(&request, deadline).await?;
        if response.status != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        let Some(challenge) = Challenge::choose(response.challenges()) else { return Ok(response) };
        let again =
            self.authorization(server, Some(&challenge), request.authorization.as_ref(), deadline).await?;
        if again.is_none() || again == request.authorization {
            return Ok(response);
        }
        self.session.set_challenge(server, challenge);
        self.session.sent_secrets().note_header(again.as_ref());
        self.send(&request.with_authorization(again), deadline).await
    }

    async fn send(&self, request: &Request, deadline: &Deadline) -> Result<Response, RegistryError> {
        let sent = self.client.send(request, deadline).await;
        if let Err(HttpError::Unreachable { .. }) = &sent {
            self.servers.forget(&self.auth.address, self.route);
        }
        Ok(sent?)
    }

    /// Returns the header `Authorization`; `refused` is a value that the registry refused.
    async fn authorization(
        &self,
        server: &Server,
        challenge: Option<&Challenge>,
        refused: Option<&HeaderValue>,
        deadline: &Deadline,
    ) -> Result<Option<HeaderValue>, RegistryError> {
        let Some(challenge) = challenge else { return Ok(None) };
        let wanted = match challenge {
            Challenge::Basic => {
                let credential = self.credential(server, deadline).await?;
                return Ok(match &credential {
                    Credential::RegistryToken(token) => bearer(token),
                    Credential::Basic { user, password } => basic(user.expose(), password.expose()),
                    Credential::Anonymous | Credential::IdentityToken(_) => None,
                });
            }
            Challenge::Bearer(wanted) => wanted,
        };
        let scopes = self.scopes(wanted, refused.is_some());
        let mut cached = self.session.token.lock().await;
        if let Some(token) = &*cached {
            let header = token.header();
            let is_enough = scopes.iter().all(|scope| token.scopes.contains(scope));
            // Another request may have replaced the token since this one was refused.
            if token.is_valid() && is_enough && header.as_ref() != refused {
                return Ok(header);
            }
        }
        let credential = &self.credential(server, deadline).await?;
        if let Credential::RegistryToken(token) = credential {
            return Ok(bearer(token));
        }
        let request = TokenRequest { registry: &server.base, bearer: wanted, scopes, credential };
        let token = request.send(&self.client, deadline).await.map_err(RegistryError::during_handshake)?;
        let header = token.header();
        *cached = Some(token);
        Ok(header)
    }

    /// Returns the credential, if it may be sent over this route.
    async fn credential(&self, server: &Server, deadline: &Deadline) -> Result<Credential, RegistryError> {
        let host = self.auth.address.registry();
        let login = async {
            Ok::<_, RegistryError>(self.login.credential(&self.auth.address, Timestamp::now()).await?)
        };
        let credential = deadline.limit(|| format!("the login for {host}"), login).await?;
        self.session.sent_secrets().note_credential(&credential);
        if self.login.needs_encryption() && server.base.scheme() != "https" {
            return Err(LoginError::Unencrypted { host: host.to_owned() }.into());
        }
        Ok(credential)
    }

    /// Returns the scopes of a token.
    /// These are the scope to pull and, if `is_refused` is set, the scope that a registry has asked for beyond that.
    fn scopes(&self, wanted: &Bearer, is_refused: bool) -> Vec<String> {
        let mut scopes = vec![format!("repository:{}:pull", self.auth.address.repository())];
        if is_refused {
            scopes.extend(wanted.scope.clone().filter(|scope| *scope != scopes[0]));
        }
        scopes
    }
}
