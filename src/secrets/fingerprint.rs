//! Fingerprints, which compare secrets and long texts without storing them.

use sha2::{Digest as _, Sha256};

/// A SHA-256 hash: equal for equal parts only, and revealing nothing about them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

/// Hides the hash.
impl std::fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Fingerprint(…)")
    }
}

impl Fingerprint {
    /// Returns the fingerprint of several parts in this order.
    ///
    /// The lengths count: `a`, `bc` has another fingerprint than `ab`, `c`.
    pub fn of<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            let part = part.as_ref();
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    /// Returns its first bytes as hexadecimal digits, for hashes of what is no secret.
    pub fn prefix(&self, bytes: usize) -> String {
        self.0[..bytes].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns its bytes, as a part of another fingerprint.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
