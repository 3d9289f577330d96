//! The type of passwords, tokens and private keys.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use zeroize::Zeroizing;

/// Secret bytes, which print as dots.
/// Clones share them, and they are wiped from memory with the last one.
#[derive(Clone)]
pub struct Secret(Arc<Zeroizing<Vec<u8>>>);

impl Secret {
    /// Creates a secret.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Arc::new(Zeroizing::new(bytes.into())))
    }

    /// Returns the bytes.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

/// Prints dots.
impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("\"••••\"")
    }
}

/// Reads a text.
impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::new(String::deserialize(deserializer)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_prints_as_dots() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "\"••••\" Some(\"••••\")");
        assert_eq!(secret.expose(), b"hunter2");
    }
}
