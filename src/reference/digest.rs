//! Digests of image manifests.

use std::fmt;

/// A digest: `sha256:` and 64 hexadecimal digits in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(String);

impl Digest {
    /// Parses a digest.
    ///
    /// # Errors
    ///
    /// Returns an error for another algorithm, or if there are not 64 lower case digits.
    pub fn parse(text: &str) -> Result<Self, DigestError> {
        let hex = text.strip_prefix("sha256:").ok_or(DigestError::Algorithm)?;
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if hex.len() == 64 && hex.bytes().all(is_hex) {
            Ok(Self(text.to_owned()))
        } else {
            Err(DigestError::Digits)
        }
    }

    /// The digest as text, including the algorithm.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The error of a text that is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// Another algorithm, or none.
    #[error("the digest does not begin with 'sha256:'")]
    Algorithm,
    /// The wrong number of digits, or other characters.
    #[error("the digest does not have 64 lower case hexadecimal digits after 'sha256:'")]
    Digits,
}
