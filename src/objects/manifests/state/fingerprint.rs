//! Fingerprints that identify objects without their content: a URL may hold a password.

use kube::ResourceExt;
use serde::Serialize;
use tagboat_api::{GitRepository, ImageRepository, ImageUpdateAutomation};

use crate::policy::RepositoryIntent;

/// Returns the fingerprint of an automation and its source.
pub(super) fn fingerprint(automation: &ImageUpdateAutomation, source: &GitRepository) -> Vec<u8> {
    let source = (source.namespace(), source.name_any(), &source.spec);
    hash(&(&automation.spec, automation.annotations(), source))
}

/// Returns the fingerprint of the user-set fields of an image repository.
pub(super) fn intent(repository: &ImageRepository) -> Vec<u8> {
    hash(&(repository.namespace(), repository.name_any(), RepositoryIntent::of(repository)))
}

fn hash(content: &impl Serialize) -> Vec<u8> {
    let content = serde_json::to_vec(content).expect("an object is plain JSON");
    let id = git2::Oid::hash_object(git2::ObjectType::Blob, &content).expect("any bytes are a blob");
    id.to_string().into_bytes()
}
