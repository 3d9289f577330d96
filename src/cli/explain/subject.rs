//! The policy that is explained, and its repository.

use std::collections::BTreeMap;

use tagboat_api::{ImagePolicy, ImageRepository};

/// A policy with its repository.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) policy: ImagePolicy,
    pub(super) repository: RepositoryLookup,
    /// The labels of the policy's namespace, if its access depends on them.
    pub(super) labels: BTreeMap<String, String>,
    /// The other members of its release group, unless `--tags` gives the tags.
    pub(super) members: Vec<Subject>,
}

/// The result of the lookup of a policy's ImageRepository.
#[derive(Debug)]
pub(super) enum RepositoryLookup {
    /// It exists.
    Found(Box<ImageRepository>),
    /// The cluster has none of this name.
    Missing,
    /// The manifests have none of this name; a cluster may have one.
    NotGiven,
    /// It is among the manifests and invalid: the errors, one sentence each.
    Invalid(Vec<String>),
    /// `--tags` gives the tags.
    NotNeeded,
}
