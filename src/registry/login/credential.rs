//! Credentials for registries, and their sources.

use std::fmt;

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use jiff::Timestamp;

use super::error::LoginError;
use crate::reference::RepositoryAddress;
use crate::secrets::{Fingerprint, Secret};

/// A credential for a registry or its token server.
#[derive(Debug, Clone, Default)]
pub enum Credential {
    /// No credential.
    #[default]
    Anonymous,
    /// User and password.
    Basic {
        /// The user.
        user: Secret,
        /// The password.
        password: Secret,
    },
    /// A token that is exchanged for others, as `docker login` stores it.
    IdentityToken(Secret),
    /// A token that the registry itself accepts.
    RegistryToken(Secret),
}

impl Credential {
    /// Returns a fingerprint that is equal for equal credentials.
    pub fn fingerprint(&self) -> Fingerprint {
        match self {
            Self::Anonymous => Fingerprint::of([&b"anonymous"[..]]),
            Self::Basic { user, password } => {
                Fingerprint::of([&b"basic"[..], user.expose(), password.expose()])
            }
            Self::IdentityToken(token) => Fingerprint::of([&b"identity"[..], token.expose()]),
            Self::RegistryToken(token) => Fingerprint::of([&b"registry"[..], token.expose()]),
        }
    }
}

/// A source of credentials for a registry.
pub trait Login: fmt::Debug + Send + Sync {
    /// Returns the credential for the registry of an address, or its token server.
    ///
    /// It is valid at the time `now`.
    ///
    /// # Errors
    ///
    /// When the source gives no credential.
    fn credential<'l>(
        &'l self,
        address: &'l RepositoryAddress,
        now: Timestamp,
    ) -> BoxFuture<'l, Result<Credential, LoginError>>;

    /// Returns `true` if the credential may only be sent over encrypted connections.
    fn needs_encryption(&self) -> bool;
}

/// A credential of a secret, or of a user's own configuration, is its own source.
impl Login for Credential {
    fn credential<'l>(
        &'l self,
        _address: &'l RepositoryAddress,
        _now: Timestamp,
    ) -> BoxFuture<'l, Result<Credential, LoginError>> {
        ready(Ok(self.clone())).boxed()
    }

    fn needs_encryption(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_tells_logins_apart() {
        let basic = |user: &str, password: &str| Credential::Basic {
            user: Secret::new(user),
            password: Secret::new(password),
        };
        let logins = [
            Credential::Anonymous,
            basic("ab", "c"),
            basic("a", "bc"),
            Credential::IdentityToken(Secret::new("x")),
            Credential::RegistryToken(Secret::new("x")),
        ];
        for (index, login) in logins.iter().enumerate() {
            let same: Vec<usize> = (0..logins.len())
                .filter(|other| logins[*other].fingerprint() == login.fingerprint())
                .collect();
            assert_eq!(same, [index]);
        }
        assert!(!format!("{:?}", basic("robot", "hunter2")).contains("hunter2"));
    }
}
