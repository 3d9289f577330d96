//! A cache of unlocked signing keys, and of the errors of others.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use super::passphrase::Passphrase;
use super::{SigningKey, SigningKeyError, openpgp, ssh};
use crate::git::CommitTime;
use crate::secrets::{Fingerprint, Secret, SecretData, data_size};
use crate::tenancy::{Capacity, FairCache, FairSemaphore, Permit, SlotLimits};

/// The maximum number of cached keys.
const MAX_KEYS: usize = 1024;

/// The maximum size, in bytes, of a secret's data whose unlocked key is cached.
/// The key of a larger secret is unlocked in each run; only an error is cached.
const MAX_CACHED_BYTES: usize = 64 * 1024;

/// The maximum number of large secrets in memory, until their keys are unlocked.
const LARGE_SECRETS: SlotLimits = SlotLimits { total: 8, per_namespace: 4, overflow: None }.with_overflow(8);

/// The kinds of keys that sign commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SigningKeyKind {
    /// An OpenPGP key.
    OpenPgp,
    /// An SSH key.
    Ssh,
}

/// Caches the unlocked keys of secrets, and the errors of other secrets.
/// An entry is valid until the data of its secret changes.
///
/// Keys are unlocked on the blocking pool, each once for all automations that need it. Clones share the keyring.
/// Nothing of it is ever written to a disk.
#[derive(Clone)]
pub struct Keyring {
    slots: Arc<Mutex<FairCache<SlotKey, Slot>>>,
    large: FairSemaphore,
    capacity: Capacity,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SlotKey {
    /// `NAMESPACE/NAME` of the secret.
    secret: String,
    kind: SigningKeyKind,
}

/// The slot of one key, shared by all that need it at the same time.
#[derive(Clone, Default)]
struct Slot {
    /// Locked while the key is read or unlocked.
    entry: Arc<tokio::sync::Mutex<Option<CachedKey>>>,
    /// True if the key was evicted while the slot was in use.
    is_evicted: Arc<AtomicBool>,
}

/// The lock of a slot. A key that was evicted meanwhile is dropped with it.
struct LockedSlot {
    entry: OwnedMutexGuard<Option<CachedKey>>,
    is_evicted: Arc<AtomicBool>,
}

/// The key of a secret, or its error.
struct CachedKey {
    /// A hash of all the secret's data at that time.
    digest: Fingerprint,
    key: Result<ParsedKey, SigningKeyError>,
}

enum ParsedKey {
    OpenPgp(Box<openpgp::OpenPgpKey>),
    Ssh(SigningKey),
}

/// A key to be unlocked.
struct UnlockJob {
    capacity: Capacity,
    namespace: String,
    kind: SigningKeyKind,
    secret: Arc<OwnedSecret>,
    digest: Fingerprint,
    time: CommitTime,
}

/// A secret's name, which is `NAMESPACE/NAME`, and data.
struct OwnedSecret {
    name: String,
    data: BTreeMap<String, Secret>,
}

impl Keyring {
    /// Creates an empty keyring, which unlocks keys with the capacity of its process.
    pub fn new(capacity: Capacity) -> Self {
        let slots = Arc::new(Mutex::new(FairCache::new(MAX_KEYS)));
        Self { slots, large: FairSemaphore::new(LARGE_SECRETS), capacity }
    }

    /// Waits until a namespace may hold another large secret while its key is unlocked.
    ///
    /// A holder of a permit waits for memory and threads; their holders never wait for a permit.
    pub async fn enter_large(&self, namespace: &str) -> Permit {
        self.large.acquire(namespace, 1).await
    }

    /// Returns the unlocked key of a secret that signs at `time`.
    /// The name of the secret is `NAMESPACE/NAME`.
    ///
    /// A key that could not be unlocked is not tried again before its secret changes. Properties that change with time,
    /// such as the expiry of a key, are checked in each call. Dropping the future cancels the wait for a thread; a job
    /// that has started goes on, and its result is cached.
    ///
    /// # Errors
    ///
    /// If the secret has no key of this kind, or none that can be unlocked and may sign.
    pub async fn unlock(
        &self,
        kind: SigningKeyKind,
        name: &str,
        data: BTreeMap<String, Secret>,
        time: CommitTime,
    ) -> Result<SigningKey, SigningKeyError> {
        let namespace = name.split('/').next().unwrap_or_default().to_owned();
        let secret = Arc::new(OwnedSecret { name: name.to_owned(), data });
        let hashed = Arc::clone(&secret);
        let hash = move || digest(hashed.borrowed());
        let digest = self.capacity.pool.run_sized(&namespace, secret.size(), hash).await;
        let slot = self.slot(&namespace, SlotKey { secret: name.to_owned(), kind }).lock().await;
        if let Some(result) = slot.entry.as_ref().and_then(|known| known.result(digest, time)) {
            return result;
        }
        let capacity = self.capacity.clone();
        UnlockJob { capacity, namespace, kind, secret, digest, time }.run(slot).await
    }

    /// Evicts the keys of a secret that does not exist any more.
    pub fn forget(&self, secret: &str) {
        self.retain(|name| name != secret);
    }

    /// Evicts the keys of all secrets that are not used any more.
    ///
    /// The names of secrets are `NAMESPACE/NAME`. A key that is being unlocked is evicted when that ends, and
    /// is not unlocked a second time meanwhile.
    pub fn retain(&self, is_used: impl Fn(&str) -> bool) {
        self.slots.lock().retain(|key, slot| {
            if is_used(&key.secret) {
                return true;
            }
            slot.is_evicted.store(true, Ordering::SeqCst);
            slot.is_in_use()
        });
    }

    fn slot(&self, namespace: &str, key: SlotKey) -> Slot {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get(&key) {
            slot.is_evicted.store(false, Ordering::SeqCst);
            return slot.clone();
        }
        slots.retain(|_, slot| !slot.is_evicted.load(Ordering::SeqCst) || slot.is_in_use());
        let slot = Slot::default();
        slots.insert(namespace, key, slot.clone());
        slot
    }
}

/// Prints the keys that are not in use at the moment, without anything secret.
impl fmt::Debug for Keyring {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = formatter.debug_map();
        for (key, slot) in self.slots.lock().iter() {
            if let Ok(entry) = slot.entry.try_lock() {
                map.entry(&key.secret, &entry.as_ref().map(|entry| &entry.key));
            }
        }
        map.finish()
    }
}

impl fmt::Debug for ParsedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OpenPgp(key) => key.fmt(formatter),
            Self::Ssh(key) => key.fmt(formatter),
        }
    }
}

impl CachedKey {
    /// Returns the cached result for a time.
    /// It is `None` if the data has changed, or something must be unlocked.
    fn result(&self, digest: Fingerprint, time: CommitTime) -> Option<Result<SigningKey, SigningKeyError>> {
        if self.digest != digest {
            return None;
        }
        match &self.key {
            Err(error) => Some(Err(error.clone())),
            Ok(ParsedKey::Ssh(key)) => Some(Ok(key.clone())),
            Ok(ParsedKey::OpenPgp(key)) => match key.choose(time.seconds) {
                Ok(choice) => key.unlocked(choice).cloned(),
                Err(error) => Some(Err(error)),
            },
        }
    }
}

impl Slot {
    async fn lock(self) -> LockedSlot {
        LockedSlot { entry: self.entry.lock_owned().await, is_evicted: self.is_evicted }
    }

    /// Returns true if there is a clone, which has the lock or waits for it.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.entry) > 1
    }
}

impl Drop for LockedSlot {
    fn drop(&mut self) {
        if self.is_evicted.load(Ordering::SeqCst) {
            *self.entry = None;
        }
    }
}

impl UnlockJob {
    /// Reads and unlocks the key, each on the pool, and caches the result.
    async fn run(&self, mut slot: LockedSlot) -> Result<SigningKey, SigningKeyError> {
        let known = slot.entry.take().filter(|known| known.digest == self.digest);
        let key = match known {
            Some(known) => known.key,
            None => {
                let (is_small, digest) = (self.is_small(), self.digest);
                let (kind, secret) = (self.kind, Arc::clone(&self.secret));
                let read = move || {
                    let key = ParsedKey::read(kind, secret.borrowed());
                    // An OpenPGP key is unlocked first.
                    match &key {
                        Err(error) => slot.remember(digest, Err(error.clone())),
                        Ok(ParsedKey::Ssh(key)) if is_small => {
                            slot.remember(digest, Ok(ParsedKey::Ssh(key.clone())));
                        }
                        Ok(_) => {}
                    }
                    (slot, key)
                };
                let key;
                (slot, key) = self.capacity.pool.run(&self.namespace, read).await;
                key
            }
        };
        match key? {
            ParsedKey::Ssh(key) => Ok(key),
            ParsedKey::OpenPgp(key) => self.unlock_part(key, slot).await,
        }
    }

    /// Unlocks the part of an OpenPGP key that signs at the time.
    /// Memory is reserved for its key derivation.
    async fn unlock_part(
        &self,
        mut key: Box<openpgp::OpenPgpKey>,
        mut slot: LockedSlot,
    ) -> Result<SigningKey, SigningKeyError> {
        let (is_small, digest) = (self.is_small(), self.digest);
        let choice = match key.choose(self.time.seconds) {
            Ok(choice) => choice,
            Err(error) => {
                slot.remember(digest, Ok(ParsedKey::OpenPgp(key)));
                return Err(error);
            }
        };
        let memory = match key.key_derivation_memory(choice) {
            0 => None,
            bytes => Some(self.capacity.memory.reserve(&self.namespace, bytes).await),
        };
        let secret = Arc::clone(&self.secret);
        let unlock = move || {
            let secret = secret.borrowed();
            let result = key.unlock(&Passphrase::of(secret, openpgp::PASSPHRASE), choice);
            drop(memory);
            if result.is_err() || is_small {
                slot.remember(digest, Ok(ParsedKey::OpenPgp(key)));
            }
            result
        };
        self.capacity.pool.run(&self.namespace, unlock).await
    }

    fn is_small(&self) -> bool {
        self.secret.size() <= MAX_CACHED_BYTES
    }
}

impl LockedSlot {
    fn remember(&mut self, digest: Fingerprint, key: Result<ParsedKey, SigningKeyError>) {
        *self.entry = Some(CachedKey { digest, key });
    }
}

impl OwnedSecret {
    fn borrowed(&self) -> SecretData<'_> {
        SecretData { name: &self.name, data: &self.data }
    }

    fn size(&self) -> usize {
        data_size(&self.data)
    }
}

impl ParsedKey {
    fn read(kind: SigningKeyKind, secret: SecretData<'_>) -> Result<Self, SigningKeyError> {
        match kind {
            SigningKeyKind::OpenPgp => Ok(Self::OpenPgp(Box::new(openpgp::OpenPgpKey::read(secret)?))),
            SigningKeyKind::Ssh => {
                let key = ssh::unlock(secret, &Passphrase::of(secret, ssh::PASSPHRASE))?;
                Ok(Self::Ssh(SigningKey::of_ssh(key)))
            }
        }
    }
}

/// Unlocks the key of a secret that signs at `time`, without a cache.
/// The work is done on this thread.
///
/// # Errors
///
/// If the secret has no key of this kind, or none that can be unlocked and may sign.
pub fn unlock_signing_key(
    kind: SigningKeyKind,
    secret: SecretData<'_>,
    time: CommitTime,
) -> Result<SigningKey, SigningKeyError> {
    match ParsedKey::read(kind, secret)? {
        ParsedKey::Ssh(key) => Ok(key),
        ParsedKey::OpenPgp(mut key) => {
            let choice = key.choose(time.seconds)?;
            key.unlock(&Passphrase::of(secret, openpgp::PASSPHRASE), choice)
        }
    }
}

/// Returns the fingerprint of all keys and values.
fn digest(secret: SecretData<'_>) -> Fingerprint {
    Fingerprint::of(secret.data.iter().flat_map(|(key, value)| [key.as_bytes(), value.expose()]))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::tenancy::BlockingPool;

    const TIME: CommitTime = CommitTime { seconds: 2_000_000_000, offset: 0 };

    /// Creates a keyring whose namespaces have one thread each.
    fn keyring() -> Keyring {
        Keyring::new(Capacity { pool: BlockingPool::new(2), ..Capacity::default() })
    }

    fn unlock(keyring: &Keyring, name: &str) -> impl Future<Output = Result<SigningKey, SigningKeyError>> {
        let (keyring, name) = (keyring.clone(), name.to_owned());
        let data = BTreeMap::from([("identity".to_owned(), Secret::new("no key"))]);
        async move { keyring.unlock(SigningKeyKind::Ssh, &name, data, TIME).await }
    }

    fn shown(keyring: &Keyring) -> String {
        format!("{keyring:?}")
    }

    #[tokio::test]
    async fn a_key_without_waiting_callers_is_not_unlocked() {
        let keyring = keyring();
        let thread = keyring.capacity.pool.enter("n").await;
        for number in 0..10 {
            assert!(unlock(&keyring, &format!("n/key{number}")).now_or_never().is_none());
        }
        drop(thread);
        // Jobs that were still waiting for the thread would come before this one.
        drop(keyring.capacity.pool.enter("n").await);
        assert!(!shown(&keyring).contains("Err"), "{keyring:?}");
        assert!(unlock(&keyring, "n/key1").await.is_err());
        assert!(shown(&keyring).contains("Err"), "{keyring:?}");
    }

    #[tokio::test]
    async fn a_key_forgotten_during_its_unlock_is_not_cached() {
        let keyring = keyring();
        let thread = keyring.capacity.pool.enter("n").await;
        let mut first = Box::pin(unlock(&keyring, "n/key"));
        assert!(first.as_mut().now_or_never().is_none());
        keyring.forget("n/key");
        let key = || SlotKey { secret: "n/key".to_owned(), kind: SigningKeyKind::Ssh };
        let slot = keyring.slot("n", key());
        assert!(slot.entry.try_lock().is_err(), "a second one waits for the first");
        drop(slot);
        keyring.forget("n/key");
        drop(thread);
        assert!(first.await.is_err());
        assert!(!shown(&keyring).contains("Err"), "{keyring:?}");
        // An empty entry is removed by the next insertion.
        assert!(unlock(&keyring, "n/other").await.is_err());
        assert!(keyring.slots.lock().get(&key()).is_none());
    }
}
