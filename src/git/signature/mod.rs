//! Signatures of commits: from the data of a secret to an unlocked signing key.
//!
//! A [`Keyring`] takes the data and returns a [`SigningKey`], which it caches. [`armor`] takes keys out of their text,
//! [`openpgp`] and [`ssh`] read and unlock them. All defects of a key are found here, before any file is edited;
//! [`error`] has the messages.

mod armor;
mod error;
mod key;
mod keyring;
mod openpgp;
mod passphrase;
mod ssh;

pub use error::{OpenPgpKeyDefect, SigningError, SigningKeyError, SshKeyDefect};
pub use key::SigningKey;
pub use keyring::{Keyring, SigningKeyKind, unlock_signing_key};
pub use openpgp::{DefectivePart, NoSigningPart, PartDefect};
pub(super) use ssh::{ed25519_to_openssh, takes_too_many_rounds};
