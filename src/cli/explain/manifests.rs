//! A policy among manifests.

use std::collections::BTreeMap;

use kube::ResourceExt;
use tagboat_api::{ImagePolicy, ImageRepository};

use super::subject::{Neighbour, Subject, Wanted};
use crate::cli::Failure;
use crate::cli::given::policy_name;
use crate::cli::terminal::say;
use crate::objects::ObjectName;
use crate::objects::manifests::{Manifests, NAME_LABEL};
use crate::reconcile::policy::access::needs_labels;
use crate::reconcile::policy::request::repository_of;

/// The policy that is wanted, of which there may be one only, and what stands around it.
pub(super) fn manifests(manifests: &Manifests, wanted: &Wanted<'_>) -> Result<Subject, Failure> {
    let policy = find(manifests, wanted)?.clone();
    let name = repository_of(&policy);
    let repository = manifests.repositories().find(|repository| ObjectName::of(*repository) == name);
    let repository = if wanted.has_tags { None } else { repository };
    let own = policy.namespace().unwrap_or_default();
    let labels = repository.map(|repository| labels(manifests, &own, repository)).unwrap_or_default();
    let repository = match repository {
        Some(repository) => Neighbour::Found(Box::new(repository.clone())),
        None if wanted.has_tags => Neighbour::NotNeeded,
        None => Neighbour::NotGiven,
    };
    Ok(Subject { policy, repository, labels })
}

fn find<'m>(manifests: &'m Manifests, wanted: &Wanted<'_>) -> Result<&'m ImagePolicy, Failure> {
    let fits = |policy: &&ImagePolicy| {
        policy.name_any() == wanted.name
            && wanted.namespace.is_none_or(|namespace| policy.namespace().as_deref() == Some(namespace))
    };
    wanted.only(manifests.policies().filter(fits).collect())?.ok_or_else(|| {
        let all: Vec<String> = manifests.policies().map(|policy| policy_name(policy).to_string()).collect();
        let there = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        let (name, place) = (wanted.name, wanted.place());
        Failure::Usage(format!("no ImagePolicy {name} is among the manifests{place}; there is {there}"))
    })
}

/// The labels of the policy's namespace, as far as its manifest has them.
fn labels(manifests: &Manifests, own: &str, repository: &ImageRepository) -> BTreeMap<String, String> {
    if !needs_labels(own, repository) {
        return BTreeMap::new();
    }
    let mut labels = manifests.namespace_labels(own).unwrap_or_else(|| {
        say(&format!(
            "note: the Namespace {own} is not among the manifests, so of its labels only {NAME_LABEL} is known"
        ));
        BTreeMap::new()
    });
    labels.insert(NAME_LABEL.to_owned(), own.to_owned());
    labels
}
