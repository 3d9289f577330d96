//! OpenPGP keys: read, the part chosen that signs, unlocked, and signing as gpg does.
//!
//! [`packets`] and [`read`] make a key of what a secret holds, [`facts`] keeps what the key's own signatures say of it,
//! [`choice`] says which part signs at a time, [`part`] is that part, unlocked.

mod choice;
mod facts;
mod packets;
mod part;
mod read;

use std::collections::HashMap;

use pgp::composed::SignedSecretKey;

pub use choice::{Fault, FaultyPart, Unusable};
pub(super) use part::UnlockedPart;

use super::passphrase::Passphrase;
use super::{SigningKey, SigningKeyError};
use crate::git::SecretData;
use choice::Choice;
use facts::KeyFacts;

/// The key of a secret that holds an OpenPGP key.
const KEY: &str = "git.asc";

/// The key of a secret that holds its passphrase.
pub(super) const PASSPHRASE: &str = "passphrase";

/// A key, and as many of its parts unlocked as were needed so far.
pub(super) struct Keys {
    key: SignedSecretKey,
    facts: KeyFacts,
    unlocked: HashMap<Choice, SigningKey>,
}

impl Keys {
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
        let facts = KeyFacts::of(&key);
        Ok(Self { key, facts, unlocked: HashMap::new() })
    }

    /// Gives the part that signs at a time, unlocked.
    pub(super) fn unlock(
        &mut self,
        secret: SecretData<'_>,
        passphrase: &Passphrase<'_>,
        seconds: i64,
    ) -> Result<SigningKey, SigningKeyError> {
        let name = || secret.bare_name().to_owned();
        let choice = self.facts.choose(seconds);
        let choice = choice.map_err(|cause| SigningKeyError::Unusable { secret: name(), cause })?;
        if let Some(key) = self.unlocked.get(&choice) {
            return Ok(key.clone());
        }
        let part =
            UnlockedPart::of(&self.key, choice, passphrase).map_err(|obstacle| obstacle.in_secret(name()))?;
        let key = SigningKey::of_openpgp(part);
        self.unlocked.insert(choice, key.clone());
        Ok(key)
    }
}

/// Prints which key it is.
impl std::fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Keys({})", self.facts.primary.id)
    }
}
