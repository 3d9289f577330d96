//! Where tags come from and where they are kept, as far as a reconcile has to do with it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

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
pub struct Shelf(Arc<TagStore>);

impl Shelf {
    /// The store.
    pub fn new(store: TagStore) -> Self {
        Self(Arc::new(store))
    }

    /// What an object last found in the repository of this full name, if anything is known of it. What cannot be read
    /// is scanned anew.
    pub fn read(&self, object: &ObjectName, canonical: &str) -> Option<Arc<StoredTags>> {
        self.0.read(&key(object), canonical).unwrap_or_else(|error| {
            tracing::warn!(
                error = chain(&error),
                "the tags that were found cannot be read, and are listed anew"
            );
            None
        })
    }

    /// Keeps what a complete scan found.
    ///
    /// # Errors
    ///
    /// A sentence, when it cannot be kept; what was there before stays.
    pub fn keep(&self, object: &ObjectName, scan: Scan) -> Result<Arc<StoredTags>, String> {
        self.0.keep(&key(object), scan).map_err(|error| chain(&error))
    }

    /// Keeps what was learned of images. It is looked up again where that fails.
    pub fn learn(&self, object: &ObjectName, canonical: &str, learned: Vec<(String, ImageFacts)>) {
        if learned.is_empty() {
            return;
        }
        if let Err(error) = self.0.learn(&key(object), canonical, learned) {
            tracing::warn!(error = chain(&error), "the ages of images cannot be kept");
        }
    }

    /// Forgets what an object found.
    ///
    /// # Errors
    ///
    /// A sentence, when that cannot be done.
    pub fn delete(&self, object: &ObjectName) -> Result<(), String> {
        self.0.delete(&key(object)).map_err(|error| chain(&error))
    }

    /// Forgets all objects but those that are there.
    pub fn sweep(&self, is_there: impl Fn(&ObjectName) -> bool) {
        self.0
            .sweep(|key| is_there(&ObjectName { namespace: key.namespace.clone(), name: key.name.clone() }));
    }
}

fn key(object: &ObjectName) -> StoreKey {
    StoreKey { namespace: object.namespace.clone(), name: object.name.clone() }
}
