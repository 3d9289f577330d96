//! Lookup of objects in manifests.

use std::collections::BTreeMap;

use kube::ResourceExt;
use tagboat_api::{ImagePolicy, ImageRepository};

use super::query::ObjectQuery;
use super::subject::{RepositoryLookup, Subject};
use crate::cli::Failure;
use crate::cli::choice::existing;
use crate::cli::terminal::say;
use crate::error::chain;
use crate::objects::ObjectName;
use crate::objects::manifests::{Defect, Manifests, NAME_LABEL};
use crate::reconcile::policy::access::needs_labels;
use crate::reconcile::policy::group::other_members;
use crate::reconcile::policy::request::repository_of;

/// A policy of a query that is invalid.
pub(super) struct InvalidPolicy {
    /// Its name.
    pub(super) name: ObjectName,
    /// The errors, one sentence each.
    pub(super) sentences: Vec<String>,
}

/// Finds the policy of a query and its repository. Defects of other objects are warnings.
///
/// The repository is not needed if there are tags.
pub(super) fn manifests(
    manifests: &Manifests,
    defects: &[Defect],
    query: &ObjectQuery<'_>,
    has_tags: bool,
) -> Result<Result<Subject, InvalidPolicy>, Failure> {
    let valid = manifests.policies().map(ObjectName::of).collect();
    let candidates = Candidates { kind: "ImagePolicy", valid, invalid: Defect::policy };
    let name = candidates.find(defects, query)?;
    let policy = manifests.policies().find(|policy| ObjectName::of(*policy) == name);
    let (own, others): (Vec<&Defect>, _) = defects.iter().partition(|defect| defect.policy() == Some(&name));
    let Some(policy) = policy.filter(|_| own.is_empty()) else {
        warn(&others);
        return Ok(Err(InvalidPolicy { name, sentences: sentences(&own) }));
    };
    let repository = repository_of(policy);
    let is_needed = |defect: &&&Defect| !has_tags && defect.repository() == Some(&repository);
    let (needed, others): (Vec<&Defect>, Vec<&Defect>) = others.iter().partition(is_needed);
    warn(&others);
    if has_tags {
        let (policy, repository) = (policy.clone(), RepositoryLookup::NotNeeded);
        return Ok(Ok(Subject { policy, repository, labels: BTreeMap::new(), members: Vec::new() }));
    }
    let mut subject = with_repository(manifests, policy, &needed);
    for member in other_members(policy, manifests.policies()) {
        let repository = repository_of(member);
        let defects: Vec<&Defect> =
            defects.iter().filter(|defect| defect.repository() == Some(&repository)).collect();
        subject.members.push(with_repository(manifests, member, &defects));
    }
    Ok(Ok(subject))
}

/// Finds the repository of a policy; `defects` are those of the repository.
fn with_repository(manifests: &Manifests, policy: &ImagePolicy, defects: &[&Defect]) -> Subject {
    let repository = repository_of(policy);
    let found = manifests.repositories().find(|one| ObjectName::of(*one) == repository);
    let (labels, repository) = match found {
        _ if !defects.is_empty() => (BTreeMap::new(), RepositoryLookup::Invalid(sentences(defects))),
        None => (BTreeMap::new(), RepositoryLookup::NotGiven),
        Some(found) => {
            let own = policy.namespace().unwrap_or_default();
            (labels(manifests, &own, found), RepositoryLookup::Found(Box::new(found.clone())))
        }
    };
    Subject { policy: policy.clone(), repository, labels, members: Vec::new() }
}

/// The objects of a kind among manifests.
pub(super) struct Candidates {
    /// The kind.
    pub(super) kind: &'static str,
    /// The names of the valid ones.
    pub(super) valid: Vec<ObjectName>,
    /// Returns the name of an invalid one.
    pub(super) invalid: fn(&Defect) -> Option<&ObjectName>,
}

impl Candidates {
    /// Returns the name of the object of a query, whether it is valid or not.
    pub(super) fn find(self, defects: &[Defect], query: &ObjectQuery<'_>) -> Result<ObjectName, Failure> {
        let Self { kind, valid: mut all, invalid } = self;
        for invalid in defects.iter().filter_map(invalid) {
            if !all.contains(invalid) {
                all.push(invalid.clone());
            }
        }
        // An object that is given twice is a defect.
        let mut fitting: Vec<ObjectName> = Vec::new();
        for name in all.iter().filter(|name| query.matches(name)) {
            if !fitting.contains(name) {
                fitting.push(name.clone());
            }
        }
        if let Some(name) = query.only(fitting, ObjectName::clone)? {
            return Ok(name);
        }
        // The object may be in a file that cannot be read.
        let hiding: Vec<&Defect> = defects.iter().filter(|defect| defect.is_unattributed()).collect();
        let mut sentences = sentences(&hiding);
        if !hiding.is_empty() && all.is_empty() {
            return Err(Failure::Failed(sentences));
        }
        let names: Vec<String> = all.iter().map(ObjectName::to_string).collect();
        let there = existing(&names);
        let (name, in_namespace) = (query.name, query.in_namespace());
        let sentence = format!("no {kind} {name} is among the manifests{in_namespace}; {there}");
        if hiding.is_empty() {
            return Err(Failure::Usage(sentence));
        }
        sentences.push(sentence);
        Err(Failure::Failed(sentences))
    }
}

/// Prints defects as warnings.
pub(super) fn warn(defects: &[&Defect]) {
    for sentence in sentences(defects) {
        say(&format!("warning: {sentence}"));
    }
}

/// Returns the errors of defects, one sentence each.
pub(super) fn sentences(defects: &[&Defect]) -> Vec<String> {
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
