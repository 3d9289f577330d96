//! From the secret that an automation names to the key that signs its commits.

use tagboat_api::Reason;
use tagboat_api::automation::SigningKeyType;

use super::source::{ObjectName, SigningSecret, SourceConfiguration};
use crate::failing::Failing;
use crate::git::{CommitTime, Keyring, SigningKey, SigningKeyError, SigningKeyKind};
use crate::objects::{Objects, ObjectsError};

/// Why there is no key to sign with, though one is asked for.
#[derive(Debug, thiserror::Error)]
pub enum SigningKeyMissing {
    /// The secret is not there.
    #[error("could not find signing key secret '{}'", name.name)]
    Secret {
        /// The secret.
        name: ObjectName,
        /// Why.
        #[source]
        cause: ObjectsError,
    },
    /// A sort of keys that nobody has heard of.
    #[error("unknown signing key type {kind:?}; known are gpg, ssh")]
    UnknownKind {
        /// The sort.
        kind: String,
    },
    /// The secret gives no key.
    #[error(transparent)]
    Key(#[from] SigningKeyError),
}

impl Failing for SigningKeyMissing {
    fn reason(&self) -> Reason {
        match self {
            Self::Secret { .. } | Self::UnknownKind { .. } => Reason::SourceManagerFailed,
            Self::Key(error) => error.reason(),
        }
    }

    /// As in Flux, all of it: a secret may come or be corrected meanwhile.
    fn is_retryable(&self) -> bool {
        match self {
            Self::Secret { .. } | Self::UnknownKind { .. } => true,
            Self::Key(error) => error.is_retryable(),
        }
    }
}

/// Gives the key that signs at `time`, unlocked; none where commits are not to be signed.
///
/// # Errors
///
/// When the secret is not there, or has no key that may sign.
pub async fn signing_key(
    objects: &impl Objects,
    source: &SourceConfiguration,
    keyring: &Keyring,
    time: CommitTime,
) -> Result<Option<SigningKey>, SigningKeyMissing> {
    let Some(SigningSecret { name, kind }) = &source.signing_secret else { return Ok(None) };
    let full_name = name.to_string();
    let data = objects.secret(&name.namespace, &name.name).await.map_err(|cause| {
        keyring.forget(&full_name);
        let cause = cause.with_advice(objects.advice_for_secret());
        SigningKeyMissing::Secret { name: name.clone(), cause }
    })?;
    let kind = match kind {
        SigningKeyType::Gpg => SigningKeyKind::OpenPgp,
        SigningKeyType::Ssh => SigningKeyKind::Ssh,
        SigningKeyType::Other(kind) => return Err(SigningKeyMissing::UnknownKind { kind: kind.clone() }),
    };
    Ok(Some(keyring.unlock(kind, &full_name, data, time).await?))
}
