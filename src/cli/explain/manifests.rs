//! A policy among manifests.

use std::collections::BTreeMap;

use kube::ResourceExt;
use tagboat_api::ImageRepository;

use super::subject::{Neighbour, Subject, Wanted};
use crate::cli::Failure;
use crate::cli::terminal::say;
use crate::error::chain;
use crate::objects::ObjectName;
use crate::objects::manifests::{Flaw, Manifests, NAME_LABEL};
use crate::reconcile::policy::access::needs_labels;
use crate::reconcile::policy::request::repository_of;

/// What is wrong with the policy that is wanted.
pub(super) struct InvalidPolicy {
    /// Its name.
    pub(super) name: ObjectName,
    /// What is wrong, a sentence each.
    pub(super) sentences: Vec<String>,
}

/// The policy that is wanted, of which there may be one only, and what stands around it. Flaws of what it does not need
/// are warned of.
pub(super) fn manifests(
    manifests: &Manifests,
    flaws: &[Flaw],
    wanted: &Wanted<'_>,
) -> Result<Result<Subject, InvalidPolicy>, Failure> {
    let name = find(manifests, flaws, wanted)?;
    let policy = manifests.policies().find(|policy| ObjectName::of(*policy) == name);
    let (own, others): (Vec<&Flaw>, _) = flaws.iter().partition(|flaw| flaw.policy() == Some(&name));
    let Some(policy) = policy.filter(|_| own.is_empty()) else {
        warn(&others);
        return Ok(Err(InvalidPolicy { name, sentences: sentences(&own) }));
    };
    let repository = repository_of(policy);
    let is_needed = |flaw: &&&Flaw| !wanted.has_tags && flaw.repository() == Some(&repository);
    let (needed, others): (Vec<&Flaw>, Vec<&Flaw>) = others.iter().partition(is_needed);
    warn(&others);
    let found = manifests.repositories().find(|one| ObjectName::of(*one) == repository);
    let (labels, repository) = match found {
        _ if wanted.has_tags => (BTreeMap::new(), Neighbour::NotNeeded),
        _ if !needed.is_empty() => (BTreeMap::new(), Neighbour::Invalid(sentences(&needed))),
        None => (BTreeMap::new(), Neighbour::NotGiven),
        Some(found) => {
            let own = policy.namespace().unwrap_or_default();
            (labels(manifests, &own, found), Neighbour::Found(Box::new(found.clone())))
        }
    };
    Ok(Ok(Subject { policy: policy.clone(), repository, labels }))
}

/// The name of the one policy that is meant, whether it can be read or not.
fn find(manifests: &Manifests, flaws: &[Flaw], wanted: &Wanted<'_>) -> Result<ObjectName, Failure> {
    let mut all: Vec<ObjectName> = manifests.policies().map(ObjectName::of).collect();
    for invalid in flaws.iter().filter_map(Flaw::policy) {
        if !all.contains(invalid) {
            all.push(invalid.clone());
        }
    }
    // One that is given twice is a flaw.
    let mut fitting: Vec<ObjectName> = Vec::new();
    for name in all.iter().filter(|name| wanted.is(name)) {
        if !fitting.contains(name) {
            fitting.push(name.clone());
        }
    }
    if let Some(name) = wanted.only(fitting, ObjectName::clone)? {
        return Ok(name);
    }
    // It may be in what cannot be read.
    let hiding: Vec<&Flaw> = flaws.iter().filter(|flaw| flaw.is_of_unknown()).collect();
    let mut sentences = sentences(&hiding);
    if !hiding.is_empty() && all.is_empty() {
        return Err(Failure::Failed(sentences));
    }
    let names: Vec<String> = all.iter().map(ObjectName::to_string).collect();
    let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let (name, place) = (wanted.name, wanted.place());
    let sentence = format!("no ImagePolicy {name} is among the manifests{place}; there is {there}");
    if hiding.is_empty() {
        return Err(Failure::Usage(sentence));
    }
    sentences.push(sentence);
    Err(Failure::Failed(sentences))
}

fn warn(flaws: &[&Flaw]) {
    for sentence in sentences(flaws) {
        say(&format!("warning: {sentence}"));
    }
}

fn sentences(flaws: &[&Flaw]) -> Vec<String> {
    flaws.iter().map(|flaw| chain(&flaw.error)).collect()
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
