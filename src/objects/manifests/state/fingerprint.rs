//! What tells objects from others, without being them: a URL may hold a password.

use std::io;

use kube::ResourceExt;
use serde::Serialize;
use tagboat_api::settings::PREFIX;
use tagboat_api::{GitRepository, ImageRepository, ImageUpdateAutomation};

use crate::policy::RepositoryWishes;

/// What tells an automation and its source from others.
pub(super) fn fingerprint(automation: &ImageUpdateAutomation, source: &GitRepository) -> io::Result<Vec<u8>> {
    let source = (source.namespace(), source.name_any(), &source.spec);
    hash(&(&automation.spec, automation.annotations(), source))
}

/// What tells an image repository from others, as far as persons have a say in it.
pub(super) fn wishes(repository: &ImageRepository) -> io::Result<Vec<u8>> {
    hash(&(repository.namespace(), repository.name_any(), RepositoryWishes::of(repository)))
}

/// The annotations of an object that are settings of ours.
pub(super) fn settings(object: &impl ResourceExt) -> Vec<(&String, &String)> {
    object.annotations().iter().filter(|(name, _)| name.starts_with(PREFIX)).collect()
}

fn hash(content: &impl Serialize) -> io::Result<Vec<u8>> {
    let content = serde_json::to_vec(content)?;
    let id = git2::Oid::hash_object(git2::ObjectType::Blob, &content).map_err(io::Error::other)?;
    Ok(id.to_string().into_bytes())
}
