//! Lookup of a policy in manifests.

use std::collections::BTreeMap;

use kube::ResourceExt;
use tagboat_api::ImageRepository;

use super::subject::{PolicyQuery, RepositoryLookup, Subject};
use crate::cli::Failure;
use crate::cli::choice::existing;
use crate::cli::terminal::say;
use crate::error::chain;
use crate::objects::ObjectName;
use crate::objects::manifests::{Defect, Manifests, NAME_LABEL};
use crate::reconcile::policy::access::needs_labels;
use crate::reconcile::policy::request::repository_of;

/// A policy of a query that is invalid.
pub(super) struct InvalidPolicy {
    /// Its name.
    pub(super) name: ObjectName,
    /// The errors, one sentence each.
    pub(super) sentences: Vec<String>,
}

/// Finds the policy of a query and its repository. Defects of other objects are warnings.
pub(super) fn manifests(
    manifests: &Manifests,
    defects: &[Defect],
    query: &PolicyQuery<'_>,
) -> Result<Result<Subject, InvalidPolicy>, Failure> {
    let name = find(manifests, defects, query)?;
    let policy = manifests.policies().find(|policy| ObjectName::of(*policy) == name);
    let (own, others): (Vec<&Defect>, _) = defects.iter().partition(|defect| defect.policy() == Some(&name));
    let Some(policy) = policy.filter(|_| own.is_empty()) else {
        warn(&others);
        return Ok(Err(InvalidPolicy { name, sentences: sentences(&own) }));
    };
    let repository = repository_of(policy);
    let is_needed = |defect: &&&Defect| !query.has_tags && defect.repository() == Some(&repository);
    let (needed, others): (Vec<&Defect>, Vec<&Defect>) = others.iter().partition(is_needed);
    warn(&others);
    let found = manifests.repositories().find(|one| ObjectName::of(*one) == repository);
    let (labels, repository) = match found {
        _ if query.has_tags => (BTreeMap::new(), RepositoryLookup::NotNeeded),
        _ if !needed.is_empty() => (BTreeMap::new(), RepositoryLookup::Invalid(sentences(&needed))),
        None => (BTreeMap::new(), RepositoryLookup::NotGiven),
        Some(found) => {
            let own = policy.namespace().unwrap_or_default();
            (labels(manifests, &own, found), RepositoryLookup::Found(Box::new(found.clone())))
        }
    };
    Ok(Ok(Subject { policy: policy.clone(), repository, labels }))
}

/// Returns the name of the policy of a query, whether it is valid or not.
fn find(manifests: &Manifests, defects: &[Defect], query: &PolicyQuery<'_>) -> Result<ObjectName, Failure> {
    let mut all: Vec<ObjectName> = manifests.policies().map(ObjectName::of).collect();
    for invalid in defects.iter().filter_map(Defect::policy) {
        if !all.contains(invalid) {
            all.push(invalid.clone());
        }
    }
    // A policy that is given twice is a defect.
    let mut fitting: Vec<ObjectName> = Vec::new();
    for name in all.iter().filter(|name| query.matches(name)) {
        if !fitting.contains(name) {
            fitting.push(name.clone());
        }
    }
    if let Some(name) = query.only(fitting, ObjectName::clone)? {
        return Ok(name);
    }
    // The policy may be in a file that cannot be read.
    let hiding: Vec<&Defect> = defects.iter().filter(|defect| defect.is_unattributed()).collect();
    let mut sentences = sentences(&hiding);
    if !hiding.is_empty() && all.is_empty() {
        return Err(Failure::Failed(sentences));
    }
    let names: Vec<String> = all.iter().map(ObjectName::to_string).collect();
    let there = existing(&names);
    let (name, in_namespace) = (query.name, query.in_namespace());
    let sentence = format!("no ImagePolicy {name} is among the manifests{in_namespace}; {there}");
    if hiding.is_empty() {
        return Err(Failure::Usage(sentence));
    }
    sentences.push(sentence);
    Err(Failure::Failed(sentences))
}

fn warn(defects: &[&Defect]) {
    for sentence in sentences(defects) {
        say(&format!("warning: {sentence}"));
    }
}

fn sentences(defects: &[&Defect]) -> Vec<String> {
    defects.iter().map(|defect| chain(&defect.error)).collect()
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
