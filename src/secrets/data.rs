//! The data of a Secret, read key by key.

use std::collections::BTreeMap;

use super::secret::Secret;

/// The maximum length, in bytes, of a login, passphrase or private key.
/// It is searched for, in several forms and line by line, in all output of git.
const MAX_VALUE: usize = 64 * 1024;

/// The maximum number of keys that a message names.
const MAX_NAMED_KEYS: usize = 8;

/// A secret's name and data.
#[derive(Debug, Clone, Copy)]
pub struct SecretData<'a> {
    /// The name for messages: `NAMESPACE/NAME`.
    pub name: &'a str,
    /// The data, decoded.
    pub data: &'a BTreeMap<String, Secret>,
}

/// The memory in bytes that an entry takes besides its key and value.
const ENTRY_OVERHEAD: usize = 128;

/// Returns the memory in bytes that a secret's data takes.
pub fn data_size(data: &BTreeMap<String, Secret>) -> usize {
    data.iter().map(|(key, value)| ENTRY_OVERHEAD + key.len() + value.expose().len()).sum()
}

impl<'a> SecretData<'a> {
    /// Returns the name without the namespace.
    pub fn bare_name(&self) -> &'a str {
        self.name.rsplit('/').next().unwrap_or_default()
    }

    /// Returns a value that exists and is not empty.
    pub fn value(&self, key: &str) -> Option<&'a Secret> {
        self.data.get(key).filter(|value| !value.expose().is_empty())
    }

    /// Returns a value that exists and is not empty, of limited length.
    pub fn bounded_value(&self, key: &'static str) -> Result<Option<&'a Secret>, SecretDataError> {
        match self.value(key) {
            Some(value) if value.expose().len() > MAX_VALUE => {
                Err(self.malformed(key, "is longer than 64 KiB: correct it"))
            }
            value => Ok(value),
        }
    }

    /// Returns a value of one line, without the line break at its end.
    pub fn line(&self, key: &'static str) -> Result<Option<Secret>, SecretDataError> {
        let Some(value) = self.bounded_value(key)? else { return Ok(None) };
        let bytes = value.expose();
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if bytes.iter().any(|byte| b"\r\n".contains(byte)) {
            return Err(self.malformed(key, "has a line break inside: give it on one line"));
        }
        if bytes.iter().any(u8::is_ascii_control) {
            return Err(self.malformed(key, "has a control character: remove it"));
        }
        Ok((!bytes.is_empty()).then(|| Secret::new(bytes)))
    }

    /// Returns the names of the first few keys, for messages.
    /// A directory given by mistake may have very many.
    pub fn keys(&self) -> String {
        let empty = |value: &Secret| if value.expose().is_empty() { " (empty)" } else { "" };
        let named = |(key, value): (&String, &Secret)| format!("{}{}", key.escape_debug(), empty(value));
        let mut names: Vec<String> = self.data.iter().take(MAX_NAMED_KEYS).map(named).collect();
        match self.data.len() {
            0 => return "no keys".to_owned(),
            number if number > MAX_NAMED_KEYS => names.push(format!("{} more", number - MAX_NAMED_KEYS)),
            _ => {}
        }
        names.join(", ")
    }

    /// Returns the error of a value with a defect, which names its remedy.
    pub fn malformed(&self, key: &'static str, defect: &'static str) -> SecretDataError {
        SecretDataError::Malformed { secret: self.name.to_owned(), key, defect }
    }
}

/// The error of a secret's data. No message holds a value of the secret.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SecretDataError {
    /// A required key is missing, in Flux's words.
    #[error("secret '{secret}': key '{key}' not found")]
    KeyMissing {
        /// The secret.
        secret: String,
        /// The key.
        key: &'static str,
    },
    /// A value that cannot be used.
    #[error("secret '{secret}': key '{key}' {defect}")]
    Malformed {
        /// The secret.
        secret: String,
        /// The key.
        key: &'static str,
        /// The defect of the value, and its remedy.
        defect: &'static str,
    },
    /// A proxy's address that cannot be used.
    #[error("secret '{secret}': {defect}")]
    ProxyAddress {
        /// The secret.
        secret: String,
        /// The defect of the address.
        defect: String,
    },
}
