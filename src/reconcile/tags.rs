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
    /// Those of whose file something was said that has not changed since.
    told: Arc<Mutex<BTreeSet<ObjectName>>>,
}

impl Shelf {
    /// The store.
    pub fn new(store: TagStore) -> Self {
        Self { store: Arc::new(store), told: Arc::default() }
    }

    /// What an object last found in the repository of this full name, if anything is known of it. What cannot be read
    /// is scanned anew.
    pub fn read(&self, object: &ObjectName, canonical: &str) -> Option<Arc<StoredTags>> {
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
    pub fn keep(&self, object: &ObjectName, scan: Scan) -> Result<Arc<StoredTags>, String> {
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

    /// Keeps what was learned of images. It is looked up again where that fails.
    pub fn learn(&self, object: &ObjectName, canonical: &str, learned: Vec<(String, ImageFacts)>) {
        if learned.is_empty() {
            return;
        }
        if let Err(error) = self.store.learn(&key(object), canonical, learned) {
            tracing::warn!(error = chain(&error), "the ages of images cannot be kept");
        }
    }

    /// Forgets what an object found.
    ///
    /// # Errors
    ///
    /// A sentence, when that cannot be done.
    pub fn delete(&self, object: &ObjectName) -> Result<(), String> {
        self.store.delete(&key(object)).map_err(|error| chain(&error))
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
