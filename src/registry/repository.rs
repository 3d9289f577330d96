//! A repository that is asked by somebody: requests that show who asks, to those who may see it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::StatusCode;
use reqwest::header::HeaderValue;

use super::answer::Answer;
use super::call::Call;
use super::challenge::{Bearer, Challenge};
use super::client::Client;
use super::deadline::Deadline;
use super::error::RegistryError;
use super::headers::{basic, bearer};
use super::login::{Credential, Fingerprint, Login, LoginChoice, LoginError};
use super::pauses::Requester;
use super::server::{Server, Servers};
use super::session::Session;
use super::token::TokenRequest;
use super::way::Way;
use crate::reference::RepositoryAddress;

/// Who asks for which repository, and how it is reached: what an ImageRepository says, with the secrets it names.
#[derive(Debug, Clone)]
pub struct Access {
    /// The namespace of the object. What one namespace may see, no other gets to see.
    pub namespace: String,
    /// The namespace of the object that refers to that one, if it is another: slots, threads and memory are its.
    pub referred_from: Option<String>,
    /// The repository.
    pub address: RepositoryAddress,
    /// Who we are.
    pub login: LoginChoice,
    /// How the registry is reached.
    pub way: Way,
    /// The names of the objects that login and way are from, such as secrets: what is shown for one, none else gets to see.
    pub secrets: Vec<String>,
    /// How long one listing, or one look at a manifest, may take. It is no part of who asks.
    pub timeout: Duration,
}

impl Access {
    /// Equal for equal accesses: the same repository, seen by the same.
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
            self.way.fingerprint().as_bytes(),
            secrets.as_bytes(),
        ])
    }
}

impl Access {
    /// The namespace that the work is done for.
    pub(super) fn tenant(&self) -> &str {
        self.referred_from.as_deref().unwrap_or(&self.namespace)
    }

    /// The requester of what shows the login, if there is one.
    pub(super) fn requester(&self) -> Requester {
        let login = self.login.fingerprint();
        let login = Fingerprint::of([self.namespace.as_bytes(), login.as_bytes()]);
        Requester { namespace: self.tenant().to_owned(), login }
    }

    /// The requester of what shows no login.
    fn anonymous_requester(&self) -> Requester {
        Self { login: LoginChoice::default(), ..self.clone() }.requester()
    }
}

/// A repository as somebody asks it.
#[derive(Debug, Clone)]
pub struct Repository {
    pub(super) access: Access,
    pub(super) way: Fingerprint,
    pub(super) login: Arc<dyn Login>,
    pub(super) client: Client,
    pub(super) servers: Arc<Servers>,
    pub(super) session: Arc<Session>,
    /// The deadline of work that several wait for.
    pub(super) deadline: Option<Deadline>,
}

impl Repository {
    /// The same repository for work that has a deadline already.
    pub(super) fn within(self, deadline: Deadline) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// The repository's address.
    pub fn address(&self) -> &RepositoryAddress {
        &self.access.address
    }

    /// The deadline of a piece of work that begins now.
    pub(super) fn deadline(&self) -> Deadline {
        self.deadline.clone().unwrap_or_else(|| Deadline::within(self.access.timeout))
    }

    /// The registry, as it is known.
    pub(super) async fn server(&self, deadline: &Deadline) -> Result<Arc<Server>, RegistryError> {
        let Access { address, .. } = &self.access;
        // Whatever is wrong with certificates or proxy is said once, and not of each scheme.
        self.client.transport().await?;
        let anonymous = self.client.on_behalf_of(self.access.anonymous_requester());
        let meeting =
            Box::pin(self.servers.probe(address, self.access.tenant(), self.way, &anonymous, deadline));
        let met = deadline.hold(|| format!("GET {}/v2/", self.access.address.registry()), meeting).await;
        met.map_err(RegistryError::on_the_way)
    }

    /// Does a piece of work whose error says nothing of what was shown of us.
    pub(super) async fn discreetly<T>(
        &self,
        work: impl Future<Output = Result<T, RegistryError>>,
    ) -> Result<T, RegistryError> {
        work.await.map_err(|error| error.scrubbed(&self.session.shown().scrubber()))
    }

    /// Sends a request to the registry and shows who we are, if it wants to see that.
    ///
    /// A token that is no longer good, or not good for this, is replaced once.
    pub(super) async fn ask(
        &self,
        server: &Server,
        call: Call,
        deadline: &Deadline,
    ) -> Result<Answer, RegistryError> {
        let challenge = self.session.challenge(server);
        let authorization = self.authorization(server, challenge.as_ref(), None, deadline).await?;
        self.session.shown().note_header(authorization.as_ref());
        let call = call.authorized(authorization);
        let answer = self.send(&call, deadline).await?;
        if answer.status != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        let Some(challenge) = Challenge::choose(answer.challenges()) else { return Ok(answer) };
        let again =
            self.authorization(server, Some(&challenge), call.authorization.as_ref(), deadline).await?;
        if again.is_none() || again == call.authorization {
            return Ok(answer);
        }
        self.session.set_challenge(server, challenge);
        self.session.shown().note_header(again.as_ref());
        self.send(&call.authorized(again), deadline).await
    }

    async fn send(&self, call: &Call, deadline: &Deadline) -> Result<Answer, RegistryError> {
        let sent = self.client.send(call, deadline).await;
        if let Err(RegistryError::Unreachable { .. }) = &sent {
            self.servers.forget(&self.access.address, self.way);
        }
        sent
    }

    /// The header that shows who we are; `refused` is one that was not good enough.
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
        let mut kept = self.session.token.lock().await;
        if let Some(token) = &*kept {
            let header = token.header();
            let is_enough = scopes.iter().all(|scope| token.scopes.contains(scope));
            // Another request may have got a new one since this one was refused.
            if token.holds() && is_enough && header.as_ref() != refused {
                return Ok(header);
            }
        }
        let credential = &self.credential(server, deadline).await?;
        if let Credential::RegistryToken(token) = credential {
            return Ok(bearer(token));
        }
        let request = TokenRequest { registry: &server.base, bearer: wanted, scopes, credential };
        let token = request.send(&self.client, deadline).await.map_err(RegistryError::on_the_way)?;
        let header = token.header();
        *kept = Some(token);
        Ok(header)
    }

    /// Who we are, if that may be shown on the way there is.
    async fn credential(&self, server: &Server, deadline: &Deadline) -> Result<Credential, RegistryError> {
        let host = self.access.address.registry();
        let login = async { Ok(self.login.credential(&self.access.address, Timestamp::now()).await?) };
        let credential = deadline.hold(|| format!("the login for {host}"), login).await?;
        self.session.shown().note_credential(&credential);
        if self.login.needs_encryption() && server.base.scheme() != "https" {
            return Err(LoginError::Open { host: host.to_owned() }.into());
        }
        Ok(credential)
    }

    /// What a token has to allow: to pull, and what a registry has asked for beyond that.
    fn scopes(&self, wanted: &Bearer, is_refused: bool) -> Vec<String> {
        let mut scopes = vec![format!("repository:{}:pull", self.access.address.repository())];
        if is_refused {
            scopes.extend(wanted.scope.clone().filter(|scope| *scope != scopes[0]));
        }
        scopes
    }
}
