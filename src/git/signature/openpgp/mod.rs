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
pub(super) use part::{PASSPHRASE, UnlockedPart};

use super::passphrase::Passphrase;
use super::{SigningKey, SigningKeyError};
use crate::secrets::SecretData;
use choice::Choice;
use facts::KeyFacts;

/// The key of a secret that holds an OpenPGP key.
const KEY: &str = "git.asc";

/// A key, and those of its parts that were needed so far: unlocked, or why they cannot be.
pub(super) struct Keys {
    key: SignedSecretKey,
    facts: KeyFacts,
    unlocked: HashMap<Choice, Result<SigningKey, SigningKeyError>>,
    /// `NAME` of the secret, for messages.
    secret: String,
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
        Ok(Self { key, facts, unlocked: HashMap::new(), secret: name.to_owned() })
    }

    /// The part that signs at a time, in seconds after 1970.
    pub(super) fn choose(&self, seconds: i64) -> Result<Choice, SigningKeyError> {
        let choice = self.facts.choose(seconds);
        choice.map_err(|cause| SigningKeyError::Unusable { secret: self.secret.clone(), cause })
    }

    /// A part that was unlocked before, or why it could not be.
    pub(super) fn unlocked(&self, choice: Choice) -> Option<&Result<SigningKey, SigningKeyError>> {
        self.unlocked.get(&choice)
    }

    /// The memory, in bytes, that unlocking a part takes beyond a few MiB.
    pub(super) fn bytes_of_lock(&self, choice: Choice) -> u64 {
        part::bytes_of_lock(&self.key, choice)
    }

    /// Gives a part, unlocked, and remembers it or why it cannot be unlocked.
    pub(super) fn unlock(
        &mut self,
        passphrase: &Passphrase<'_>,
        choice: Choice,
    ) -> Result<SigningKey, SigningKeyError> {
        let Self { key, secret, unlocked, .. } = self;
        let unlock = || {
            let part = UnlockedPart::of(key, choice, passphrase);
            part.map(SigningKey::of_openpgp).map_err(|obstacle| obstacle.in_secret(secret.clone()))
        };
        unlocked.entry(choice).or_insert_with(unlock).clone()
    }
}

/// Prints which key it is.
impl std::fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Keys({})", self.facts.primary.id)
    }
}
