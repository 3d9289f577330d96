//! The errors of reading credentials from a secret.

use crate::secrets::SecretDataError;

/// The error of a secret without a usable login.
/// No message contains a value of the secret.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CredentialsError {
    /// A password without a user, in Flux's words.
    #[error("invalid '{scheme}' auth option: 'password' requires 'username' to be set")]
    PasswordWithoutUser {
        /// The URL's scheme.
        scheme: &'static str,
    },
    /// SSH without one of its two keys, in Flux's words.
    #[error("invalid 'ssh' auth option: '{key}' is required")]
    SshKeyMissing {
        /// The key.
        key: &'static str,
    },
    /// A secret without any key for HTTP.
    #[error(
        "secret '{secret}' has no credentials for {scheme}: it has {found}; set username and password, or bearerToken, \
         and for TLS ca.crt, or tls.crt and tls.key"
    )]
    NothingForHttp {
        /// The secret.
        secret: String,
        /// Its keys, as text.
        found: String,
        /// The URL's scheme.
        scheme: &'static str,
    },
    /// A token and a user, in the secret or the URL, in Flux's words.
    #[error("basic auth and bearer token cannot be set at the same time")]
    TwoLogins,
    /// A GitHub App's secret for another provider, in Flux's words.
    #[error(
        "secretRef '{secret}' has github app data but provider is not set to github: \
         invalid source configuration"
    )]
    UnexpectedAppData {
        /// The secret.
        secret: String,
    },
    /// Half a client certificate, in Flux's words.
    #[error("secret '{secret}' contains '{present}' but missing '{missing}'")]
    HalfACertificate {
        /// The secret.
        secret: String,
        /// The key that is there.
        present: &'static str,
        /// The key that is not.
        missing: &'static str,
    },
    /// A key of the secret that cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretDataError),
}

impl CredentialsError {
    /// Returns true if Flux puts `failed to configure authentication options: ` before this error.
    pub fn is_authentication_option(&self) -> bool {
        matches!(self, Self::PasswordWithoutUser { .. } | Self::SshKeyMissing { .. })
    }
}
