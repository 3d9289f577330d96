//! A key that is unlocked and signs.

use std::fmt;
use std::sync::Arc;

use super::{openpgp, ssh};
use crate::git::CommitTime;

/// A key that is unlocked and signs; copies share the one in memory, which is wiped with the last of them.
#[derive(Clone)]
pub struct SigningKey {
    part: Arc<Part>,
}

enum Part {
    OpenPgp(openpgp::UnlockedPart),
    Ssh(ssh::UnlockedKey),
}

/// Why a key that is unlocked does not sign all the same.
#[derive(Debug, thiserror::Error)]
pub enum SigningError {
    /// OpenPGP counts seconds since 1970 in 32 bits.
    #[error("a signature cannot be made at the time of the commit, {seconds} seconds after 1970")]
    Time {
        /// The time.
        seconds: i64,
    },
    /// The OpenPGP key fails.
    #[error("the OpenPGP key cannot sign")]
    OpenPgp(#[source] Box<pgp::errors::Error>),
    /// The SSH key fails.
    #[error("the SSH key cannot sign")]
    Ssh(#[from] ssh_key::Error),
}

impl SigningKey {
    pub(super) fn of_openpgp(part: openpgp::UnlockedPart) -> Self {
        Self { part: Arc::new(Part::OpenPgp(part)) }
    }

    pub(super) fn of_ssh(key: ssh::UnlockedKey) -> Self {
        Self { part: Arc::new(Part::Ssh(key)) }
    }

    /// Whether the key was there at a time: nobody believes what it signs before it was made.
    pub fn existed_at(&self, time: CommitTime) -> bool {
        match &*self.part {
            Part::OpenPgp(part) => part.made() <= time.seconds,
            Part::Ssh(_) => true,
        }
    }

    /// Signs a commit as it is without a signature; gives the armored signature, whose lines end with `\n`.
    ///
    /// The same key, commit and time always give the same signature.
    ///
    /// # Errors
    ///
    /// When the time is none of OpenPGP's, or the mathematics of a malformed key fails.
    pub fn sign(&self, commit: &[u8], time: CommitTime) -> Result<String, SigningError> {
        match &*self.part {
            Part::OpenPgp(part) => part.sign(commit, time.seconds),
            Part::Ssh(key) => key.sign(commit),
        }
    }
}

/// Prints whose key it is and nothing secret.
impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.part {
            Part::OpenPgp(part) => write!(formatter, "SigningKey(OpenPGP {})", part.id()),
            Part::Ssh(key) => write!(formatter, "SigningKey(SSH {})", key.fingerprint()),
        }
    }
}
