//! Secrets of manifests.
//!
//! Directories of manifests contain many Secrets that are never requested: encrypted ones, templates, overlays of
//! each other. So the error of an invalid Secret is stored with it, and is reported only when the Secret is
//! requested. No message has a value in it, nor a part of one.

use std::collections::BTreeMap;

use base64::Engine;
use base64::alphabet;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::secrets::Secret;

/// Decodes base64 as Kubernetes does, which ignores trailing bits.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// The maximum length of a key, in bytes.
const MAX_KEY_LENGTH: usize = 253;

/// The error of a Secret whose values cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// SOPS has encrypted the values.
    #[error("it is encrypted with SOPS, which tagboat does not read; give it decrypted")]
    Encrypted,
    /// `data` or `stringData` is not a mapping.
    #[error("{field} must be a mapping")]
    NotAMapping {
        /// `data` or `stringData`.
        field: &'static str,
    },
    /// A key that is invalid in a Secret.
    #[error("{key:?} is not a valid key of a Secret: 1 to 253 letters, digits, '-', '_' and '.' are allowed")]
    Key {
        /// The key.
        key: String,
    },
    /// A value that is a number, a list or the like.
    #[error("the value of {field}.{key} is not a string; put it in quotes")]
    NotText {
        /// `data` or `stringData`.
        field: &'static str,
        /// The key of the value.
        key: String,
    },
    /// A value of `data` that is not valid base64.
    #[error("the value of data.{key} is not base64; plain text belongs in stringData")]
    NotBase64 {
        /// The key of the value.
        key: String,
    },
}

/// Takes the values out of a Secret; `stringData` has precedence over `data`.
pub(super) fn values(mut secret: Value) -> Result<BTreeMap<String, Secret>, SecretError> {
    if secret.get("sops").is_some() {
        return Err(SecretError::Encrypted);
    }
    let mut values = BTreeMap::new();
    for (key, text) in texts(&mut secret, "data")? {
        let value = decode(&text).ok_or_else(|| SecretError::NotBase64 { key: key.clone() })?;
        values.insert(key, value);
    }
    for (key, text) in texts(&mut secret, "stringData")? {
        values.insert(key, Secret::new(text.as_bytes()));
    }
    Ok(values)
}

/// Returns the entries of one of the two mappings.
///
/// A null counts as an empty string, as in Kubernetes.
fn texts(secret: &mut Value, field: &'static str) -> Result<Vec<(String, Zeroizing<String>)>, SecretError> {
    let entries = match secret.get_mut(field).map(Value::take) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(entries)) => entries,
        Some(_) => return Err(SecretError::NotAMapping { field }),
    };
    let text = |(key, value): (String, Value)| {
        if !is_key(&key) {
            return Err(SecretError::Key { key });
        }
        match value {
            Value::Null => Ok((key, Zeroizing::default())),
            Value::String(text) => Ok((key, Zeroizing::new(text))),
            _ => Err(SecretError::NotText { field, key }),
        }
    };
    entries.into_iter().map(text).collect()
}

fn decode(text: &str) -> Option<Secret> {
    // Long values may have line breaks, which `base64` adds.
    let line: Zeroizing<Vec<u8>> =
        Zeroizing::new(text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect());
    // The error is dropped because it would show a byte of the value.
    BASE64.decode(&line).ok().map(Secret::new)
}

fn is_key(key: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=MAX_KEY_LENGTH).contains(&key.len())
        && key.bytes().all(is_allowed)
        && key != "."
        && !key.starts_with("..")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_decoded_and_plain_ones_win() {
        let values = values(json!({
            "kind": "Secret",
            "immutable": true,
            "type": "Opaque",
            "data": {"user": "Z2l0", "password": "aHVu\ndGVy\nMg==\n", "both": "b2xk", "none": null, "bits": "Zh=="},
            "stringData": {"both": "new", "known_hosts": "a b\n"},
        }))
        .unwrap();
        let exposed: Vec<(&str, &[u8])> =
            values.iter().map(|(key, value)| (key.as_str(), value.expose())).collect();
        let expected: [(&str, &[u8]); 6] = [
            ("bits", b"f"),
            ("both", b"new"),
            ("known_hosts", b"a b\n"),
            ("none", b""),
            ("password", b"hunter2"),
            ("user", b"git"),
        ];
        assert_eq!(exposed, expected);
        assert!(!format!("{values:?}").contains("hunter2"));
    }

    #[test]
    fn errors_of_secrets_do_not_show_the_value() {
        let key = || "password".to_owned();
        for (secret, error) in [
            (json!({"data": {"password": "hunter2"}}), SecretError::NotBase64 { key: key() }),
            (json!({"data": {"password": "aHVudGVyMg"}}), SecretError::NotBase64 { key: key() }),
            (json!({"data": {"password": ["hunter2"]}}), SecretError::NotText { field: "data", key: key() }),
            (
                json!({"stringData": {"password": 2}}),
                SecretError::NotText { field: "stringData", key: key() },
            ),
            (json!({"stringData": "hunter2"}), SecretError::NotAMapping { field: "stringData" }),
            (json!({"data": {"": "aA=="}}), SecretError::Key { key: String::new() }),
            (json!({"data": {"a b": "aA=="}}), SecretError::Key { key: "a b".to_owned() }),
            (json!({"data": {"..x": "aA=="}}), SecretError::Key { key: "..x".to_owned() }),
            (json!({"data": {"password": "ENC[x]"}, "sops": {"mac": "x"}}), SecretError::Encrypted),
        ] {
            let found = values(secret.clone()).unwrap_err();
            assert_eq!(found, error, "{secret}");
            assert!(!format!("{found} {found:?}").contains("hunter2"));
        }
    }
}
