//! Errors of logins at clouds.

use std::time::Duration;

use url::Url;

use crate::net::http::HttpError;

/// An error of a login at a cloud. No message contains a secret.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LoginError {
    /// The registry does not belong to that cloud, in Flux's words.
    #[error("invalid {cloud} registry: '{host}'. must {must}")]
    Registry {
        /// The cloud.
        cloud: &'static str,
        /// The registry.
        host: String,
        /// The rule that the name violates.
        must: String,
    },
    /// No source of credentials has any.
    #[error("cannot log in at {cloud}: {missing}, and the metadata server of the machine does not respond")]
    NoCredentials {
        /// The cloud.
        cloud: &'static str,
        /// A clause about the missing sources.
        missing: &'static str,
        /// The error of the metadata server.
        #[source]
        cause: Box<HttpError>,
    },
    /// An environment variable, or the file that it names, is unusable.
    #[error("cannot log in at {cloud}: the environment variable {variable} {defect}")]
    Variable {
        /// The cloud.
        cloud: &'static str,
        /// The variable.
        variable: &'static str,
        /// The defect, as the rest of the sentence.
        defect: String,
    },
    /// Another setting is unusable.
    #[error("cannot log in at {cloud}: {setting} {defect}")]
    Setting {
        /// The cloud.
        cloud: &'static str,
        /// The setting: a file, a profile.
        setting: String,
        /// The defect, as the rest of the sentence.
        defect: String,
    },
    /// A service account has a missing or malformed annotation.
    #[error(
        "cannot log in at {cloud} as the service account '{account}': its annotation {annotation} {defect}"
    )]
    Annotation {
        /// The cloud.
        cloud: &'static str,
        /// Namespace and name of the account.
        account: String,
        /// The annotation.
        annotation: &'static str,
        /// The defect, as the rest of the sentence.
        defect: String,
    },
    /// The cluster issues no token for a service account.
    #[error(
        "cannot log in at {cloud} as the service account '{account}': the cluster issues no token for it"
    )]
    NoToken {
        /// The cloud.
        cloud: &'static str,
        /// Namespace and name of the account.
        account: String,
        /// The cause.
        #[source]
        cause: AccountError,
    },
    /// The cloud refuses.
    #[error("cannot log in at {cloud}: {item} is refused with status {status}: {message}")]
    Refused {
        /// The cloud.
        cloud: &'static str,
        /// The requested item.
        item: &'static str,
        /// The status.
        status: u16,
        /// The cloud's message.
        message: String,
    },
    /// The cloud cannot be reached.
    #[error("cannot log in at {cloud}: cannot get {item}")]
    Unreachable {
        /// The cloud.
        cloud: &'static str,
        /// The requested item.
        item: &'static str,
        /// The cause.
        #[source]
        cause: Box<HttpError>,
    },
    /// The cloud's response is malformed.
    #[error("cannot log in at {cloud}: the response for {item} {defect}")]
    Malformed {
        /// The cloud.
        cloud: &'static str,
        /// The requested item.
        item: &'static str,
        /// The defect, as the rest of the sentence.
        defect: &'static str,
    },
    /// The repository is not on a server of the provider.
    #[error("the provider {provider} cannot log in at '{url}': the URL must {must}")]
    GitUrl {
        /// The provider.
        provider: &'static str,
        /// The URL, without a login.
        url: String,
        /// The rule that the URL violates.
        must: &'static str,
    },
    /// A GitHub App cannot log in.
    #[error("cannot log in as the GitHub App {app}: {problem}")]
    App {
        /// The ID of the App.
        app: u64,
        /// The problem and its remedy.
        problem: String,
    },
    /// The login would be sent without encryption.
    #[error(
        "cannot send cloud credentials to the registry {host} without TLS: remove spec.insecure, or give the registry \
         a certificate"
    )]
    Unencrypted {
        /// The registry.
        host: String,
    },
}

impl LoginError {
    /// Makes the error of a URL at which a provider cannot log in.
    ///
    /// User info and query are left out.
    pub(super) fn git_url(provider: &'static str, url: &Url, must: &'static str) -> Self {
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let host = url.host_str().unwrap_or_default();
        Self::GitUrl { provider, url: format!("{}://{host}{port}{}", url.scheme(), url.path()), must }
    }

    /// Returns the pause that the cloud asks for.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NoCredentials { cause, .. } | Self::Unreachable { cause, .. } => cause.retry_after(),
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
    #[error("{message}")]
    Cluster {
        /// The message of the cluster.
        message: String,
    },
}
