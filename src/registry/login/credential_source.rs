//! The source of credentials for a registry.

use std::fmt;

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use jiff::Timestamp;

use super::credential::Credential;
use super::error::LoginError;
use crate::reference::RepositoryAddress;

/// A source of credentials for a registry.
pub trait Login: fmt::Debug + Send + Sync {
    /// Returns the credential for the registry of an address, or its token server, that is valid at this time.
    ///
    /// # Errors
    ///
    /// The source gives no credential.
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
