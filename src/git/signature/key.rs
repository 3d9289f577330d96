//! An unlocked signing key.

use std::fmt;
use std::sync::Arc;

use super::{SigningError, openpgp, ssh};
use crate::git::CommitTime;

/// An unlocked signing key.
/// Copies share it in memory; it is wiped with the last of them.
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

    /// Returns true if the key existed at a time.
    /// Signatures from before its creation are not accepted.
    pub fn existed_at(&self, time: CommitTime) -> bool {
        match &*self.part {
            Part::OpenPgp(part) => part.created() <= time.seconds,
            Part::Ssh(_) => true,
        }
    }

    /// Signs the text of an unsigned commit.
    /// The result is an armored signature, whose lines end with `\n`.
    ///
    /// The same key, commit and time always give the same signature.
    ///
    /// # Errors
    ///
    /// If OpenPGP cannot express the time, or the numbers of a malformed key do not work.
    pub fn sign(&self, commit: &[u8], time: CommitTime) -> Result<String, SigningError> {
        match &*self.part {
            Part::OpenPgp(part) => part.sign(commit, time.seconds),
            Part::Ssh(key) => key.sign(commit),
        }
    }
}

/// Prints the key's id and nothing secret.
impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.part {
            Part::OpenPgp(part) => write!(formatter, "SigningKey(OpenPGP {})", part.id()),
            Part::Ssh(key) => write!(formatter, "SigningKey(SSH {})", key.fingerprint()),
        }
    }
}
