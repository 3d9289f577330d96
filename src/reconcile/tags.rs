//! Where tags come from and where they are kept, as far as a reconcile has to do with it.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use parking_lot::Mutex;
use tagboat_api::ImageRepository;

use crate::objects::ObjectName;
use crate::reconcile::lookup::{LookFailure, LookFailureKind};
use crate::reference::RepositoryAddress;
use crate::registry::store::{
    Kept, Scan, StoreError, StoreKey, StoredHead, StoredSize, StoredTags, TagStore,
};
use crate::registry::{ImageFacts, Listing};
use crate::sentence::chain;
use crate::tenancy::{Capacity, MemoryReservation};

/// The size of a stored list from which on memory is reserved before it is read, and for how many times its size: it is
/// read beside what is made of it.
const UNRESERVED: u64 = 1 << 20;
const COPIES: u64 = 2;

/// The registries, behind whatever logins an ImageRepository names.
pub trait Registry: Send + Sync + 'static {
    /// Every tag of a repository, or word that nothing has changed since the state that the registry calls `known`.
    ///
    /// # Errors
    ///
    /// When the listing fails, be it on its last page.
    fn tags(
        &self,
        place: &Place,
        known: Option<&str>,
    ) -> impl Future<Output = Result<Found, ListFailure>> + Send;

    /// The digest of what a tag stands for now.
    ///
    /// # Errors
    ///
    /// When there is no such manifest, or the registry does not say.
    fn digest(&self, place: &Place, tag: &str) -> impl Future<Output = Result<String, LookFailure>> + Send;

    /// The digest of what a tag stands for now, and when that image was made.
    ///
    /// # Errors
    ///
    /// When there is no such image, or the registry does not say.
    fn facts(&self, place: &Place, tag: &str)
    -> impl Future<Output = Result<ImageFacts, LookFailure>> + Send;
}

/// A repository as one object reaches it.
#[derive(Clone, Debug)]
pub struct Place {
    /// The object, with the names of the secrets.
    pub repository: Arc<ImageRepository>,
    /// What it scans.
    pub address: RepositoryAddress,
    /// The time that one call may take.
    pub timeout: Duration,
    /// The namespace of the object that refers to `repository`, if it is another one: what is done counts for it.
    pub referred_from: Option<String>,
}

/// What a listing found.
#[derive(Clone, Debug)]
pub enum Found {
    /// Nothing has changed since the state that was known.
    Unchanged,
    /// The tags.
    Tags(Listing),
}

/// Stored tags that were read, and the memory that is reserved for them and for work on them.
#[derive(Debug)]
pub struct OpenTags {
    /// The tags.
    pub stored: Arc<StoredTags>,
    _memory: Option<MemoryReservation>,
}

/// Why a listing failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListFailure {
    /// What is needed to log in cannot be put together.
    Login(String),
    /// The registry is where no object may lead.
    Forbidden(String),
    /// The registry could not be read.
    Scan(LookFailureKind, String),
}

/// What was found, for as long as it is needed: the store, as reconciles use it.
#[derive(Clone, Debug)]
pub struct Shelf {
    store: Arc<TagStore>,
    /// Threads and memory for reading and writing files.
    capacity: Capacity,
    /// Those of whose file something was said that has not changed since.
    told: Arc<Mutex<BTreeSet<ObjectName>>>,
}

impl Shelf {
    /// A store whose files are read and written on the blocking pool, with memory reserved for large ones.
    pub fn new(store: TagStore, capacity: Capacity) -> Self {
        Self { store: Arc::new(store), capacity, told: Arc::default() }
    }

    /// The identity of the list that is stored for an object and the repository of this full name, on behalf of a
    /// namespace. Tags that cannot be read are listed anew.
    pub async fn head(&self, namespace: &str, object: &ObjectName, canonical: &str) -> Option<StoredHead> {
        if let Some(known) = self.store.in_memory(&key(object)) {
            return Some(known.head()).filter(|known| known.canonical == canonical);
        }
        let (shelf, object, canonical) = (self.clone(), object.clone(), canonical.to_owned());
        let read = move || {
            let read = shelf.store.head(&key(&object), &canonical);
            read.unwrap_or_else(|error| shelf.tell_of_unreadable(&object, &error))
        };
        self.capacity.pool.run(namespace, read).await
    }

    /// The tags that an object last found in the repository of this full name, if anything is known of it, on behalf of a
    /// namespace. `work` is the memory that is to be reserved for work on so many tags, beside the tags themselves.
    ///
    /// Reserves memory if the tags are many, so the caller must hold none meanwhile.
    pub async fn open(
        &self,
        namespace: &str,
        object: &ObjectName,
        canonical: &str,
        work: impl Fn(u64) -> u64,
    ) -> Option<OpenTags> {
        let size = self.size(namespace, object).await?;
        let memory = self.reserve(namespace, size.bytes + work(size.tags).max(size.bytes)).await;
        let (shelf, object, canonical) = (self.clone(), object.clone(), canonical.to_owned());
        // The reservation goes to the thread, which goes on if this future is dropped.
        let read = move || Some(OpenTags { stored: shelf.load(&object, &canonical)?, _memory: memory });
        self.capacity.pool.run(namespace, read).await
    }

    async fn size(&self, namespace: &str, object: &ObjectName) -> Option<StoredSize> {
        if let Some(known) = self.store.size_in_memory(&key(object)) {
            return Some(known);
        }
        let (store, key) = (self.store.clone(), key(object));
        self.capacity.pool.run(namespace, move || store.size(&key)).await
    }

    async fn reserve(&self, namespace: &str, bytes: u64) -> Option<MemoryReservation> {
        match bytes {
            ..UNRESERVED => None,
            _ => Some(self.capacity.memory.reserve(namespace, bytes).await),
        }
    }

    /// Reserves the memory for a change of what is stored for an object.
    async fn reserve_for_change(&self, namespace: &str, object: &ObjectName) -> Option<MemoryReservation> {
        let size = self.size(namespace, object).await?;
        self.reserve(namespace, COPIES * size.bytes).await
    }

    fn load(&self, object: &ObjectName, canonical: &str) -> Option<Arc<StoredTags>> {
        let read = self.store.read(&key(object), canonical);
        read.unwrap_or_else(|error| self.tell_of_unreadable(object, &error))
    }

    fn tell_of_unreadable<T>(&self, object: &ObjectName, error: &StoreError) -> Option<T> {
        self.tell(object, || {
            tracing::warn!(
                error = chain(error),
                "the tags of ImageRepository {object} are listed anew, and when each was first there is forgotten: \
                 remove the file, or let this user read it"
            );
        });
        None
    }

    /// Reserves the memory for the tags that are stored for an object, which a scan's are compared with; the scan itself
    /// must hold none.
    pub async fn reserve_for_scan(&self, object: &ObjectName) -> Option<MemoryReservation> {
        self.reserve_for_change(&object.namespace, object).await
    }

    /// Keeps what a complete scan found, on this thread, which may block. Where it cannot be written, it is known as long as
    /// this process lasts.
    ///
    /// # Errors
    ///
    /// A sentence, when it cannot be kept at all.
    pub fn keep(&self, object: &ObjectName, scan: Scan) -> Result<Arc<StoredTags>, String> {
        let kept = self.store.keep(&key(object), scan).map_err(|error| chain(&error))?;
        Ok(self.told_of_trouble(object, kept))
    }

    /// Makes of a list that is stored one that was scanned at another time, which found it unchanged, and does something
    /// with it on the blocking pool; nothing if it is not stored any more.
    ///
    /// # Errors
    ///
    /// A sentence, when it cannot be kept at all.
    pub async fn renew<T: Send + 'static>(
        &self,
        object: &ObjectName,
        canonical: &str,
        scanned: Timestamp,
        then: impl FnOnce(&StoredTags) -> T + Send + 'static,
    ) -> Result<Option<T>, String> {
        let memory = self.reserve_for_change(&object.namespace, object).await;
        let (shelf, name, canonical) = (self.clone(), object.clone(), canonical.to_owned());
        let renew = move || {
            let _memory = memory;
            let kept = shelf.store.renew(&key(&name), &canonical, scanned).map_err(|error| chain(&error))?;
            Ok(kept.map(|kept| then(&shelf.told_of_trouble(&name, kept))))
        };
        self.capacity.pool.run(&object.namespace, renew).await
    }

    fn told_of_trouble(&self, object: &ObjectName, kept: Kept) -> Arc<StoredTags> {
        match &kept.trouble {
            None => {
                self.told.lock().remove(object);
            }
            Some(error) => self.tell(object, || {
                tracing::warn!(
                    error = chain(error),
                    "the tags of ImageRepository {object} are not remembered beyond this process: make room, or let this \
                     user write there"
                );
            }),
        }
        kept.tags
    }

    /// Says something of an object's file, if nothing was said of it yet.
    fn tell(&self, object: &ObjectName, words: impl FnOnce()) {
        if self.told.lock().insert(object.clone()) {
            words();
        }
    }

    /// Keeps facts about images of an object's repository, for an object of a namespace. They are looked up again if that
    /// fails. Reserves memory if the repository's tags are many.
    pub async fn learn(
        &self,
        namespace: &str,
        object: &ObjectName,
        canonical: &str,
        learned: Vec<(String, ImageFacts)>,
    ) {
        if learned.is_empty() {
            return;
        }
        let memory = self.reserve_for_change(namespace, object).await;
        let (store, key, canonical) = (self.store.clone(), key(object), canonical.to_owned());
        let learn = move || {
            let _memory = memory;
            store.learn(&key, &canonical, learned)
        };
        let kept = self.capacity.pool.run(namespace, learn).await;
        if let Err(error) = kept {
            tracing::warn!(error = chain(&error), "the ages of images cannot be kept");
        }
    }

    /// Forgets what an object found.
    ///
    /// # Errors
    ///
    /// A sentence, when that cannot be done.
    pub async fn delete(&self, object: &ObjectName) -> Result<(), String> {
        let (store, key) = (self.store.clone(), key(object));
        let deleted = self.capacity.pool.run(&object.namespace, move || store.delete(&key)).await;
        self.told.lock().remove(object);
        deleted.map_err(|error| chain(&error))
    }

    /// Forgets all objects but those that are there.
    pub fn sweep(&self, is_there: impl Fn(&ObjectName) -> bool) {
        self.store.sweep(|key| is_there(&name(key)));
    }

    /// Forgets what has been old for long, but that of the objects that are there.
    pub fn sweep_old(&self, is_there: impl Fn(&ObjectName) -> bool, now: SystemTime) {
        self.store.sweep_old(|key| is_there(&name(key)), now);
    }
}

fn name(key: &StoreKey) -> ObjectName {
    ObjectName { namespace: key.namespace.clone(), name: key.name.clone() }
}

fn key(object: &ObjectName) -> StoreKey {
    StoreKey { namespace: object.namespace.clone(), name: object.name.clone() }
}
