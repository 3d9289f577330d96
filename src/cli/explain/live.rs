//! The registry of a policy, as it is now.

use tagboat_api::ImageRepository;

use crate::cli::Failure;
use crate::cli::scan;
use crate::cli::terminal::say;
use crate::objects::{ObjectName, Objects};
use crate::reconcile::policy::digest::{LookFailure, LookFailureKind};
use crate::reconcile::registries::Look;
use crate::reconcile::repository::access::access;
use crate::reconcile::repository::exclusion::Exclusion;
use crate::reconcile::repository::logins::Logins;
use crate::reconcile::tags::{Found, ListFailure, Place, Registry};
use crate::reference::TagList;
use crate::registry::store::StoredTags;
use crate::registry::{Access, ImageFacts, Registries, RegistryOptions};
use crate::sentence::chain;

/// The registry of one ImageRepository.
pub(super) struct LiveRegistry {
    registries: Registries,
    access: Access,
    exclusions: Vec<String>,
}

impl LiveRegistry {
    /// Finds the way there, with the logins of the ImageRepository or of the caller.
    pub(super) async fn reach(
        objects: &impl Objects,
        repository: &ImageRepository,
        logins: &Logins,
    ) -> Result<Self, Failure> {
        let name = ObjectName::of(repository);
        let failed = |error: String| Failure::new(format!("ImageRepository {name}: {error}"));
        let found = access(objects, repository, logins).await.map_err(|error| failed(chain(&error)))?;
        for note in found.notes {
            say(&format!("warning: ImageRepository {name}: {note}"));
        }
        let registries = Registries::new(RegistryOptions::of_this_process());
        Ok(Self { registries, access: found.access, exclusions: repository.spec.effective_exclusion_list() })
    }

    /// The tags that are listed, less those that the ImageRepository leaves out; or why there are none.
    pub(super) async fn list(&self) -> Result<TagList, String> {
        let tags = scan::list(&self.registries, self.access.clone()).await;
        let tags = tags.map_err(|error| format!("scan failed: {}", chain(&error)))?;
        let exclusion = Exclusion::parse(&self.exclusions);
        let exclusion = exclusion.map_err(|error| format!("scan failed: {}", chain(&error)))?;
        Ok(exclusion.apply(&tags))
    }
}

/// The place is the one that was reached, whoever asks.
impl Registry for LiveRegistry {
    async fn tags(&self, _: &Place, _: Option<&StoredTags>) -> Result<Found, ListFailure> {
        let tags = self.list().await;
        let tags = tags.map_err(|words| ListFailure::Scan(LookFailureKind::Unavailable, words))?;
        Ok(Found::Tags(tags, None))
    }

    async fn digest(&self, _: &Place, tag: &str) -> Result<String, LookFailure> {
        Look::new(self.access.clone(), tag)?.digest(&self.registries).await
    }

    async fn facts(&self, _: &Place, tag: &str) -> Result<ImageFacts, LookFailure> {
        Look::new(self.access.clone(), tag)?.facts(&self.registries).await
    }
}
