//! The registries as reconciles use them: with the logins that an ImageRepository names.

use kube::ResourceExt;

use super::repository::access::{self, NamespacePool};
use super::repository::access_error::AccessError;
use super::repository::logins::Logins;
use super::tags::{ListFailure, Registry, RepositoryTarget};
use crate::error::chain;
use crate::net::http::HttpError;
use crate::objects::{ObjectName, Objects};
use crate::reconcile::lookup::{LookupFailure, LookupFailureKind};
use crate::reference::Tag;
use crate::registry::{ImageFacts, Listed, Registries, RegistryError, RepositoryAuth};

/// Registries, and the objects with the logins for them.
#[derive(Clone, Debug)]
pub struct AuthenticatedRegistries<O> {
    /// The objects.
    pub objects: O,
    /// The registries.
    pub registries: Registries,
    /// The source of the logins.
    pub logins: Logins,
}

impl<O: Objects + Send + Sync + 'static> AuthenticatedRegistries<O> {
    async fn access(&self, target: &RepositoryTarget) -> Result<RepositoryAuth, AccessError> {
        let RepositoryTarget { repository, timeout, referred_from, .. } = target;
        let own = repository.namespace().unwrap_or_default();
        let namespace = referred_from.as_deref().unwrap_or(&own);
        let namespace_pool = NamespacePool { pool: self.registries.pool(), namespace };
        let found = access::access(&self.objects, repository, &self.logins, namespace_pool).await?;
        for note in &found.notes {
            tracing::warn!("{note}");
        }
        Ok(RepositoryAuth { timeout: *timeout, referred_from: referred_from.clone(), ..found.access })
    }

    async fn look_up(&self, target: &RepositoryTarget, tag: &str) -> Result<Lookup, LookupFailure> {
        let access = self.access(target).await.map_err(|error| {
            let message = chain(&error);
            let message = match error.is_late() {
                true => {
                    let reference = format!("{}:{tag}", target.address);
                    format!("failed fetching descriptor for {reference:?}: {message}")
                }
                false => format!("failed to configure authentication options: {message}"),
            };
            LookupFailure { kind: LookupFailureKind::Denied, message, retry_after: None }
        })?;
        Lookup::new(access, tag)
    }
}

impl<O: Objects + Send + Sync + 'static> Registry for AuthenticatedRegistries<O> {
    async fn tags(&self, target: &RepositoryTarget, known: Option<&str>) -> Result<Listed, ListFailure> {
        let access = self.access(target).await;
        let access = access.map_err(|error| match error.is_late() {
            true => ListFailure::Scan(LookupFailureKind::Denied, chain(&error)),
            false => ListFailure::Login(chain(&error)),
        })?;
        match self.registries.list(access, known).await {
            Ok(listed) => {
                if let Listed::Tags(listing) = &listed
                    && let Some(warning) = listing.warning()
                {
                    let name = ObjectName::of(target.repository.as_ref());
                    tracing::warn!("the tags of ImageRepository {name}: {warning}");
                }
                Ok(listed)
            }
            Err(error @ RegistryError::Http(HttpError::Tls(_) | HttpError::Connection(_))) => {
                Err(ListFailure::Login(chain(&error)))
            }
            Err(error @ RegistryError::Forbidden { .. }) => Err(ListFailure::Forbidden(format!(
                "the registry of spec.image cannot be used: {}",
                chain(&error)
            ))),
            Err(error) => Err(ListFailure::Scan(kind_of(&error), chain(&error))),
        }
    }

    async fn digest(&self, target: &RepositoryTarget, tag: &str) -> Result<String, LookupFailure> {
        self.look_up(target, tag).await?.digest(&self.registries).await
    }

    async fn facts(&self, target: &RepositoryTarget, tag: &str) -> Result<ImageFacts, LookupFailure> {
        self.look_up(target, tag).await?.facts(&self.registries).await
    }
}

/// A lookup of a tag that is about to be made.
#[derive(Clone, Debug)]
pub struct Lookup {
    access: RepositoryAuth,
    tag: Tag,
    /// The address and the tag, as the object names them.
    reference: String,
}

impl Lookup {
    /// Makes a lookup.
    ///
    /// # Errors
    ///
    /// If the tag is invalid.
    pub fn new(access: RepositoryAuth, tag: &str) -> Result<Self, LookupFailure> {
        let reference = format!("{}:{tag}", access.address);
        // No registry can have an invalid tag.
        let tag = Tag::parse(tag).map_err(|error| LookupFailure {
            kind: LookupFailureKind::Missing,
            message: format!("failed parsing reference {reference:?}: {}", chain(&error)),
            retry_after: None,
        })?;
        Ok(Self { access, tag, reference })
    }

    /// Looks up the digest of the tag.
    ///
    /// # Errors
    ///
    /// If the manifest does not exist, or the registry does not answer.
    pub async fn digest(self, registries: &Registries) -> Result<String, LookupFailure> {
        let Self { access, tag, reference } = self;
        let digest = registries.digest(access, &tag).await.map_err(|error| failure(&reference, &error))?;
        Ok(digest.to_string())
    }

    /// Looks up the digest of the tag and the creation time of its image.
    ///
    /// # Errors
    ///
    /// If the image does not exist, or the registry does not answer.
    pub async fn facts(self, registries: &Registries) -> Result<ImageFacts, LookupFailure> {
        let Self { access, tag, reference } = self;
        let repository = registries.repository(access);
        repository.facts(&tag).await.map_err(|error| failure(&reference, &error))
    }
}

fn failure(reference: &str, error: &RegistryError) -> LookupFailure {
    LookupFailure {
        kind: kind_of(error),
        message: format!("failed fetching descriptor for {reference:?}: {}", chain(error)),
        retry_after: error.retry_after(),
    }
}

fn kind_of(error: &RegistryError) -> LookupFailureKind {
    match error {
        error if error.is_not_found() => LookupFailureKind::Missing,
        RegistryError::Refused { response, .. } if matches!(response.status, 401 | 403) => {
            LookupFailureKind::Denied
        }
        RegistryError::Handshake(cause) if !cause.is_not_found() => kind_of(cause),
        RegistryError::Http(
            HttpError::Tls(_) | HttpError::Connection(_) | HttpError::ForbiddenRedirect { .. },
        )
        | RegistryError::Login(_)
        | RegistryError::TokenRealm { .. }
        | RegistryError::Forbidden { .. } => LookupFailureKind::Denied,
        error if error.is_server_fault() => LookupFailureKind::Unavailable,
        _ => LookupFailureKind::Unreadable,
    }
}
