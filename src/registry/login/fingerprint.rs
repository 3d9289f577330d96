//! Telling secrets apart without keeping them.

use sha2::{Digest as _, Sha256};

/// A number that two equal secrets have and two different ones have not; it tells nothing of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

/// Prints no more than that there is one.
impl std::fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Fingerprint(…)")
    }
}

impl Fingerprint {
    /// The fingerprint of several parts in this order.
    pub fn of<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    /// Its bytes, to be part of another one.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
