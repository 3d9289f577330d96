//! The source of tags and their store, as a reconcile uses them.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use parking_lot::Mutex;
use tagboat_api::ImageRepository;

use crate::error::chain;
use crate::objects::ObjectName;
use crate::reconcile::lookup::{LookupFailure, LookupFailureKind};
use crate::reference::RepositoryAddress;
use crate::registry::store::{Scan, StoreError, StoredHead, StoredScan, StoredSize, StoredTags, TagStore};
use crate::registry::{ImageFacts, Listed};
use crate::tenancy::{Capacity, MemoryReservation};

/// The minimum size in bytes of a stored list for which memory is reserved.
///
/// The memory is reserved before the list is read. `COPIES` is the number of copies that are reserved: the
/// list is read beside the data that is made from it.
const UNRESERVED: u64 = 1 << 20;
const COPIES: u64 = 2;

/// The registries, with the logins that an ImageRepository names.
pub trait Registry: Send + Sync + 'static {
    /// Lists the tags of a repository.
    ///
    /// If nothing has changed since the state that the registry calls `known`, it returns that instead.
    ///
    /// # Errors
    ///
    /// If the listing fails, even on its last page.
    fn tags(
        &self,
        target: &RepositoryTarget,
        known: Option<&str>,
    ) -> impl Future<Output = Result<Listed, ListFailure>> + Send;

    /// Looks up the current digest of a tag.
    ///
    /// # Errors
    ///
    /// If the manifest does not exist, or the registry does not answer.
    fn digest(
        &self,
        target: &RepositoryTarget,
        tag: &str,
    ) -> impl Future<Output = Result<String, LookupFailure>> + Send;

    /// Looks up the current digest of a tag, and the creation time of that image.
    ///
    /// # Errors
    ///
    /// If the image does not exist, or the registry does not answer.
    fn facts(
        &self,
        target: &RepositoryTarget,
        tag: &str,
    ) -> impl Future<Output = Result<ImageFacts, LookupFailure>> + Send;
}

/// A repository as one object accesses it.
#[derive(Clone, Debug)]
pub struct RepositoryTarget {
    /// The object, with the names of the secrets.
    pub repository: Arc<ImageRepository>,
    /// The address that it scans.
    pub address: RepositoryAddress,
    /// The time that one call may take.
    pub timeout: Duration,
    /// The namespace of the object that refers to `repository`, if it is another one.
    ///
    /// The work counts for that namespace.
    pub referred_from: Option<String>,
}

/// Stored tags that were read, with the memory reserved for them and their processing.
#[derive(Debug)]
pub struct OpenTags {
    /// The tags.
    pub stored: Arc<StoredTags>,
    _memory: Option<MemoryReservation>,
}

/// The error of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListFailure {
    /// The login cannot be made.
    Login(String),
    /// The address of the registry is forbidden for objects.
    Forbidden(String),
    /// The registry cannot be read.
    Scan(LookupFailureKind, String),
}

/// The tag store for reconciles, with threads and memory, and a log of its errors.
#[derive(Clone, Debug)]
pub struct SharedTagStore {
    store: Arc<TagStore>,
    /// Threads and memory for reading and writing files.
    capacity: Capacity,
    /// The objects whose file was reported as unreadable or unwritable, and has not changed since.
    reported: Arc<Mutex<BTreeSet<ObjectName>>>,
}

impl SharedTagStore {
    /// Creates a store that reads and writes its files on the blocking pool.
    ///
    /// Memory is reserved for large files.
    pub fn new(store: TagStore, capacity: Capacity) -> Self {
        Self { store: Arc::new(store), capacity, reported: Arc::default() }
    }

    /// Returns the identity of the list that is stored for an object and repository.
    ///
    /// `canonical` is the full name of the repository. The work is done on behalf of `namespace`. Tags that
    /// cannot be read are listed again.
    pub async fn head(&self, namespace: &str, object: &ObjectName, canonical: &str) -> Option<StoredHead> {
        if let Some(known) = self.store.in_memory(object) {
            return Some(known.head()).filter(|known| known.canonical == canonical);
        }
        let (tag_store, object, canonical) = (self.clone(), object.clone(), canonical.to_owned());
        let read = move || {
            let read = tag_store.store.head(&object, &canonical);
            read.unwrap_or_else(|error| tag_store.report_unreadable(&object, &error))
        };
        self.capacity.pool.run(namespace, read).await
    }

    /// Opens the tags that an object last found in a repository, if any are stored.
    ///
    /// `canonical` is the full name of the repository. The work is done on behalf of `namespace`. `work`
    /// returns the memory to reserve for work on a number of tags, beside the tags themselves. Reserves
    /// memory if the tags are many, so the caller must hold none meanwhile.
    pub async fn open(
        &self,
        namespace: &str,
        object: &ObjectName,
        canonical: &str,
        work: impl Fn(u64) -> u64,
    ) -> Option<OpenTags> {
        let size = self.size(namespace, object).await?;
        let memory = self.reserve(namespace, size.bytes + work(size.tags).max(size.bytes)).await;
        let (tag_store, object, canonical) = (self.clone(), object.clone(), canonical.to_owned());
        // The reservation goes to the thread, which goes on if this future is dropped.
        let read = move || Some(OpenTags { stored: tag_store.load(&object, &canonical)?, _memory: memory });
        self.capacity.pool.run(namespace, read).await
    }

    async fn size(&self, namespace: &str, object: &ObjectName) -> Option<StoredSize> {
        if let Some(known) = self.store.size_in_memory(object) {
            return Some(known);
        }
        let (store, key) = (self.store.clone(), object.clone());
        self.capacity.pool.run(namespace, move || store.size(&key)).await
    }

    async fn reserve(&self, namespace: &str, bytes: u64) -> Option<MemoryReservation> {
        match bytes {
            ..UNRESERVED => None,
            _ => Some(self.capacity.memory.reserve(namespace, bytes).await),
        }
    }

    /// Reserves the memory for a change of an object's stored tags.
    async fn reserve_for_change(&self, namespace: &str, object: &ObjectName) -> Option<MemoryReservation> {
        let size = self.size(namespace, object).await?;
        self.reserve(namespace, COPIES * size.bytes).await
    }

    fn load(&self, object: &ObjectName, canonical: &str) -> Option<Arc<StoredTags>> {
        let read = self.store.read(object, canonical);
        read.unwrap_or_else(|error| self.report_unreadable(object, &error))
    }

    fn report_unreadable<T>(&self, object: &ObjectName, error: &StoreError) -> Option<T> {
        self.report_once(object, || {
            tracing::warn!(
                error = chain(error),
                "the tags of ImageRepository {object} are listed again, and their first-seen times are lost: remove \
                 the file, or make it readable for this user"
            );
        });
        None
    }

    /// Reserves the memory for an object's stored tags during a scan.
    ///
    /// The tags of the scan are compared with them; the scan itself must hold no memory.
    pub async fn reserve_for_scan(&self, object: &ObjectName) -> Option<MemoryReservation> {
        self.reserve_for_change(&object.namespace, object).await
    }

    /// Stores the tags of a complete scan.
    ///
    /// This runs on the caller's thread, and may block it. If the tags cannot be written, they are kept in
    /// memory until this process ends.
    ///
    /// # Errors
    ///
    /// A sentence, if they cannot be kept at all.
    pub fn keep(&self, object: &ObjectName, scan: Scan) -> Result<Arc<StoredTags>, String> {
        let saved = self.store.save_scan(object, scan).map_err(|error| chain(&error))?;
        Ok(self.report_write_error(object, saved))
    }

    /// Sets the scan time of a stored list that a later scan found unchanged.
    ///
    /// Then it calls `then` with the list on the blocking pool. Returns `None` if the list is not stored any
    /// more.
    ///
    /// # Errors
    ///
    /// A sentence, if it cannot be kept at all.
    pub async fn renew<T: Send + 'static>(
        &self,
        object: &ObjectName,
        canonical: &str,
        scanned: Timestamp,
        then: impl FnOnce(&StoredTags) -> T + Send + 'static,
    ) -> Result<Option<T>, String> {
        let memory = self.reserve_for_change(&object.namespace, object).await;
        let (tag_store, name, canonical) = (self.clone(), object.clone(), canonical.to_owned());
        let renew = move || {
            let _memory = memory;
            let saved =
                tag_store.store.save_unchanged(&name, &canonical, scanned).map_err(|error| chain(&error))?;
            Ok(saved.map(|saved| then(&tag_store.report_write_error(&name, saved))))
        };
        self.capacity.pool.run(&object.namespace, renew).await
    }

    fn report_write_error(&self, object: &ObjectName, saved: StoredScan) -> Arc<StoredTags> {
        match &saved.write_error {
            None => {
                self.reported.lock().remove(object);
            }
            Some(error) => self.report_once(object, || {
                tracing::warn!(
                    error = chain(error),
                    "cannot store the tags of ImageRepository {object}: free disk space, or make the directory writable \
                     for this user"
                );
            }),
        }
        saved.tags
    }

    /// Logs a message about an object's file, unless one was logged since the file changed.
    fn report_once(&self, object: &ObjectName, log: impl FnOnce()) {
        if self.reported.lock().insert(object.clone()) {
            log();
        }
    }

    /// Stores facts about images of an object's repository, on behalf of a namespace.
    ///
    /// If that fails, the facts are looked up again. Memory is reserved if the repository has many tags.
    pub async fn save_image_facts(
        &self,
        namespace: &str,
        object: &ObjectName,
        canonical: &str,
        facts: Vec<(String, ImageFacts)>,
    ) {
        if facts.is_empty() {
            return;
        }
        let memory = self.reserve_for_change(namespace, object).await;
        let (store, key, canonical) = (self.store.clone(), object.clone(), canonical.to_owned());
        let save = move || {
            let _memory = memory;
            store.save_images(&key, &canonical, facts)
        };
        let saved = self.capacity.pool.run(namespace, save).await;
        if let Err(error) = saved {
            tracing::warn!(error = chain(&error), "cannot store the ages of images");
        }
    }

    /// Deletes an object's stored tags.
    ///
    /// # Errors
    ///
    /// A sentence, if they cannot be deleted.
    pub async fn delete(&self, object: &ObjectName) -> Result<(), String> {
        let (store, key) = (self.store.clone(), object.clone());
        let deleted = self.capacity.pool.run(&object.namespace, move || store.delete(&key)).await;
        self.reported.lock().remove(object);
        deleted.map_err(|error| chain(&error))
    }

    /// Deletes the stored tags of all objects except those that exist.
    pub fn sweep(&self, is_there: impl Fn(&ObjectName) -> bool) {
        self.store.sweep(is_there);
    }

    /// Deletes the stored tags that have been old for long.
    ///
    /// The tags of objects that exist are kept.
    pub fn sweep_old(&self, is_there: impl Fn(&ObjectName) -> bool, now: SystemTime) {
        self.store.sweep_old(is_there, now);
    }
}
