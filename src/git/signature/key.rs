//! A key that is unlocked and signs.

use std::fmt;
use std::sync::Arc;

use super::{SigningError, openpgp, ssh};
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
