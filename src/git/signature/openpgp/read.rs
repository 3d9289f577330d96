//! Reads the OpenPGP key of a secret.

use std::collections::BTreeSet;

use pgp::composed::{PublicOrSecret, SignedSecretKey};
use pgp::types::{KeyDetails, KeyVersion};

use super::super::armor;
use super::super::{OpenPgpKeyDefect, SigningKeyError};
use super::packets;

/// Reads the only key in a text or in its decoded bytes.
/// A public key beside its own secret one is ignored.
pub(super) fn read(text: &[u8], secret: &str) -> Result<SignedSecretKey, SigningKeyError> {
    let keys = keys(text).map_err(|defect| SigningKeyError::OpenPgp { secret: secret.to_owned(), defect })?;
    let names = keys.iter().map(|key| match key {
        PublicOrSecret::Secret(key) => key.fingerprint().to_string(),
        PublicOrSecret::Public(key) => key.fingerprint().to_string(),
    });
    if names.collect::<BTreeSet<String>>().len() > 1 {
        return Err(SigningKeyError::Several { secret: secret.to_owned() });
    }
    let mut defect = OpenPgpKeyDefect::Damaged;
    for key in keys {
        match key {
            PublicOrSecret::Secret(key) => match key.version() {
                KeyVersion::V4 => return Ok(key),
                other => defect = OpenPgpKeyDefect::Version { version: other.into() },
            },
            PublicOrSecret::Public(_) => defect = OpenPgpKeyDefect::Public,
        }
    }
    Err(SigningKeyError::OpenPgp { secret: secret.to_owned(), defect })
}

/// Reads all keys, secret and public.
fn keys(text: &[u8]) -> Result<Vec<PublicOrSecret>, OpenPgpKeyDefect> {
    if text.first().is_some_and(|&byte| byte >= 0x80) {
        return parse(text);
    }
    let blocks = armor::blocks(text);
    let mut keys = Vec::new();
    for block in &blocks {
        if let "PGP PRIVATE KEY BLOCK" | "PGP PUBLIC KEY BLOCK" = block.label {
            keys.extend(parse(block.data.as_ref().ok_or(OpenPgpKeyDefect::Damaged)?)?);
        }
    }
    if !keys.is_empty() {
        return Ok(keys);
    }
    let is_for_ssh = blocks.iter().any(|block| block.label.ends_with("PRIVATE KEY"));
    Err(match () {
        () if is_for_ssh => OpenPgpKeyDefect::ForSsh,
        () if text.trim_ascii().is_empty() => OpenPgpKeyDefect::Empty,
        () => OpenPgpKeyDefect::NoKey,
    })
}

fn parse(bytes: &[u8]) -> Result<Vec<PublicOrSecret>, OpenPgpKeyDefect> {
    let bytes = packets::normalize(bytes);
    // The errors are dropped: some show parts of the malformed input.
    let found = PublicOrSecret::from_bytes_many(bytes.as_slice()).map_err(|_| OpenPgpKeyDefect::Damaged)?;
    let mut keys = Vec::new();
    for key in found {
        keys.push(key.map_err(|_| OpenPgpKeyDefect::Damaged)?);
    }
    if keys.is_empty() { Err(OpenPgpKeyDefect::Damaged) } else { Ok(keys) }
}
