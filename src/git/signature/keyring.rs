//! The keys that were unlocked so far.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

use super::passphrase::Passphrase;
use super::{SigningKey, SigningKeyError, openpgp, ssh};
use crate::git::{CommitTime, SecretData};

/// The sorts of keys that sign commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SigningKeyKind {
    /// An OpenPGP key.
    OpenPgp,
    /// An SSH key.
    Ssh,
}

/// Remembers the unlocked keys of secrets, so that a passphrase is stretched once and not in every run.
///
/// It stands by what it knows only while the data of a secret stays the same. Clones are the same keyring. Nothing of it
/// is ever written anywhere.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    slots: Arc<Mutex<HashMap<String, Slots>>>,
}

/// What is known of one secret, by the sort of its key.
type Slots = HashMap<SigningKeyKind, Arc<Mutex<Option<Remembered>>>>;

/// What was read from a secret.
#[derive(Debug)]
struct Remembered {
    /// A hash of all the secret's data at that time.
    digest: [u8; 32],
    keys: Keys,
}

#[derive(Debug)]
enum Keys {
    OpenPgp(Box<openpgp::Keys>),
    Ssh(SigningKey),
}

impl Keyring {
    /// Gives the key of a secret that signs at `time`, unlocked; unlocks it if nobody did so before.
    ///
    /// What can change with time, such as whether the key has expired, is looked at in each call.
    ///
    /// # Errors
    ///
    /// When the secret has no key of this kind, or none that can be unlocked and may sign.
    pub fn unlock(
        &self,
        kind: SigningKeyKind,
        secret: SecretData<'_>,
        time: CommitTime,
    ) -> Result<SigningKey, SigningKeyError> {
        let slot =
            Arc::clone(lock(&self.slots).entry(secret.name.to_owned()).or_default().entry(kind).or_default());
        // Others that want this key wait for it; those that want another do not.
        let mut slot = lock(&slot);
        let digest = digest(secret);
        let fresh = match slot.take().filter(|remembered| remembered.digest == digest) {
            Some(remembered) => remembered,
            None => Remembered { digest, keys: Keys::read(kind, secret)? },
        };
        let remembered = slot.insert(fresh);
        match &mut remembered.keys {
            Keys::OpenPgp(keys) => {
                keys.unlock(secret, &Passphrase::of(secret, openpgp::PASSPHRASE), time.seconds)
            }
            Keys::Ssh(key) => Ok(key.clone()),
        }
    }

    /// Forgets the keys of a secret that is no longer there.
    pub fn forget(&self, secret: &str) {
        lock(&self.slots).remove(secret);
    }
}

impl Keys {
    fn read(kind: SigningKeyKind, secret: SecretData<'_>) -> Result<Self, SigningKeyError> {
        match kind {
            SigningKeyKind::OpenPgp => Ok(Self::OpenPgp(Box::new(openpgp::Keys::read(secret)?))),
            SigningKeyKind::Ssh => {
                let key = ssh::unlock(secret, &Passphrase::of(secret, ssh::PASSPHRASE))?;
                Ok(Self::Ssh(SigningKey::of_ssh(key)))
            }
        }
    }
}

/// What a thread left that panicked is as good as before: entries are only replaced as a whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A hash of all keys and values, each with its length, so that no two secrets run into one.
fn digest(secret: SecretData<'_>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for (key, value) in secret.data {
        for bytes in [key.as_bytes(), value.expose()] {
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        }
    }
    hash.finalize().into()
}
