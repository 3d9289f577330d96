//! Any text as a signing key.
//!
//! The first byte chooses the key format, and whether there is a passphrase. The result is an error message, or a key
//! whose signatures are armored.

use std::collections::BTreeMap;

use tagboat::git::{CommitTime, SigningKeyKind, unlock_signing_key};
use tagboat::secrets::{Secret, SecretData};

const TIME: CommitTime = CommitTime { seconds: 2_000_000_000, offset: 0 };

/// Parses any text as a signing key.
///
/// The first byte chooses the key format, and whether there is a passphrase. The result is an error message, or a key
/// whose signatures are armored.
pub fn signing_key(input: &[u8]) {
    let Some((choice, text)) = input.split_first() else { return };
    let (kind, key, passphrase) = match choice & 1 {
        0 => (SigningKeyKind::OpenPgp, "git.asc", "passphrase"),
        _ => (SigningKeyKind::Ssh, "identity", "password"),
    };
    let mut data = BTreeMap::from([(key.to_owned(), Secret::new(text))]);
    if choice & 2 != 0 {
        data.insert(passphrase.to_owned(), Secret::new("hunter2\n"));
    }
    match unlock_signing_key(kind, SecretData { name: "n/key", data: &data }, TIME) {
        Ok(key) => assert!(key.sign(text, TIME).is_ok_and(|signature| signature.starts_with("-----BEGIN "))),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
