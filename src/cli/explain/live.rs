//! The registry of a policy, as it is now.

use tagboat_api::ImageRepository;

use crate::cli::Failure;
use crate::cli::refused_login::advice;
use crate::cli::scan;
use crate::cli::terminal::say;
use crate::error::chain;
use crate::objects::{ObjectName, Objects};
use crate::reconcile::lookup::{LookFailure, LookFailureKind};
use crate::reconcile::registries::Look;
use crate::reconcile::repository::access::{Threads, access};
use crate::reconcile::repository::exclusion::Exclusion;
use crate::reconcile::repository::logins::Logins;
use crate::reconcile::tags::{Found, ListFailure, Place, Registry};
use crate::reference::TagList;
use crate::registry::{ImageFacts, Registries, RegistryOptions, RepositoryAuth};

/// The registry of one ImageRepository.
pub(super) struct LiveRegistry {
    registries: Registries,
    access: RepositoryAuth,
    exclusions: Vec<String>,
    /// What to do where the registry lets nobody in.
    advice: Option<String>,
}

/// Why the registry cannot be read.
pub(super) struct Unreadable {
    /// What the condition of the ImageRepository says.
    pub(super) condition: String,
    /// The same to a person who can do something about it.
    pub(super) said: String,
}

impl Unreadable {
    /// The caller's own login is in the way.
    pub(super) fn of(failure: &Failure) -> Self {
        let words = failure.sentences().join("; ");
        Self { condition: words.clone(), said: words }
    }
}

/// What is listed.
pub(super) struct Listing {
    /// The tags that the ImageRepository does not leave out.
    pub(super) tags: TagList,
    /// How many there are with those.
    pub(super) number: usize,
}

impl LiveRegistry {
    /// Finds the way there, with the logins of the ImageRepository or of the caller.
    pub(super) async fn reach(
        objects: &impl Objects,
        repository: &ImageRepository,
        logins: &Logins,
    ) -> Result<Self, Unreadable> {
        let name = ObjectName::of(repository);
        let registries = Registries::new(RegistryOptions::from_env());
        let threads = Threads { pool: registries.pool(), namespace: &name.namespace };
        let found = access(objects, repository, logins, threads).await.map_err(|error| {
            let words = chain(&error);
            Unreadable {
                condition: format!("failed to configure authentication options: {words}"),
                said: words,
            }
        })?;
        for note in found.notes {
            say(&format!("warning: ImageRepository {name}: {note}"));
        }
        let advice = advice(repository, logins, &found.access.login);
        let exclusions = repository.spec.effective_exclusion_list();
        Ok(Self { registries, access: found.access, exclusions, advice })
    }

    /// The tags that are listed, less those that the ImageRepository leaves out; or why there are none.
    pub(super) async fn list(&self) -> Result<Listing, Unreadable> {
        let failed = |words: String, advice: Option<&String>| {
            let condition = format!("scan failed: {words}");
            let advice = advice.map(|advice| format!("; {advice}")).unwrap_or_default();
            Unreadable { said: format!("{condition}{advice}"), condition }
        };
        let listed = scan::list(&self.registries, self.access.clone()).await;
        let listed = listed
            .map_err(|error| failed(chain(&error), self.advice.as_ref().filter(|_| error.is_denied())))?;
        let exclusion = Exclusion::parse(&self.exclusions).map_err(|error| failed(chain(&error), None))?;
        let kept = exclusion.apply(&listed.tags, || Ok(())).map_err(|error| failed(chain(&error), None))?;
        Ok(Listing { number: listed.tags.len(), tags: kept })
    }
}

/// The place is the one that was reached, whoever asks.
impl Registry for LiveRegistry {
    async fn tags(&self, _: &Place, _: Option<&str>) -> Result<Found, ListFailure> {
        let listing = self
            .list()
            .await
            .map_err(|unreadable| ListFailure::Scan(LookFailureKind::Unavailable, unreadable.condition))?;
        Ok(Found::Tags(listing.tags.into()))
    }

    async fn digest(&self, _: &Place, tag: &str) -> Result<String, LookFailure> {
        Look::new(self.access.clone(), tag)?.digest(&self.registries).await
    }

    async fn facts(&self, _: &Place, tag: &str) -> Result<ImageFacts, LookFailure> {
        Look::new(self.access.clone(), tag)?.facts(&self.registries).await
    }
}
