//! Reads the key that signs an automation's commits from the secret that it names.

use tagboat_api::automation::SigningKeyType;

use super::source::{ObjectName, SigningSecret, SourceConfiguration};
use crate::error::ReconcileError;
use crate::git::{CommitTime, Keyring, SigningKey, SigningKeyError, SigningKeyKind};
use crate::objects::{Objects, ObjectsError};
use crate::secrets::data_size;
use crate::tenancy::INLINE_BYTES;

/// The error of an automation that wants signed commits and has no key.
#[derive(Debug, thiserror::Error)]
pub enum SigningKeyMissing {
    /// The secret does not exist.
    #[error("could not find signing key secret '{}'", name.name)]
    Secret {
        /// The secret.
        name: ObjectName,
        /// The cause.
        #[source]
        cause: ObjectsError,
    },
    /// An unknown kind of key.
    #[error("unknown signing key type {kind:?}; known are gpg, ssh")]
    UnknownKind {
        /// The kind.
        kind: String,
    },
    /// The secret has no key.
    #[error(transparent)]
    Key(#[from] SigningKeyError),
}

/// Always retryable, as in Flux: the secret may be created or corrected meanwhile.
impl ReconcileError for SigningKeyMissing {}

/// Returns the key that signs at `time`, unlocked; none if commits are not signed.
///
/// A large secret is dropped before the wait for its turn and read again after it, so that none is held during the
/// wait.
///
/// # Errors
///
/// If the secret does not exist, or has no key that may sign.
pub async fn signing_key(
    objects: &impl Objects,
    source: &SourceConfiguration,
    keyring: &Keyring,
    time: CommitTime,
) -> Result<Option<SigningKey>, SigningKeyMissing> {
    let Some(SigningSecret { name, kind }) = &source.signing_secret else { return Ok(None) };
    let full_name = name.to_string();
    let read = async || {
        objects.secret(&name.namespace, &name.name).await.map_err(|cause| {
            keyring.forget(&full_name);
            SigningKeyMissing::Secret { name: name.clone(), cause }
        })
    };
    let data = read().await?;
    let kind = match kind {
        SigningKeyType::Gpg => SigningKeyKind::OpenPgp,
        SigningKeyType::Ssh => SigningKeyKind::Ssh,
        SigningKeyType::Other(kind) => return Err(SigningKeyMissing::UnknownKind { kind: kind.clone() }),
    };
    if data_size(&data) < INLINE_BYTES {
        return Ok(Some(keyring.unlock(kind, &full_name, data, time).await?));
    }
    drop(data);
    let _turn = keyring.enter_large(&name.namespace).await;
    Ok(Some(keyring.unlock(kind, &full_name, read().await?, time).await?))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::error::chain;
    use crate::git::{DefectivePart, NoSigningPart, OpenPgpKeyDefect, PartDefect, SshKeyDefect};
    use crate::reconcile::automation::batch_logins::tests::{Secrets, source};
    use crate::tenancy::Capacity;

    /// Each automation held a Secret of its own while it waited for a thread.
    #[tokio::test]
    async fn a_large_signing_key_is_not_held_while_it_waits() {
        let keyring = Keyring::new(Capacity::default());
        let mut source = source("a");
        let name = ObjectName { namespace: "n".to_owned(), name: "key".to_owned() };
        source.signing_secret = Some(SigningSecret { name, kind: SigningKeyType::Ssh });
        let mut held = Vec::new();
        while let Some(turn) = keyring.enter_large("n").now_or_never() {
            held.push(turn);
        }
        let (small, large) = (Secrets::of(1), Secrets::of(INLINE_BYTES));
        let key = |secrets| signing_key(secrets, &source, &keyring, CommitTime::now());
        assert!(matches!(key(&small).await, Err(SigningKeyMissing::Key(_))));
        let mut waiting = Box::pin(key(&large));
        assert!((&mut waiting).now_or_never().is_none());
        assert_eq!(large.reads(), 1);
        held.pop();
        assert!(matches!(waiting.await, Err(SigningKeyMissing::Key(_))));
        assert_eq!((small.reads(), large.reads()), (1, 2));
    }

    /// The page about signing showed sentences about OpenPGP keys for SSH keys.
    ///
    /// The program prints other sentences about SSH keys.
    #[test]
    fn the_messages_of_the_signing_page_are_the_real_ones() {
        let secret = || "signing-key".to_owned();
        let expired = DefectivePart {
            is_subkey: false,
            id: "0123456789ABCDEF".to_owned(),
            defect: PartDefect::Expired(1_769_817_600),
        };
        let no_secret = ObjectsError::NoSecret { namespace: "n".to_owned(), name: secret(), advice: "" };
        let missing = |key| SigningKeyError::KeyMissing { secret: secret(), key, advice: "" };
        let locked = |key| SigningKeyError::PassphraseMissing { secret: secret(), key };
        let errors: [SigningKeyMissing; 10] = [
            SigningKeyMissing::Secret {
                name: ObjectName { namespace: "n".to_owned(), name: secret() },
                cause: no_secret,
            },
            missing("git.asc").into(),
            missing("identity").into(),
            SigningKeyError::OpenPgp { secret: secret(), defect: OpenPgpKeyDefect::Public }.into(),
            SigningKeyError::Ssh { secret: secret(), defect: SshKeyDefect::WrongPassphrase }.into(),
            locked("passphrase").into(),
            locked("password").into(),
            SigningKeyError::WrongPassphrase { secret: secret(), id: "0123456789ABCDEF".to_owned() }.into(),
            SigningKeyError::NoSigningPart {
                secret: secret(),
                cause: NoSigningPart { parts: vec![expired] },
            }
            .into(),
            SigningKeyError::Several { secret: secret() }.into(),
        ];
        let said = errors.each_ref().map(|error| chain(error));
        let page = include_str!("../../../docs/signing.md");
        let (_, table) =
            page.split_once("behind `failed configuring source manager: ` |\n|---|---|\n").unwrap();
        let rows = table.lines().take_while(|line| line.starts_with('|'));
        let quoted = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
        let quoted: Vec<&str> = quoted.filter(|text| text.contains(' ')).collect();
        let is_of = |quoted: &str, said: &str| match quoted.strip_suffix('…') {
            Some(begin) => said.starts_with(begin),
            None => said == quoted,
        };
        for quoted in &quoted {
            assert!(said.iter().any(|said| is_of(quoted, said)), "nothing says {quoted:?}: {said:#?}");
        }
        for said in &said {
            assert!(quoted.iter().any(|quoted| is_of(quoted, said)), "the page does not have {said:?}");
        }
    }
}
