//! SSH keys: reading, unlocking, and signing as `ssh-keygen -Y sign -n git` does.
//!
//! The crate ssh-key reads OpenSSH's own format; [`keypair`] converts the formats in PEM ([`pem`], in [`der`]),
//! decrypted by [`cipher`], to the same type.

mod cipher;
mod der;
mod keypair;
mod pem;

use ssh_key::private::KeypairData;
use ssh_key::{Cipher, HashAlg, Kdf, LineEnding, PrivateKey};

use super::armor::{self, Block};
use super::passphrase::Passphrase;
use super::{SigningError, SigningKeyError, SshKeyDefect};
use crate::secrets::{Secret, SecretData};

/// The key of a secret that holds an SSH key.
const IDENTITY: &str = "identity";

/// The key of a secret for the passphrase of an SSH key.
pub(super) const PASSPHRASE: &str = "password";

/// The namespace that git expects in a signature.
const NAMESPACE: &str = "git";

/// The minimum size in bits of an RSA key whose signatures OpenSSH accepts.
const MIN_RSA_BITS: u32 = 2048;

/// The maximum number of rounds of bcrypt, about two seconds of work.
/// The default of `ssh-keygen` is 16 or 24.
const MAX_ROUNDS: u32 = 256;

/// The maximum size in bits of an RSA key.
/// With a larger key, a signature takes seconds, and cannot be checked.
const MAX_RSA_BITS: u32 = 8192;

/// An unlocked key.
pub(super) struct UnlockedKey(Box<PrivateKey>);

/// The error of a key that is not unlocked.
enum UnlockError {
    /// It is encrypted, and there is no passphrase.
    NoPassphrase,
    Defect(SshKeyDefect),
}

impl From<SshKeyDefect> for UnlockError {
    fn from(defect: SshKeyDefect) -> Self {
        Self::Defect(defect)
    }
}

impl UnlockedKey {
    /// Makes a signature over the SHA-512 of a text.
    pub(super) fn sign(&self, text: &[u8]) -> Result<String, SigningError> {
        let signature = self.0.sign(NAMESPACE, HashAlg::Sha512, text)?;
        Ok(signature.to_pem(LineEnding::LF)?)
    }

    /// Returns the fingerprint, as `ssh-keygen -l` prints it.
    pub(super) fn fingerprint(&self) -> String {
        self.0.fingerprint(HashAlg::Sha256).to_string()
    }
}

/// Reads and unlocks the key of a secret.
pub(super) fn unlock(
    secret: SecretData<'_>,
    passphrase: &Passphrase<'_>,
) -> Result<UnlockedKey, SigningKeyError> {
    let name = secret.bare_name();
    let Some(identity) = secret.value(IDENTITY) else {
        let advice = match secret.value("git.asc") {
            Some(_) => "; its 'git.asc' is for spec.git.commit.signingKey.type gpg",
            None if secret.data.contains_key(IDENTITY) => "; its 'identity' is empty",
            None => "",
        };
        return Err(SigningKeyError::KeyMissing { secret: name.to_owned(), key: IDENTITY, advice });
    };
    let key = read(identity.expose(), passphrase).and_then(|key| Ok(check_key_pair(key)?));
    key.map_err(|error| match error {
        UnlockError::NoPassphrase => {
            SigningKeyError::PassphraseMissing { secret: name.to_owned(), key: PASSPHRASE }
        }
        UnlockError::Defect(defect) => SigningKeyError::Ssh { secret: name.to_owned(), defect },
    })
}

fn read(text: &[u8], passphrase: &Passphrase<'_>) -> Result<PrivateKey, UnlockError> {
    let blocks = armor::blocks(text);
    let Some(block) = blocks.iter().find(|block| block.label.ends_with("PRIVATE KEY")) else {
        return Err(defect_without_key(text, &blocks).into());
    };
    let data = block.data.as_ref().ok_or(SshKeyDefect::Damaged)?;
    if block.label == "OPENSSH PRIVATE KEY" {
        openssh(data, passphrase)
    } else {
        pem::read(block, data, passphrase)
    }
}

/// Converts an Ed25519 key in PKCS#8 without a passphrase into OpenSSH's own format.
/// Returns `None` for any other text.
pub(in crate::git) fn ed25519_to_openssh(identity: &Secret) -> Option<Secret> {
    let blocks = armor::blocks(identity.expose());
    let block = blocks.iter().find(|block| block.label.ends_with("PRIVATE KEY"))?;
    let data = block.data.as_ref().filter(|_| block.label == "PRIVATE KEY")?;
    let text = pem::ed25519_of_pkcs8(data)?.to_openssh(LineEnding::LF).ok()?;
    Some(Secret::new(text.as_bytes()))
}

/// Returns true if unlocking an OpenSSH key takes too many rounds of bcrypt.
pub(in crate::git) fn takes_too_many_rounds(identity: &[u8]) -> bool {
    let blocks = armor::blocks(identity);
    let block = blocks.iter().find(|block| block.label == "OPENSSH PRIVATE KEY");
    let key = block.and_then(|block| PrivateKey::from_bytes(block.data.as_ref()?).ok());
    key.is_some_and(|key| excessive_rounds(&key).is_some())
}

/// Returns the rounds of bcrypt that unlock a key, if they exceed the maximum.
fn excessive_rounds(key: &PrivateKey) -> Option<u32> {
    match key.kdf() {
        Kdf::Bcrypt { rounds, .. } => Some(*rounds).filter(|rounds| *rounds > MAX_ROUNDS),
        _ => None,
    }
}

/// Returns the defect of a text without a private key.
fn defect_without_key(text: &[u8], blocks: &[Block<'_>]) -> SshKeyDefect {
    let has = |words: &str| blocks.iter().any(|block| block.label.contains(words));
    let line = text.trim_ascii_start();
    let is_public_line = ["ssh-", "ecdsa-", "sk-"].iter().any(|start| line.starts_with(start.as_bytes()));
    if has("PGP") {
        SshKeyDefect::ForOpenPgp
    } else if has("PUBLIC KEY") || is_public_line {
        SshKeyDefect::Public
    } else if line.is_empty() {
        SshKeyDefect::Empty
    } else {
        SshKeyDefect::NoKey
    }
}

/// Reads OpenSSH's own format.
fn openssh(data: &[u8], passphrase: &Passphrase<'_>) -> Result<PrivateKey, UnlockError> {
    let key = PrivateKey::from_bytes(data).map_err(|_| SshKeyDefect::Damaged)?;
    if !key.is_encrypted() {
        return Ok(key);
    }
    if let Some(rounds) = excessive_rounds(&key) {
        return Err(SshKeyDefect::Rounds { rounds: rounds.into(), most: MAX_ROUNDS.into() }.into());
    }
    if key.cipher() == Cipher::TdesCbc {
        return Err(SshKeyDefect::Lock { scheme: key.cipher().to_string() }.into());
    }
    if !passphrase.is_present() {
        return Err(UnlockError::NoPassphrase);
    }
    let unlocked = passphrase.try_each(|bytes| match key.decrypt(bytes) {
        Err(ssh_key::Error::AlgorithmUnsupported { .. }) => Err(SshKeyDefect::Damaged),
        // After a decryption with the wrong passphrase all is noise.
        unlocked => Ok(unlocked.ok()),
    });
    Ok(unlocked?.ok_or(SshKeyDefect::WrongPassphrase)?)
}

/// Accepts only keys whose signatures are accepted, and whose two halves belong together.
fn check_key_pair(key: PrivateKey) -> Result<UnlockedKey, SshKeyDefect> {
    let sort = |sort: &str| Err(SshKeyDefect::Sort { sort: sort.to_owned() });
    match key.key_data() {
        KeypairData::Ed25519(_) | KeypairData::Ecdsa(_) => {}
        KeypairData::Rsa(pair) if pair.key_size() < MIN_RSA_BITS => {
            return Err(SshKeyDefect::Short { bits: pair.key_size() });
        }
        KeypairData::Rsa(pair) if pair.key_size() > MAX_RSA_BITS => {
            return Err(SshKeyDefect::Long { bits: pair.key_size(), most: MAX_RSA_BITS });
        }
        KeypairData::Rsa(_) => {}
        KeypairData::Dsa(_) => return sort("DSA"),
        _ => return sort(key.algorithm().as_str()),
    }
    let probe = b"probe";
    let signature = key.sign(NAMESPACE, HashAlg::Sha512, probe).map_err(|_| SshKeyDefect::Damaged)?;
    key.public_key().verify(NAMESPACE, probe, &signature).map_err(|_| SshKeyDefect::Damaged)?;
    Ok(UnlockedKey(Box::new(key)))
}

#[cfg(test)]
mod tests;
