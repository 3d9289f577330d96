//! The signing of an automation's commits by its forge.

use std::sync::Arc;

use tagboat_api::Reason;
use tagboat_api::settings::SignedBy;

use super::findings::SigningResult;
use super::forge_login::{ForgeAccess, ForgeAccessError, forge_access};
use super::login::{LoggedIn, LoginOptions};
use super::source::SourceConfiguration;
use crate::cloud::GitLoginEntry;
use crate::error::{ReconcileError, chain};
use crate::forge::github::{GithubRepository, GithubSigner};
use crate::forge::{ApiRequest, ApiResponse, ForgeClients, ForgeError, ForgeKind, HttpTransport, Transport};
use crate::git::ForgeSigning;
use crate::objects::Objects;

/// The error of an automation whose commits its forge cannot sign.
#[derive(Debug, thiserror::Error)]
pub enum ForgeSigningRefused {
    /// It has a key, too.
    #[error(
        "annotation tagboat.dev/signed-by is `forge`, and spec.git.commit.signingKey names a key: remove one of them, or \
         write `forge-or-key`"
    )]
    KeyToo,
    /// The forge signs no commits.
    #[error(
        "annotation tagboat.dev/signed-by is `{}`, and {kind} does not sign commits: write `key`, and use a signingKey",
        .signed_by.as_str()
    )]
    OtherForge {
        /// The value of the annotation.
        signed_by: SignedBy,
        /// The forge.
        kind: ForgeKind,
    },
    /// The forge, or the login there, cannot be used.
    #[error(transparent)]
    Access(#[from] ForgeAccessError),
    /// No call can be made.
    #[error(transparent)]
    Call(#[from] ForgeError),
}

impl ReconcileError for ForgeSigningRefused {
    fn reason(&self) -> Reason {
        match self {
            Self::KeyToo | Self::OtherForge { .. } => Reason::InvalidSourceConfiguration,
            Self::Access(error) => error.reason(),
            Self::Call(_) => Reason::SourceManagerFailed,
        }
    }

    fn is_retryable(&self) -> bool {
        match self {
            Self::KeyToo | Self::OtherForge { .. } => false,
            Self::Access(error) => error.is_retryable(),
            Self::Call(_) => true,
        }
    }
}

/// The signing of an automation's commits by its forge.
#[derive(Debug)]
pub struct SigningPlan {
    /// The forge, if it signs.
    pub forge: Option<ForgeSigning>,
    /// The result that is known before there is a commit.
    pub result: SigningResult,
    /// The cache entry of the forge's token, if it was requested.
    pub login: Option<GitLoginEntry>,
}

/// Returns the forge that signs an automation's commits, if one does.
///
/// # Errors
///
/// If the commits must be signed by the forge, and cannot be.
pub async fn forge_signing(
    objects: &impl Objects,
    (namespace, signed_by): (&str, SignedBy),
    source: &SourceConfiguration,
    logged_in: &LoggedIn,
    options: &LoginOptions,
) -> Result<SigningPlan, ForgeSigningRefused> {
    let without = |result| SigningPlan { forge: None, result, login: None };
    let is_required = match signed_by {
        SignedBy::Key => return Ok(without(SigningResult::NotWanted)),
        SignedBy::Forge => true,
        SignedBy::ForgeOrKey => false,
    };
    if is_required && source.signing_secret.is_some() {
        return Err(ForgeSigningRefused::KeyToo);
    }
    let signer = async {
        let objects = (objects, &options.git.clouds);
        let access = forge_access(objects, namespace, source, logged_in).await?;
        let login = access.entry.clone();
        Ok((signer(access, signed_by, &options.forges)?, login))
    };
    match signer.await {
        Ok((signer, login)) => {
            let forge = Some(ForgeSigning { signer: Arc::new(signer), is_required });
            Ok(SigningPlan { forge, result: SigningResult::Unknown, login })
        }
        Err(error) if is_required => Err(error),
        Err(error) => Ok(without(SigningResult::Unsigned(chain(&error)))),
    }
}

fn signer(
    access: ForgeAccess,
    signed_by: SignedBy,
    clients: &ForgeClients,
) -> Result<GithubSigner<Renewed<HttpTransport>>, ForgeSigningRefused> {
    let ForgeAccess { address, api, login, entry } = access;
    if !address.kind.features().signing {
        return Err(ForgeSigningRefused::OtherForge { signed_by, kind: address.kind });
    }
    let graphql = address.graphql().and_then(|url| url.parse().ok()).unwrap_or_else(|| api.clone());
    let rest = clients.transport(address.kind, api, login.clone())?;
    let graphql = clients.transport(address.kind, graphql, login)?;
    let (host, owner) = (rest.host().to_owned(), rest.owner().to_owned());
    let transports = [rest, graphql].map(|transport| Renewed { transport, entry: entry.clone() });
    let repository = GithubRepository { owner: address.repository.owner, name: address.repository.name };
    Ok(GithubSigner::new(transports.into(), repository, host, owner))
}

/// A transport whose refused token is requested anew.
struct Renewed<T> {
    transport: T,
    /// The cache entry of the token, if it was requested.
    entry: Option<GitLoginEntry>,
}

impl<T: Transport> Transport for Renewed<T> {
    async fn send(&self, request: ApiRequest) -> Result<ApiResponse, ForgeError> {
        let response = self.transport.send(request).await?;
        if let Some(entry) = self.entry.as_ref().filter(|_| response.status == 401) {
            entry.refuse();
        }
        Ok(response)
    }

    fn redact(&self, text: &str) -> String {
        self.transport.redact(text)
    }
}
