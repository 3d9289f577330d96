//! The unlocked part of a key that signs.

use pgp::composed::{ArmorOptions, DetachedSignature, SignedSecretKey};
use pgp::packet::{SecretKey, SecretSubkey, SignatureConfig, SignatureType, Subpacket, SubpacketData};
use pgp::types::{Password, S2kParams, SecretParams, SigningKey, StringToKey, Timestamp};

use super::super::passphrase::Passphrase;
use super::super::{OpenPgpKeyDefect, SigningError, SigningKeyError};
use super::choice::Choice;

/// The key of a secret for the passphrase of an OpenPGP key.
pub(in super::super) const PASSPHRASE: &str = "passphrase";

/// The maximum memory of Argon2: two to this power, in KiB.
/// It is the default of common programs.
const MAX_MEMORY_EXPONENT: u8 = 16;

/// The maximum number of passes of Argon2; the default of common programs is three.
const MAX_PASSES: u8 = 10;

/// An unlocked part of a key.
pub(in super::super) enum UnlockedPart {
    Primary(Box<SecretKey>),
    Subkey(Box<SecretSubkey>),
}

/// Returns the memory, in bytes, that the key derivation of a part takes.
/// It is zero for a part that is refused.
pub(super) fn key_derivation_memory(key: &SignedSecretKey, choice: Choice) -> u64 {
    let argon2 =
        UnlockedPart::locked(key, choice).argon2().filter(|(m_enc, _)| *m_enc <= MAX_MEMORY_EXPONENT);
    argon2.map_or(0, |(m_enc, _)| 1024 << m_enc)
}

/// The error of a part that could not be unlocked.
pub(super) enum UnlockError {
    /// There is no passphrase.
    NoPassphrase,
    /// The passphrase does not unlock the part with this id.
    WrongPassphrase(String),
    Defect(OpenPgpKeyDefect),
}

impl UnlockError {
    /// Converts it to the error of the secret that holds the key.
    pub(super) fn in_secret(self, secret: String) -> SigningKeyError {
        match self {
            Self::NoPassphrase => SigningKeyError::PassphraseMissing { secret, key: PASSPHRASE },
            Self::WrongPassphrase(id) => SigningKeyError::WrongPassphrase { secret, id },
            Self::Defect(defect) => SigningKeyError::OpenPgp { secret, defect },
        }
    }
}

impl UnlockedPart {
    /// Unlocks a part. A passphrase that is not needed is ignored.
    pub(super) fn of(
        key: &SignedSecretKey,
        choice: Choice,
        passphrase: &Passphrase<'_>,
    ) -> Result<Self, UnlockError> {
        let part = Self::locked(key, choice);
        let part = match part.is_locked() {
            false => part,
            true if !passphrase.is_present() => return Err(UnlockError::NoPassphrase),
            true => {
                part.check_key_derivation()?;
                let attempt = |bytes: &[u8]| Ok::<_, UnlockError>(part.unlocked(&Password::from(bytes)));
                passphrase.try_each(attempt)?.ok_or_else(|| UnlockError::WrongPassphrase(part.id()))?
            }
        };
        part.check_key_pair()?;
        Ok(part)
    }

    /// Returns a part as it is in its key.
    fn locked(key: &SignedSecretKey, choice: Choice) -> Self {
        match choice {
            Choice::Primary => Self::Primary(Box::new(key.primary_key.clone())),
            Choice::Subkey(index) => Self::Subkey(Box::new(key.secret_subkeys[index].key.clone())),
        }
    }

    fn key(&self) -> &dyn SigningKey {
        match self {
            Self::Primary(key) => key.as_ref(),
            Self::Subkey(key) => key.as_ref(),
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

    /// Returns the memory (a power of two in KiB) and passes of an Argon2 derivation.
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

    /// Refuses a key derivation whose memory, chosen by the key's creator, is too large.
    fn check_key_derivation(&self) -> Result<(), UnlockError> {
        let Some((m_enc, passes)) = self.argon2() else { return Ok(()) };
        if m_enc <= MAX_MEMORY_EXPONENT && passes <= MAX_PASSES {
            return Ok(());
        }
        let mebibytes = |exponent: u8| 1_u64.checked_shl(exponent.into()).unwrap_or(u64::MAX) >> 10;
        Err(UnlockError::Defect(OpenPgpKeyDefect::Argon2 {
            memory: mebibytes(m_enc),
            passes,
            max_memory: mebibytes(MAX_MEMORY_EXPONENT),
            max_passes: MAX_PASSES,
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

    /// Checks that both halves belong together, before any file is edited.
    fn check_key_pair(&self) -> Result<(), UnlockError> {
        let probe = b"probe".as_slice();
        let signature = self
            .signature(probe, self.key().created_at())
            .map_err(|_| UnlockError::Defect(OpenPgpKeyDefect::Damaged))?;
        let verified = match self {
            Self::Primary(key) => signature.verify(key.public_key(), probe),
            Self::Subkey(key) => signature.verify(key.public_key(), probe),
        };
        verified.map_err(|_| UnlockError::Defect(OpenPgpKeyDefect::Damaged))
    }

    /// Returns the time of the part's creation, in seconds after 1970.
    pub(in super::super) fn created(&self) -> i64 {
        self.key().created_at().as_secs().into()
    }

    /// Makes a detached, armored signature with a time.
    pub(in super::super) fn sign(&self, text: &[u8], seconds: i64) -> Result<String, SigningError> {
        let time = u32::try_from(seconds).map_err(|_| SigningError::Time { seconds })?;
        let signature = self.signature(text, Timestamp::from_secs(time));
        let armored = signature.and_then(|signature| signature.to_armored_string(ArmorOptions::default()));
        armored.map_err(|error| SigningError::OpenPgp(Box::new(error)))
    }

    /// Makes a signature that states its time and its issuer, as gpg does.
    fn signature(&self, text: &[u8], time: Timestamp) -> pgp::errors::Result<DetachedSignature> {
        let key = self.key();
        let mut config = SignatureConfig::v4(SignatureType::Binary, key.algorithm(), key.hash_alg());
        config.hashed_subpackets = vec![
            Subpacket::regular(SubpacketData::IssuerFingerprint(key.fingerprint()))?,
            Subpacket::regular(SubpacketData::SignatureCreationTime(time))?,
        ];
        config.unhashed_subpackets =
            vec![Subpacket::regular(SubpacketData::IssuerKeyId(key.legacy_key_id()))?];
        // An unlocked part has no passphrase any more.
        config.sign(&Box::new(key), &Password::empty(), text).map(DetachedSignature::new)
    }

    /// Returns the short id of the part.
    pub(in super::super) fn id(&self) -> String {
        self.key().legacy_key_id().to_string().to_uppercase()
    }
}
