//! Checks automations for values that the controller rejects from the object alone.
//!
//! These are branches, references and refspecs that git rejects, and a path that leads out of the repository.

use serde_json::{Value, json};
use tagboat_api::Kind;
use tagboat_api::settings::{AutomationSettings, SignedBy};
use tagboat_api::substitution;
use tagboat_api::{GitRepository, ImageUpdateAutomation};

use super::finding::{Findings, Location, Rule};
use super::ineffective;
use super::object::Object;
use crate::error::chain;
use crate::git::outcome::Target;
use crate::git::refspec::RefspecError;
use crate::reconcile::automation::delivery::{BundleError, ReferenceName};
use crate::reconcile::automation::forge_signing::ForgeSigningRefused;
use crate::reconcile::automation::source::{SourceError, SourceReference};
use crate::reconcile::cross_namespace::CrossNamespace;
use crate::reconcile::repository::request::ObjectIdentity;
use crate::update::{ScopeError, SkipReason};
use crate::yaml::Node;
use crate::yaml::tree::Content;

/// Checks an automation.
///
/// If the object is not whole, missing fields may be in another file.
pub(super) fn check(object: &Object<'_>, is_complete: bool, findings: &mut Findings<'_>) {
    if object.kind != Kind::Automation {
        return;
    }
    // Invalid ones are reported elsewhere.
    let settings = AutomationSettings::from_annotations(&object.own_annotations()).ok();
    if let Some(settings) = settings.as_ref().filter(|_| is_complete) {
        ineffective::check(object, settings, findings);
    }
    if let Some(path) = object.node.at(&["spec", "update", "path"]) {
        check_path(path, findings);
    }
    if let Some(git) = object.node.at(&["spec", "git"]).filter(|git| git.is_mapping()) {
        check_git(git, is_complete, findings);
        if let Some(settings) = &settings {
            check_signing(settings, git, findings);
        }
    }
}

/// Checks the fields of a commit that the forge makes.
fn check_signing(settings: &AutomationSettings, git: &Node, findings: &mut Findings<'_>) {
    if settings.signed_by != SignedBy::Forge {
        return;
    }
    if let Some(key) = git.at(&["commit", "signingKey"]).filter(|key| !key.is_null()) {
        findings.add(Location::of(key), Rule::InvalidValue, chain(&ForgeSigningRefused::KeyToo));
    }
    if let Some(author) = git.at(&["commit", "author"]).filter(|author| !author.is_null()) {
        let message = "`spec.git.commit.author` has no effect: with tagboat.dev/signed-by `forge`, the forge sets the author";
        findings.add(Location::of(author), Rule::IneffectiveField, message);
    }
}

fn check_path(node: &Node, findings: &mut Findings<'_>) {
    let Some(text) = node.text().filter(|text| !substitution::contains_placeholder(text)) else { return };
    let mut parts = text.split('/').filter(|part| !matches!(*part, "" | "."));
    // Later components may follow links, which are unknown here.
    let fault = match parts.next() {
        Some("..") => chain(&ScopeError::Escapes { path: text.to_owned() }),
        Some(".git") => chain(&ScopeError::Link { path: text.to_owned(), cause: SkipReason::InsideGit }),
        _ => return,
    };
    findings.add(Location::of(node), Rule::InvalidValue, format!("`spec.update.path`: {fault}"));
}

fn check_git(git: &Node, is_complete: bool, findings: &mut Findings<'_>) {
    let [checkout, push] = ["checkout", "push"].map(|name| git.at(&[name]).map(texts).unwrap_or_default());
    if [&checkout, &push].iter().any(|part| has_placeholder(part)) {
        return;
    }
    let has_checkout = !checkout.is_null();
    let automation: Result<ImageUpdateAutomation, _> = serde_json::from_value(json!({
        "metadata": {"name": "lint", "namespace": "lint"},
        "spec": {
            "interval": "1m", "sourceRef": {"kind": "GitRepository", "name": "lint"},
            "git": {"checkout": checkout, "push": push, "commit": {"author": {"email": "lint@example.com"}}},
        },
    }));
    // The schema reports values of another type.
    let (Ok(automation), Some(repository)) = (automation, any_repository()) else { return };
    let configured = SourceReference::of(&automation, CrossNamespace::Allowed)
        .and_then(|reference| reference.configure(Some(&repository), ObjectIdentity::On));
    let error = match configured {
        Ok(source) => {
            // Without these fields, the GitRepository decides about the push branch.
            if let Some(node) = git.at(&["push", "branch"])
                && let Some(name) = ReferenceName::of(source.target.push.as_str())
            {
                // Git makes such a branch, as it does for Flux.
                let message = chain(&BundleError::PushBranch(name));
                findings.add(Location::of(node), Rule::InvalidValue, message);
            }
            if has_checkout || git.at(&["push", "branch"]).is_some() {
                check_destination(git, &source.target, findings);
            }
            return;
        }
        Err(error) => error,
    };
    let way: &[&str] = match &error {
        SourceError::NoPushBranch if is_complete => &[],
        SourceError::Name { field, .. } if field == "spec.git.push.branch" => &["push", "branch"],
        SourceError::Name { .. } => &["checkout", "ref"],
        // The GitRepository decides which branch is checked out.
        SourceError::Refspec(RefspecError::Refused { cause, .. })
            if !has_checkout && cause.depends_on_branches() =>
        {
            return;
        }
        SourceError::Refspec(_) => &["push", "refspec"],
        SourceError::PushOption { .. } => &["push", "options"],
        _ => return,
    };
    let location = Location::of(git.at(way).unwrap_or(git));
    findings.add(location, Rule::InvalidValue, chain(&error));
}

/// Checks for a refspec that pushes to the push branch once more.
fn check_destination(git: &Node, target: &Target, findings: &mut Findings<'_>) {
    let destination = target.refspec.as_ref().map(|refspec| &refspec.destination);
    if let Some(node) = git.at(&["push", "refspec"]).filter(|_| destination == Some(&target.push.reference()))
    {
        let message = "`spec.git.push.refspec` has no effect: its destination is the push branch, which gets the commit already: remove \
            it, or name another destination";
        findings.add(Location::of(node), Rule::IneffectiveField, message);
    }
}

/// A valid repository.
fn any_repository() -> Option<GitRepository> {
    let spec = json!({"url": "https://example.com/r.git", "interval": "1m", "ref": {"branch": "main"}});
    serde_json::from_value(json!({"metadata": {"name": "lint", "namespace": "lint"}, "spec": spec})).ok()
}

/// Converts a node, with all scalars as texts.
pub(super) fn texts(node: &Node) -> Value {
    match &node.content {
        _ if node.is_null() => Value::Null,
        Content::Scalar { text, .. } => text.as_str().into(),
        Content::Sequence(items) => items.iter().map(|item| texts(item)).collect(),
        Content::Mapping(_) => {
            node.fields().iter().map(|field| (field.name.to_owned(), texts(field.value))).collect()
        }
    }
}

/// Returns true if any text inside is filled in later.
pub(super) fn has_placeholder(value: &Value) -> bool {
    match value {
        Value::String(text) => substitution::contains_placeholder(text),
        Value::Array(items) => items.iter().any(has_placeholder),
        Value::Object(members) => members.values().any(has_placeholder),
        _ => false,
    }
}
