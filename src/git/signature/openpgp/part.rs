//! The part of a key that signs, unlocked.

use pgp::composed::{ArmorOptions, DetachedSignature, SignedSecretKey};
use pgp::packet::{SecretKey, SecretSubkey, SignatureConfig, SignatureType, Subpacket, SubpacketData};
use pgp::types::{KeyDetails, Password, S2kParams, SecretParams, SigningKey, StringToKey, Timestamp};

use super::super::passphrase::{Attempt, Passphrase};
use super::super::{OpenPgpFlaw, SigningError, SigningKeyError};
use super::choice::Choice;

/// The key of the secret that holds the passphrase of an OpenPGP key.
pub(in super::super) const PASSPHRASE: &str = "passphrase";

/// The most memory that Argon2 may take: two to this power, in KiB. What programs choose by default.
const MOST_MEMORY: u8 = 16;

/// The most passes of Argon2; programs choose three by default.
const MOST_PASSES: u8 = 10;

/// A part of a key, unlocked.
pub(in super::super) enum UnlockedPart {
    Primary(Box<SecretKey>),
    Subkey(Box<SecretSubkey>),
}

/// The memory, in bytes, that the lock of a part takes; nothing for a lock that is refused.
pub(super) fn bytes_of_lock(key: &SignedSecretKey, choice: Choice) -> u64 {
    let argon2 = UnlockedPart::locked(key, choice).argon2().filter(|(m_enc, _)| *m_enc <= MOST_MEMORY);
    argon2.map_or(0, |(m_enc, _)| 1024 << m_enc)
}

/// Why a part could not be unlocked.
pub(super) enum Obstacle {
    /// There is no passphrase.
    NoPassphrase,
    /// The passphrase is not that of the part with this id.
    WrongPassphrase(String),
    Flaw(OpenPgpFlaw),
}

impl Obstacle {
    /// The same as an error of the secret that the key is in.
    pub(super) fn in_secret(self, secret: String) -> SigningKeyError {
        match self {
            Self::NoPassphrase => SigningKeyError::PassphraseMissing { secret, key: PASSPHRASE },
            Self::WrongPassphrase(id) => SigningKeyError::WrongPassphrase { secret, id },
            Self::Flaw(flaw) => SigningKeyError::OpenPgp { secret, flaw },
        }
    }
}

impl UnlockedPart {
    /// Unlocks a part. A passphrase that is not needed does not matter.
    pub(super) fn of(
        key: &SignedSecretKey,
        choice: Choice,
        passphrase: &Passphrase<'_>,
    ) -> Result<Self, Obstacle> {
        let part = Self::locked(key, choice);
        let part = match part.is_locked() {
            false => part,
            true if !passphrase.is_given() => return Err(Obstacle::NoPassphrase),
            true => {
                part.require_light_lock()?;
                let unlocked = passphrase
                    .try_each(|bytes| part.unlocked(&Password::from(bytes)).ok_or(Attempt::WrongPassphrase));
                unlocked.map_err(|_: Attempt| Obstacle::WrongPassphrase(part.id()))?
            }
        };
        part.require_sound()?;
        Ok(part)
    }

    /// A part as it stands in its key.
    fn locked(key: &SignedSecretKey, choice: Choice) -> Self {
        match choice {
            Choice::Primary => Self::Primary(Box::new(key.primary_key.clone())),
            Choice::Subkey(index) => Self::Subkey(Box::new(key.secret_subkeys[index].key.clone())),
        }
    }

    fn secret(&self) -> &SecretParams {
        match self {
            Self::Primary(key) => key.secret_params(),
            Self::Subkey(key) => key.secret_params(),
        }
    }

    fn is_locked(&self) -> bool {
        matches!(self.secret(), SecretParams::Encrypted(_))
    }

    /// The memory and the passes of a lock by Argon2: two to the first number in KiB, and the second.
    fn argon2(&self) -> Option<(u8, u8)> {
        let SecretParams::Encrypted(locked) = self.secret() else { return None };
        let (S2kParams::Aead { s2k, .. } | S2kParams::Cfb { s2k, .. } | S2kParams::MalleableCfb { s2k, .. }) =
            locked.string_to_key_params()
        else {
            return None;
        };
        match *s2k {
            StringToKey::Argon2 { t: passes, m_enc, .. } => Some((m_enc, passes)),
            _ => None,
        }
    }

    /// Refuses a lock whose maker chose how much memory it takes, and chose too much.
    fn require_light_lock(&self) -> Result<(), Obstacle> {
        let Some((m_enc, passes)) = self.argon2() else { return Ok(()) };
        if m_enc <= MOST_MEMORY && passes <= MOST_PASSES {
            return Ok(());
        }
        let mebibytes = |exponent: u8| 1_u64.checked_shl(exponent.into()).unwrap_or(u64::MAX) >> 10;
        Err(Obstacle::Flaw(OpenPgpFlaw::Argon2 {
            memory: mebibytes(m_enc),
            passes,
            most_memory: mebibytes(MOST_MEMORY),
            most_passes: MOST_PASSES,
        }))
    }

    fn unlocked(&self, password: &Password) -> Option<Self> {
        match self {
            Self::Primary(key) => {
                let mut key = key.clone();
                key.remove_password(password).ok()?;
                Some(Self::Primary(key))
            }
            Self::Subkey(key) => {
                let mut key = key.clone();
                key.remove_password(password).ok()?;
                Some(Self::Subkey(key))
            }
        }
    }

    /// Finds out whether the two halves belong together, before anybody edits a file.
    fn require_sound(&self) -> Result<(), Obstacle> {
        let probe = b"probe".as_slice();
        let signature =
            self.signature(probe, self.created_at()).map_err(|_| Obstacle::Flaw(OpenPgpFlaw::Damaged))?;
        let verified = match self {
            Self::Primary(key) => signature.verify(key.public_key(), probe),
            Self::Subkey(key) => signature.verify(key.public_key(), probe),
        };
        verified.map_err(|_| Obstacle::Flaw(OpenPgpFlaw::Damaged))
    }

    /// When the part was made, in seconds after 1970.
    pub(in super::super) fn made(&self) -> i64 {
        self.created_at().as_secs().into()
    }

    fn created_at(&self) -> Timestamp {
        match self {
            Self::Primary(key) => key.created_at(),
            Self::Subkey(key) => key.created_at(),
        }
    }

    /// Makes a detached signature of a time, armored.
    pub(in super::super) fn sign(&self, text: &[u8], seconds: i64) -> Result<String, SigningError> {
        let time = u32::try_from(seconds).map_err(|_| SigningError::Time { seconds })?;
        let signature = self.signature(text, Timestamp::from_secs(time));
        let armored = signature.and_then(|signature| signature.to_armored_string(ArmorOptions::default()));
        armored.map_err(|error| SigningError::OpenPgp(Box::new(error)))
    }

    fn signature(&self, text: &[u8], time: Timestamp) -> pgp::errors::Result<DetachedSignature> {
        match self {
            Self::Primary(key) => signature(key.as_ref(), text, time),
            Self::Subkey(key) => signature(key.as_ref(), text, time),
        }
    }

    /// The short name of the part.
    pub(in super::super) fn id(&self) -> String {
        let id = match self {
            Self::Primary(key) => key.legacy_key_id(),
            Self::Subkey(key) => key.legacy_key_id(),
        };
        id.to_string().to_uppercase()
    }
}

/// Makes a signature; it tells its time and who made it, as those of gpg do.
fn signature(key: &impl SigningKey, text: &[u8], time: Timestamp) -> pgp::errors::Result<DetachedSignature> {
    let mut config = SignatureConfig::v4(SignatureType::Binary, key.algorithm(), key.hash_alg());
    config.hashed_subpackets = vec![
        Subpacket::regular(SubpacketData::IssuerFingerprint(key.fingerprint()))?,
        Subpacket::regular(SubpacketData::SignatureCreationTime(time))?,
    ];
    config.unhashed_subpackets = vec![Subpacket::regular(SubpacketData::IssuerKeyId(key.legacy_key_id()))?];
    // A part that is unlocked has no passphrase any more.
    config.sign(key, &Password::empty(), text).map(DetachedSignature::new)
}
