//! The errors of signing keys, in Flux's words where Flux has any. No message holds a value of the secret.

use tagboat_api::Reason;

use super::openpgp::Unusable;
use crate::error::ReconcileError;

/// The error of an unlocked key that fails to sign.
#[derive(Debug, thiserror::Error)]
pub enum SigningError {
    /// OpenPGP counts seconds since 1970 in 32 bits.
    #[error("a signature cannot be made at the time of the commit, {seconds} seconds after 1970")]
    Time {
        /// The time, in seconds after 1970.
        seconds: i64,
    },
    /// The OpenPGP key fails.
    #[error("the OpenPGP key cannot sign")]
    OpenPgp(#[source] Box<pgp::errors::Error>),
    /// The SSH key fails.
    #[error("the SSH key cannot sign")]
    Ssh(#[from] ssh_key::Error),
}

/// Why a secret gives no key to sign with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SigningKeyError {
    /// The secret does not have the key.
    #[error(
        "signing key secret '{secret}' does not contain {} '{key}' key{advice}",
        if key.starts_with('i') { "an" } else { "a" }
    )]
    KeyMissing {
        /// The secret.
        secret: String,
        /// The key.
        key: &'static str,
        /// What to do, where that is plain; it follows the sentence.
        advice: &'static str,
    },
    /// An OpenPGP key that cannot be read.
    #[error("could not read signing key from secret '{secret}'")]
    OpenPgp {
        /// The secret.
        secret: String,
        /// What is wrong with it.
        #[source]
        flaw: OpenPgpFlaw,
    },
    /// More than one OpenPGP key.
    #[error(
        "multiple entities read from secret '{secret}', could not determine which signing key to use: give what \
         `gpg --armor --export-secret-keys FINGERPRINT` prints for one of them"
    )]
    Several {
        /// The secret.
        secret: String,
    },
    /// An SSH key that cannot be read or unlocked, or is of a sort that does not sign.
    #[error("could not parse SSH signing key from secret '{secret}'")]
    Ssh {
        /// The secret.
        secret: String,
        /// What is wrong with it.
        #[source]
        flaw: SshFlaw,
    },
    /// A locked key without a passphrase.
    #[error("can not use passphrase protected signing key without '{key}' field present in secret {secret}")]
    PassphraseMissing {
        /// The secret.
        secret: String,
        /// Where the passphrase should be.
        key: &'static str,
    },
    /// A locked OpenPGP key with another passphrase.
    #[error(
        "could not decrypt private key of the signing key present in secret {secret}: the passphrase in 'passphrase' \
         is not that of key {id}"
    )]
    WrongPassphrase {
        /// The secret.
        secret: String,
        /// The key's id.
        id: String,
    },
    /// An OpenPGP key of which no part may sign at this time.
    #[error("signing key in secret '{secret}' cannot be used")]
    Unusable {
        /// The secret.
        secret: String,
        /// Which part cannot sign, and why.
        #[source]
        cause: Unusable,
    },
}

/// What is wrong with an OpenPGP key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenPgpFlaw {
    /// It is something else.
    #[error("'git.asc' holds no OpenPGP key: give what `gpg --armor --export-secret-keys` prints")]
    NoKey,
    /// There is nothing.
    #[error("'git.asc' is empty: give what `gpg --armor --export-secret-keys` prints")]
    Empty,
    /// It is for SSH.
    #[error(
        "'git.asc' holds an SSH key: set spec.git.commit.signingKey.type to ssh, and give the key by 'identity'"
    )]
    ForSsh,
    /// It is the half that anybody may have.
    #[error(
        "'git.asc' holds a public key only: give the secret one, which `gpg --armor --export-secret-keys` prints"
    )]
    Public,
    /// It cannot be understood.
    #[error("the key in 'git.asc' is damaged or cut off: export it again")]
    Damaged,
    /// It is of a version that no gpg in use checks, or that none does any more.
    #[error("the key in 'git.asc' is of OpenPGP's version {version}, and only keys of version 4 can sign")]
    Version {
        /// The version.
        version: u8,
    },
    /// To unlock it would take too much memory or too long.
    #[error(
        "the key in 'git.asc' takes {memory} MiB and {passes} passes of Argon2 to unlock, and {most_memory} MiB and \
         {most_passes} passes are allowed: export it with a lock that takes less"
    )]
    Argon2 {
        /// The memory, in MiB.
        memory: u64,
        /// How often it is gone through.
        passes: u8,
        /// The memory that is allowed, in MiB.
        most_memory: u64,
        /// How often it may be gone through.
        most_passes: u8,
    },
}

/// What is wrong with an SSH key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SshFlaw {
    /// It is something else.
    #[error("'identity' holds no private key: give one in OpenSSH or PEM form, as ssh-keygen writes it")]
    NoKey,
    /// There is nothing.
    #[error("'identity' is empty: give a private key in OpenSSH or PEM form, as ssh-keygen writes it")]
    Empty,
    /// It is for OpenPGP.
    #[error(
        "'identity' holds an OpenPGP key: set spec.git.commit.signingKey.type to gpg, and give the key by 'git.asc'"
    )]
    ForOpenPgp,
    /// It is the half that anybody may have.
    #[error(
        "'identity' holds a public key: give the private one, the file without .pub that ssh-keygen writes"
    )]
    Public,
    /// It cannot be understood.
    #[error("the key in 'identity' is damaged or cut off")]
    Damaged,
    /// The passphrase is another.
    #[error("the passphrase in 'password' is not that of the key in 'identity'")]
    WrongPassphrase,
    /// It is locked in a way that we do not know.
    #[error(
        "the key in 'identity' is locked in a way that is not known here ({scheme}): lock it anew with `ssh-keygen -p`"
    )]
    Lock {
        /// Its name.
        scheme: String,
    },
    /// It is in PKCS#8 and encrypted, which Flux does not read either.
    #[error(
        "the key in 'identity' is in encrypted PKCS#8, which is not read: rewrite it in OpenSSH's form with \
         `ssh-keygen -p -f FILE` (OpenSSH 9.6 or newer if it is an Ed25519 key)"
    )]
    EncryptedPkcs8,
    /// To unlock it would take too long.
    #[error(
        "the key in 'identity' takes {rounds} rounds to unlock, and {most} are allowed: lock it anew with `ssh-keygen -p`"
    )]
    Rounds {
        /// How many it takes.
        rounds: u64,
        /// How many it may.
        most: u64,
    },
    /// It is too short.
    #[error("the RSA key in 'identity' has {bits} bits, and a signature needs at least 2048")]
    Short {
        /// Its length.
        bits: u32,
    },
    /// It is too long.
    #[error(
        "the RSA key in 'identity' has {bits} bits, and {most} are allowed: use a shorter one, or ed25519"
    )]
    Long {
        /// Its length.
        bits: u32,
        /// The longest that is allowed.
        most: u32,
    },
    /// It is of a sort whose signatures nobody accepts, or that needs a device.
    #[error(
        "the key in 'identity' is of the sort {sort}, which cannot sign commits: use ed25519, ECDSA or RSA"
    )]
    Sort {
        /// Its name.
        sort: String,
    },
}

impl ReconcileError for SigningKeyError {
    fn reason(&self) -> Reason {
        Reason::SourceManagerFailed
    }

    /// A secret may be corrected meanwhile.
    fn is_retryable(&self) -> bool {
        true
    }
}
