//! The errors of signing keys, in Flux's words where Flux has any.
//! No message contains a value of the secret.

use super::openpgp::NoSigningPart;

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

/// The error of a secret without a usable signing key.
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
        /// The remedy, if it is plain; it follows the sentence.
        advice: &'static str,
    },
    /// An OpenPGP key that cannot be read.
    #[error("could not read signing key from secret '{secret}'")]
    OpenPgp {
        /// The secret.
        secret: String,
        /// The defect.
        #[source]
        defect: OpenPgpKeyDefect,
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
    /// An SSH key that cannot be read, unlocked or used for signatures.
    #[error("could not parse SSH signing key from secret '{secret}'")]
    Ssh {
        /// The secret.
        secret: String,
        /// The defect.
        #[source]
        defect: SshKeyDefect,
    },
    /// An encrypted key without a passphrase.
    #[error("can not use passphrase protected signing key without '{key}' field present in secret {secret}")]
    PassphraseMissing {
        /// The secret.
        secret: String,
        /// The key of the secret for the passphrase.
        key: &'static str,
    },
    /// An encrypted OpenPGP key with another passphrase.
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
    /// An OpenPGP key none of whose parts may sign at this time.
    #[error("signing key in secret '{secret}' cannot be used")]
    NoSigningPart {
        /// The secret.
        secret: String,
        /// The parts, each with its defect.
        #[source]
        cause: NoSigningPart,
    },
}

/// The defect of an OpenPGP key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenPgpKeyDefect {
    /// It is something else.
    #[error("'git.asc' holds no OpenPGP key: give what `gpg --armor --export-secret-keys` prints")]
    NoKey,
    /// The value is empty.
    #[error("'git.asc' is empty: give what `gpg --armor --export-secret-keys` prints")]
    Empty,
    /// It is an SSH key.
    #[error(
        "'git.asc' holds an SSH key: set spec.git.commit.signingKey.type to ssh, and give the key in 'identity'"
    )]
    ForSsh,
    /// It is a public key.
    #[error(
        "'git.asc' holds a public key only: give the secret one, which `gpg --armor --export-secret-keys` prints"
    )]
    Public,
    /// It is damaged.
    #[error("the key in 'git.asc' is damaged or cut off: export it again")]
    Damaged,
    /// Its version is one that current gpg versions do not verify.
    #[error("the key in 'git.asc' has the OpenPGP version {version}, and only keys of version 4 can sign")]
    Version {
        /// The version.
        version: u8,
    },
    /// Unlocking it would take too much memory or time.
    #[error(
        "the key in 'git.asc' takes {memory} MiB and {passes} passes of Argon2 to unlock, and {max_memory} MiB and \
         {max_passes} passes are allowed: export it with a weaker key derivation"
    )]
    Argon2 {
        /// The memory, in MiB.
        memory: u64,
        /// The number of passes over it.
        passes: u8,
        /// The maximum memory, in MiB.
        max_memory: u64,
        /// The maximum number of passes.
        max_passes: u8,
    },
}

/// The defect of an SSH key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SshKeyDefect {
    /// It is something else.
    #[error("'identity' holds no private key: give one in OpenSSH or PEM form, as ssh-keygen writes it")]
    NoKey,
    /// The value is empty.
    #[error("'identity' is empty: give a private key in OpenSSH or PEM form, as ssh-keygen writes it")]
    Empty,
    /// It is an OpenPGP key.
    #[error(
        "'identity' holds an OpenPGP key: set spec.git.commit.signingKey.type to gpg, and give the key in 'git.asc'"
    )]
    ForOpenPgp,
    /// It is a public key.
    #[error(
        "'identity' holds a public key: give the private one, the file without .pub that ssh-keygen writes"
    )]
    Public,
    /// It is damaged.
    #[error("the key in 'identity' is damaged or cut off")]
    Damaged,
    /// The passphrase is wrong.
    #[error("the passphrase in 'password' is not that of the key in 'identity'")]
    WrongPassphrase,
    /// Its encryption is not supported.
    #[error(
        "the key in 'identity' has an unsupported encryption ({scheme}): encrypt it again with `ssh-keygen -p`"
    )]
    Lock {
        /// Its name.
        scheme: String,
    },
    /// It is in PKCS#8 and encrypted, which Flux does not read either.
    #[error(
        "the key in 'identity' is in encrypted PKCS#8, which is not supported: rewrite it in OpenSSH's form with \
         `ssh-keygen -p -f FILE` (OpenSSH 9.6 or newer if it is an Ed25519 key)"
    )]
    EncryptedPkcs8,
    /// Unlocking it would take too much time.
    #[error(
        "the key in 'identity' takes {rounds} rounds to unlock, and {most} are allowed: encrypt it again with `ssh-keygen -p`"
    )]
    Rounds {
        /// The number of rounds.
        rounds: u64,
        /// The maximum number of rounds.
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
    /// Its algorithm is not accepted for signatures, or needs a device.
    #[error(
        "the key in 'identity' has the type {sort}, which cannot sign commits: use ed25519, ECDSA or RSA"
    )]
    Sort {
        /// Its name.
        sort: String,
    },
}
