//! Registry of a policy, read while it is explained.

use tagboat_api::ImageRepository;

use crate::cli::Failure;
use crate::cli::refused_login::advice;
use crate::cli::scan;
use crate::cli::terminal::say;
use crate::error::chain;
use crate::objects::{ObjectName, Objects};
use crate::reconcile::lookup::{LookupFailure, LookupFailureKind};
use crate::reconcile::registries::Lookup;
use crate::reconcile::repository::access::{NamespacePool, access};
use crate::reconcile::repository::exclusion::Exclusion;
use crate::reconcile::repository::logins::Logins;
use crate::reconcile::tags::{ListFailure, Registry, RepositoryTarget};
use crate::reference::TagList;
use crate::registry::{ImageFacts, Listed, Registries, RegistryOptions, RepositoryAuth};

/// The registry of one ImageRepository.
pub(super) struct LiveRegistry {
    registries: Registries,
    access: RepositoryAuth,
    exclusions: Vec<String>,
    /// Advice if the registry refuses the login.
    advice: Option<String>,
}

/// The failure of a registry or of its login.
pub(super) struct RegistryFailure {
    /// The message of the condition of the ImageRepository.
    pub(super) condition: String,
    /// The message with advice for the user.
    pub(super) message: String,
}

impl RegistryFailure {
    /// Creates the failure of the user's own login.
    pub(super) fn of(failure: &Failure) -> Self {
        let message = failure.sentences().join("; ");
        Self { condition: message.clone(), message }
    }
}

/// The tags of a registry.
pub(super) struct Listing {
    /// The tags that `spec.exclusionList` does not exclude.
    pub(super) tags: TagList,
    /// The number of tags before exclusion.
    pub(super) number: usize,
}

impl LiveRegistry {
    /// Prepares access to the registry, with the logins of the ImageRepository or of the user.
    pub(super) async fn reach(
        objects: &impl Objects,
        repository: &ImageRepository,
        logins: &Logins,
    ) -> Result<Self, RegistryFailure> {
        let name = ObjectName::of(repository);
        let registries = Registries::new(RegistryOptions::from_env());
        let namespace_pool = NamespacePool { pool: registries.pool(), namespace: &name.namespace };
        let found = access(objects, repository, logins, namespace_pool).await.map_err(|error| {
            let message = chain(&error);
            RegistryFailure {
                condition: format!("failed to configure authentication options: {message}"),
                message,
            }
        })?;
        for note in found.notes {
            say(&format!("warning: ImageRepository {name}: {note}"));
        }
        let advice = advice(repository, logins, &found.access.login);
        let exclusions = repository.spec.effective_exclusion_list();
        Ok(Self { registries, access: found.access, exclusions, advice })
    }

    /// Lists the tags, without those that `spec.exclusionList` excludes.
    pub(super) async fn list(&self) -> Result<Listing, RegistryFailure> {
        let failed = |message: String, advice: Option<&String>| {
            let condition = format!("scan failed: {message}");
            let advice = advice.map(|advice| format!("; {advice}")).unwrap_or_default();
            RegistryFailure { message: format!("{condition}{advice}"), condition }
        };
        let listed = scan::list(&self.registries, self.access.clone()).await;
        let listed = listed
            .map_err(|error| failed(chain(&error), self.advice.as_ref().filter(|_| error.is_denied())))?;
        let exclusion = Exclusion::parse(&self.exclusions).map_err(|error| failed(chain(&error), None))?;
        let kept = exclusion.apply(&listed.tags, || Ok(())).map_err(|error| failed(chain(&error), None))?;
        Ok(Listing { number: listed.tags.len(), tags: kept })
    }
}

/// There is one registry, so the place in a request does not matter.
impl Registry for LiveRegistry {
    async fn tags(&self, _: &RepositoryTarget, _: Option<&str>) -> Result<Listed, ListFailure> {
        let listing = self
            .list()
            .await
            .map_err(|unreadable| ListFailure::Scan(LookupFailureKind::Unavailable, unreadable.condition))?;
        Ok(Listed::Tags(listing.tags.into()))
    }

    async fn digest(&self, _: &RepositoryTarget, tag: &str) -> Result<String, LookupFailure> {
        Lookup::new(self.access.clone(), tag)?.digest(&self.registries).await
    }

    async fn facts(&self, _: &RepositoryTarget, tag: &str) -> Result<ImageFacts, LookupFailure> {
        Lookup::new(self.access.clone(), tag)?.facts(&self.registries).await
    }
}
