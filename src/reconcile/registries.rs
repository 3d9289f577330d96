//! The registries as reconciles ask them: with the logins that an ImageRepository names.

use std::time::Duration;

use tagboat_api::ImageRepository;

use super::policy::digest::{LookFailure, LookFailureKind};
use super::repository::access::{self, AccessError};
use super::tags::{Found, ListFailure, Place, Registry};
use crate::objects::Objects;
use crate::reference::Tag;
use crate::registry::store::StoredTags;
use crate::registry::{Access, ListOptions, Listed, Registries, RegistryError};
use crate::sentence::chain;

/// Registries, and the objects with the logins for them.
#[derive(Clone, Debug)]
pub struct KnownRegistries<O> {
    /// The objects.
    pub objects: O,
    /// The registries.
    pub registries: Registries,
}

impl<O: Objects + Send + Sync + 'static> KnownRegistries<O> {
    async fn access(&self, repository: &ImageRepository, timeout: Duration) -> Result<Access, AccessError> {
        let found = access::access(&self.objects, repository).await?;
        for note in &found.notes {
            tracing::warn!("{note}");
        }
        Ok(Access { timeout, ..found.access })
    }
}

impl<O: Objects + Send + Sync + 'static> Registry for KnownRegistries<O> {
    async fn tags(&self, place: &Place, known: Option<&StoredTags>) -> Result<Found, ListFailure> {
        let access = self.access(&place.repository, place.timeout).await;
        let access = access.map_err(|error| ListFailure::Login(chain(&error)))?;
        let known = known.and_then(|known| known.etag.as_deref());
        let options = ListOptions { known, ..ListOptions::default() };
        match self.registries.list(access, options).await {
            Ok(Listed::Unchanged) => Ok(Found::Unchanged),
            Ok(Listed::Tags(listing)) => Ok(Found::Tags(listing.tags, listing.etag)),
            Err(error @ (RegistryError::Tls(_) | RegistryError::Proxy { .. })) => {
                Err(ListFailure::Login(chain(&error)))
            }
            Err(error) => Err(ListFailure::Scan(chain(&error))),
        }
    }

    async fn digest(&self, place: &Place, tag: &str) -> Result<String, LookFailure> {
        let access = self.access(&place.repository, place.timeout).await.map_err(|error| LookFailure {
            kind: LookFailureKind::Denied,
            words: format!("failed to configure authentication options: {}", chain(&error)),
            retry_after: None,
        })?;
        let reference = format!("{}:{tag}", place.address);
        let failure = |error: &RegistryError| LookFailure {
            kind: kind_of(error),
            words: format!("failed fetching descriptor for {reference:?}: {}", chain(error)),
            retry_after: error.retry_after(),
        };
        // What cannot be a tag can stand in no registry.
        let tag = Tag::parse(tag).map_err(|error| LookFailure {
            kind: LookFailureKind::Missing,
            words: format!("failed parsing reference {reference:?}: {}", chain(&error)),
            retry_after: None,
        })?;
        let repository = self.registries.repository(access).map_err(|error| failure(&error))?;
        let digest = repository.digest(&tag).await.map_err(|error| failure(&error))?;
        Ok(digest.to_string())
    }
}

fn kind_of(error: &RegistryError) -> LookFailureKind {
    match error {
        error if error.is_not_found() => LookFailureKind::Missing,
        RegistryError::Refused { refusal, .. } if matches!(refusal.status, 401 | 403) => {
            LookFailureKind::Denied
        }
        RegistryError::Tls(_) | RegistryError::Proxy { .. } | RegistryError::Realm { .. } => {
            LookFailureKind::Denied
        }
        _ => LookFailureKind::Unavailable,
    }
}
