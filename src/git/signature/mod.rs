//! Signatures on commits: from the data of a secret to an unlocked key that signs.
//!
//! A [`Keyring`] takes the data and gives a [`SigningKey`]; what it unlocked once, it remembers. [`armor`] takes keys
//! out of their text, [`openpgp`] and [`ssh`] read and unlock them. All that can be wrong with a key is found here,
//! before anybody edits a file; [`error`] has the sentences.

mod armor;
mod error;
mod key;
mod keyring;
mod openpgp;
mod passphrase;
mod ssh;

pub use error::{OpenPgpFlaw, SigningError, SigningKeyError, SshFlaw};
pub use key::SigningKey;
pub use keyring::{Keyring, SigningKeyKind, unlock_signing_key};
pub use openpgp::{Fault, FaultyPart, Unusable};
pub(super) use ssh::{ed25519_to_openssh, takes_too_many_rounds};
