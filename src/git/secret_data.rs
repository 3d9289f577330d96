//! The keys of a secret, read one by one.

use std::collections::BTreeMap;

use super::CredentialsError;
use crate::secret::Secret;

/// A secret's name and data.
#[derive(Debug, Clone, Copy)]
pub struct SecretData<'a> {
    /// The name for messages: `NAMESPACE/NAME`.
    pub name: &'a str,
    /// The data, decoded.
    pub data: &'a BTreeMap<String, Secret>,
}

impl SecretData<'_> {
    /// A value that is there and not empty.
    pub(super) fn value(&self, key: &str) -> Option<&Secret> {
        self.data.get(key).filter(|value| !value.expose().is_empty())
    }

    /// A value of one line, less the line break that a text file brings along.
    pub(super) fn line(&self, key: &'static str) -> Result<Option<Secret>, CredentialsError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let bytes = value.expose();
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if bytes.iter().any(|byte| b"\r\n".contains(byte)) {
            return Err(self.malformed(key, "has a line break inside: give it on one line"));
        }
        if bytes.iter().any(u8::is_ascii_control) {
            return Err(self.malformed(key, "has a control character: take it out"));
        }
        Ok((!bytes.is_empty()).then(|| Secret::new(bytes)))
    }

    pub(super) fn malformed(&self, key: &'static str, flaw: &'static str) -> CredentialsError {
        CredentialsError::Malformed { secret: self.name.to_owned(), key, flaw }
    }
}
