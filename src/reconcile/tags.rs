//! Where tags come from and where they are kept, as far as a reconcile has to do with it.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tagboat_api::ImageRepository;

use super::policy::digest::{LookFailure, LookFailureKind};
use crate::objects::ObjectName;
use crate::reference::{RepositoryAddress, TagList};
use crate::registry::ImageFacts;
use crate::registry::store::{Scan, StoreKey, StoredTags, TagStore};
use crate::sentence::chain;
use crate::tenancy::BlockingPool;

/// The registries, behind whatever logins an ImageRepository names.
pub trait Registry: Send + Sync + 'static {
    /// Every tag of a repository, or word that nothing has changed since `known`.
    ///
    /// # Errors
    ///
    /// When the listing fails, be it on its last page.
    fn tags(
        &self,
        place: &Place,
        known: Option<&StoredTags>,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing has changed since the state that was known.
    Unchanged,
    /// The tags, and how the registry calls this state of the list.
    Tags(TagList, Option<String>),
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
    /// Threads for reading and writing files.
    pool: BlockingPool,
    /// Those of whose file something was said that has not changed since.
    told: Arc<Mutex<BTreeSet<ObjectName>>>,
}

impl Shelf {
    /// A store whose files are read and written on a pool.
    pub fn new(store: TagStore, pool: BlockingPool) -> Self {
        Self { store: Arc::new(store), pool, told: Arc::default() }
    }

    /// The tags that an object last found in the repository of this full name, if anything is known of it, for an object of
    /// a namespace. Tags that cannot be read are listed anew.
    pub async fn read(
        &self,
        namespace: &str,
        object: &ObjectName,
        canonical: &str,
    ) -> Option<Arc<StoredTags>> {
        if let Some(known) = self.store.in_memory(&key(object)) {
            return Some(known).filter(|known| known.canonical == canonical);
        }
        let (shelf, object, canonical) = (self.clone(), object.clone(), canonical.to_owned());
        self.pool.run(namespace, move || shelf.load(&object, &canonical)).await
    }

    fn load(&self, object: &ObjectName, canonical: &str) -> Option<Arc<StoredTags>> {
        self.store.read(&key(object), canonical).unwrap_or_else(|error| {
            self.tell(object, || {
                tracing::warn!(
                    error = chain(&error),
                    "the tags of ImageRepository {object} are listed anew, and when each was first there is forgotten: \
                     remove the file, or let this user read it"
                );
            });
            None
        })
    }

    /// Keeps what a complete scan found. Where it cannot be written, it is known as long as this process lasts.
    ///
    /// # Errors
    ///
    /// A sentence, when it cannot be kept at all.
    pub async fn keep(&self, object: &ObjectName, scan: Scan) -> Result<Arc<StoredTags>, String> {
        let (shelf, name) = (self.clone(), object.clone());
        self.pool.run(&object.namespace, move || shelf.write(&name, scan)).await
    }

    fn write(&self, object: &ObjectName, scan: Scan) -> Result<Arc<StoredTags>, String> {
        let kept = self.store.keep(&key(object), scan).map_err(|error| chain(&error))?;
        match &kept.trouble {
            None => {
                self.told().remove(object);
            }
            Some(error) => self.tell(object, || {
                tracing::warn!(
                    error = chain(error),
                    "the tags of ImageRepository {object} are not remembered beyond this process: make room, or let this \
                     user write there"
                );
            }),
        }
        Ok(kept.tags)
    }

    /// Says something of an object's file, if nothing was said of it yet.
    fn tell(&self, object: &ObjectName, words: impl FnOnce()) {
        if self.told().insert(object.clone()) {
            words();
        }
    }

    fn told(&self) -> MutexGuard<'_, BTreeSet<ObjectName>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps facts about images of an object's repository, for an object of a namespace. They are looked up again if that
    /// fails.
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
        let (store, key, canonical) = (self.store.clone(), key(object), canonical.to_owned());
        let kept = self.pool.run(namespace, move || store.learn(&key, &canonical, learned)).await;
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
        let deleted = self.pool.run(&object.namespace, move || store.delete(&key)).await;
        self.told().remove(object);
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
