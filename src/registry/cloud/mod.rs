//! Logins that a cloud hands out in exchange for an identity, each from its own end points.

use std::fmt;

use futures::future::BoxFuture;
use tagboat_api::Reason;
use tokio::time::Instant;

use crate::failing::Failing;
use crate::registry::client::{Client, Deadline};
use crate::registry::error::RegistryError;
use crate::registry::login::{Credential, Fingerprint};

/// A way to log in to the registries of a cloud.
pub trait Login: fmt::Debug + Send + Sync {
    /// Equal for equal identities at the same registry.
    fn fingerprint(&self) -> Fingerprint;

    /// Logs in. Nothing is asked of anybody before this is called.
    fn log_in<'l>(&'l self, web: Web<'l>) -> BoxFuture<'l, Result<LoggedIn, RegistryError>>;
}

/// A login, and until when it holds.
#[derive(Debug, Clone)]
pub struct LoggedIn {
    /// What the registry is shown.
    pub credential: Credential,
    /// When to log in again.
    pub ends: Instant,
}

/// What a login may use to talk with the end points of its cloud.
#[derive(Clone, Copy)]
pub struct Web<'w> {
    pub(super) client: &'w Client,
    pub(super) deadline: &'w Deadline,
}

/// Why there is no login of a cloud.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The registry is not one of that cloud, in Flux's words.
    #[error("invalid {provider} registry: '{host}'. must match {pattern}")]
    Host {
        /// The cloud.
        provider: &'static str,
        /// The registry.
        host: String,
        /// What it would have to look like.
        pattern: &'static str,
    },
}

/// Other credentials may come, and the end points may answer again.
impl Failing for LoginError {
    fn reason(&self) -> Reason {
        Reason::ReadOperationFailed
    }

    fn is_retryable(&self) -> bool {
        true
    }
}
