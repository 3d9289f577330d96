//! OpenPGP keys: reading, choice of the signing part, unlocking, and signing as gpg does.
//!
//! [`packets`] and [`read`] read a key from the value of a secret, [`properties`] keeps the properties in the key's own
//! signatures, [`choice`] chooses the part that signs at a time, [`part`] is that part, unlocked.

mod choice;
mod packets;
mod part;
mod properties;
mod read;

use std::collections::HashMap;

use pgp::composed::SignedSecretKey;

pub use choice::{DefectivePart, NoSigningPart, PartDefect};
pub(super) use part::{PASSPHRASE, UnlockedPart};

use super::passphrase::Passphrase;
use super::{SigningKey, SigningKeyError};
use crate::secrets::SecretData;
use choice::Choice;
use properties::KeyProperties;

/// The key of a secret that holds an OpenPGP key.
const KEY: &str = "git.asc";

/// A key with the parts that were needed so far: unlocked, or with the error.
pub(super) struct OpenPgpKey {
    key: SignedSecretKey,
    properties: KeyProperties,
    unlocked: HashMap<Choice, Result<SigningKey, SigningKeyError>>,
    /// `NAME` of the secret, for messages.
    secret: String,
}

impl OpenPgpKey {
    /// Reads the key of a secret.
    pub(super) fn read(secret: SecretData<'_>) -> Result<Self, SigningKeyError> {
        let name = secret.bare_name();
        let Some(text) = secret.value(KEY) else {
            let advice = match secret.value("identity") {
                Some(_) => "; its 'identity' is for spec.git.commit.signingKey.type ssh",
                None if secret.data.contains_key(KEY) => "; its 'git.asc' is empty",
                None => "",
            };
            return Err(SigningKeyError::KeyMissing { secret: name.to_owned(), key: KEY, advice });
        };
        let key = read::read(text.expose(), name)?;
        let properties = KeyProperties::of(&key);
        Ok(Self { key, properties, unlocked: HashMap::new(), secret: name.to_owned() })
    }

    /// Returns the part that signs at a time, in seconds after 1970.
    pub(super) fn choose(&self, seconds: i64) -> Result<Choice, SigningKeyError> {
        let choice = self.properties.choose(seconds);
        choice.map_err(|cause| SigningKeyError::NoSigningPart { secret: self.secret.clone(), cause })
    }

    /// Returns the part that was unlocked before, or its error.
    pub(super) fn unlocked(&self, choice: Choice) -> Option<&Result<SigningKey, SigningKeyError>> {
        self.unlocked.get(&choice)
    }

    /// Returns the memory, in bytes, that unlocking a part takes beyond a few MiB.
    pub(super) fn key_derivation_memory(&self, choice: Choice) -> u64 {
        part::key_derivation_memory(&self.key, choice)
    }

    /// Returns an unlocked part, and caches it or its error.
    pub(super) fn unlock(
        &mut self,
        passphrase: &Passphrase<'_>,
        choice: Choice,
    ) -> Result<SigningKey, SigningKeyError> {
        let Self { key, secret, unlocked, .. } = self;
        let unlock = || {
            let part = UnlockedPart::of(key, choice, passphrase);
            part.map(SigningKey::of_openpgp).map_err(|error| error.in_secret(secret.clone()))
        };
        unlocked.entry(choice).or_insert_with(unlock).clone()
    }
}

/// Prints the key's id.
impl std::fmt::Debug for OpenPgpKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "OpenPgpKey({})", self.properties.primary.id)
    }
}
