//! The errors of logins at clouds.

use std::time::Duration;

use crate::registry::error::RegistryError;

/// A failure on the way to a login. No message has a secret in it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LoginError {
    /// The registry is none of that cloud, in Flux's words.
    #[error("invalid {cloud} registry: '{host}'. must {must}")]
    Registry {
        /// The cloud.
        cloud: &'static str,
        /// The registry.
        host: String,
        /// What its name would have to be.
        must: String,
    },
    /// We are nobody at that cloud, as far as we know.
    #[error(
        "cannot log in at {cloud}: {missing}, and the metadata server of the machine, asked last, does not answer"
    )]
    Nobody {
        /// The cloud.
        cloud: &'static str,
        /// What there is not.
        missing: &'static str,
        /// What the metadata server does.
        #[source]
        cause: Box<RegistryError>,
    },
    /// A variable of the environment, or the file that it names, cannot be used.
    #[error("cannot log in at {cloud}: the variable {variable} of the environment {flaw}")]
    Variable {
        /// The cloud.
        cloud: &'static str,
        /// The variable.
        variable: &'static str,
        /// What is wrong with it.
        flaw: String,
    },
    /// Something else that says who we are cannot be used.
    #[error("cannot log in at {cloud}: {what} {flaw}")]
    Setting {
        /// The cloud.
        cloud: &'static str,
        /// What it is: a file, a profile.
        what: String,
        /// What is wrong with it.
        flaw: String,
    },
    /// A service account does not say who it is at a cloud.
    #[error(
        "cannot log in at {cloud} as the service account '{account}': its annotation {annotation} {flaw}"
    )]
    Annotation {
        /// The cloud.
        cloud: &'static str,
        /// Namespace and name of the account.
        account: String,
        /// The annotation.
        annotation: &'static str,
        /// What is wrong with it.
        flaw: String,
    },
    /// The cluster does not vouch for a service account.
    #[error("cannot log in at {cloud} as the service account '{account}': the cluster gives no token of it")]
    NoToken {
        /// The cloud.
        cloud: &'static str,
        /// Namespace and name of the account.
        account: String,
        /// Why not.
        #[source]
        cause: AccountError,
    },
    /// The cloud says no.
    #[error("cannot log in at {cloud}: {what} is refused with status {status}: {words}")]
    Refused {
        /// The cloud.
        cloud: &'static str,
        /// What was asked for.
        what: &'static str,
        /// The status.
        status: u16,
        /// What the cloud says.
        words: String,
    },
    /// The cloud does not answer.
    #[error("cannot log in at {cloud}: {what} cannot be had")]
    Unreachable {
        /// The cloud.
        cloud: &'static str,
        /// What was asked for.
        what: &'static str,
        /// Why not.
        #[source]
        cause: Box<RegistryError>,
    },
    /// The cloud answers something else.
    #[error("cannot log in at {cloud}: the answer that should hold {what} {flaw}")]
    Malformed {
        /// The cloud.
        cloud: &'static str,
        /// What was asked for.
        what: &'static str,
        /// What is wrong with it.
        flaw: &'static str,
    },
    /// The login would have to be shown to everybody on the way.
    #[error(
        "the registry {host} is spoken to without TLS, and a cloud's login is shown to nobody there: remove \
         spec.insecure, or give the registry a certificate"
    )]
    Open {
        /// The registry.
        host: String,
    },
}

impl LoginError {
    /// How long the cloud wants to be left alone, where it has said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Nobody { cause, .. } | Self::Unreachable { cause, .. } => cause.retry_after(),
            _ => None,
        }
    }
}

/// The error of the cluster about a service account.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    /// The account does not exist.
    #[error("serviceaccount '{namespace}/{name}' not found")]
    Missing {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
    },
    /// The cluster refuses or fails.
    #[error("{words}")]
    Cluster {
        /// The message of the cluster.
        words: String,
    },
}
