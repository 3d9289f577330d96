//! Checks files against rules, without a cluster.
//!
//! [`lint`] takes files ([`source`]) and gives a [`Report`] of [`finding`]s. It finds the objects in them ([`object`])
//! and checks them against their schema ([`schema`]), the table of settings ([`annotation`]) and the rules of their
//! controllers ([`automation`], [`ineffective`], [`git_repository`], [`policy`], [`filter`], [`selector`]), and Namespaces ([`namespace`]) with their windows
//! and freezes ([`windows`]); renders templates ([`template`], [`delivery`]), looks at forges ([`forge`]) and looks up
//! the policies of markers ([`marker`], [`policy_names`]) and of [`release_groups`]. Patches of kustomizations are not taken for whole objects
//! ([`kustomize`]). Locations come from `yaml/tree`.
//!
//! Each finding is a mistake. A value that something else may fill in or define is not reported.

mod annotation;
mod automation;
mod delivery;
mod filter;
pub mod finding;
mod forge;
mod git_repository;
mod ineffective;
mod kustomize;
mod marker;
mod namespace;
mod object;
mod policy;
mod policy_names;
mod release_groups;
mod schema;
mod selector;
pub mod source;
mod template;
mod windows;

use std::collections::{BTreeMap, BTreeSet};

use tagboat_api::{Kind, ObjectName};

pub use finding::{Finding, Location, Rule};
pub use source::{Role, Source};

use finding::Findings;
use kustomize::{Kustomizations, Renaming};
use marker::Markers;
use object::{Object, visit_nested};
use policy_names::{DeclaredName, PolicyNames};
use schema::{Missing, Schemas};
use source::{Charts, Document};

use crate::error::chain;
use crate::yaml::{Limits, Node};

/// The result of a lint.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The findings, by file and location.
    pub findings: Vec<Finding>,
    /// True if there are markers, but no policy that one could name.
    pub lacks_policies: bool,
}

/// Checks files against the rules.
pub fn lint(sources: &[Source]) -> Report {
    let limits = Limits::default();
    let mut findings = Vec::new();
    let documents: Vec<Document<'_>> =
        sources.iter().filter_map(|source| Document::read(source, &limits)).collect();
    unreadable(sources, &mut findings);
    for source in sources {
        if let (Role::Template(language), Ok(content)) = (source.role, &source.content) {
            let mut findings = Findings::new(&source.name, &mut findings);
            template::check_file(content, language, &mut findings);
        }
    }
    let mut kustomizations = Kustomizations::default();
    documents.iter().for_each(|document| kustomizations.read(document));
    kustomizations.follow_resources();
    let policies = check_objects(&documents, &kustomizations, &mut findings);
    let names = policy_names(&documents, &kustomizations);
    let mut named: BTreeSet<ObjectName> = BTreeSet::new();
    for document in documents.iter().filter(|document| document.role == Role::Manifest) {
        let mut findings = Findings::new(document.name, &mut findings);
        let read = match &document.error {
            Some(error) => Err(error.clone()),
            None => Markers::read(document, &limits),
        };
        let markers = match read {
            Ok(markers) => markers,
            Err(error) => {
                if document.must_be_yaml() {
                    let location = Location { line: error.line, column: error.column };
                    let sentence = format!("the file cannot be read as YAML: {}", chain(&error.cause));
                    findings.add(location, Rule::UnreadableFile, sentence);
                }
                named.extend(Markers::guess(document).into_iter().map(|marker| marker.policy));
                continue;
            }
        };
        markers.check(document, &names, &mut findings);
        named.extend(markers.found.into_iter().map(|found| found.marker.policy));
    }
    for ExpectedPolicy { file, name, location, title } in policies {
        if !name.name.is_empty() && !is_named(&name, &named) {
            let sentence = format!("no marker names {title}");
            Findings::new(file, &mut findings).add(location, Rule::UnmarkedPolicy, sentence);
        }
    }
    findings.sort();
    findings.dedup();
    Report { findings, lacks_policies: names.is_empty() && !named.is_empty() }
}

/// Returns true if a marker may name this policy.
fn is_named(policy: &DeclaredName, named: &BTreeSet<ObjectName>) -> bool {
    let complete_name = policy.complete_name();
    complete_name.is_some_and(|name| named.contains(&name)) || named.iter().any(|named| policy.can_be(named))
}

/// A policy for which a marker is expected.
struct ExpectedPolicy<'a> {
    file: &'a str,
    name: DeclaredName,
    location: Location,
    title: String,
}

/// An object with its file.
struct Located<'a> {
    file: &'a str,
    object: Object<'a>,
    /// True if it is only a part of an object in another file.
    is_patch: bool,
    missing: Vec<Missing>,
}

/// Reports relevant files that cannot be read or are not text.
fn unreadable(sources: &[Source], found: &mut Vec<Finding>) {
    for source in sources.iter().filter(|source| source.role != Role::Context) {
        let mut findings = Findings::new(&source.name, found);
        match &source.content {
            Err(cause) => findings.add(Location::START, Rule::UnreadableFile, cause.as_str()),
            Ok(content) => {
                if let Some(location) = source::not_text(content, source.role) {
                    findings.add(location, Rule::UnreadableFile, "the file is not valid UTF-8 here");
                }
            }
        }
    }
}

/// Checks every object, and returns the policies.
fn check_objects<'a>(
    documents: &'a [Document<'a>],
    kustomizations: &Kustomizations,
    found: &mut Vec<Finding>,
) -> Vec<ExpectedPolicy<'a>> {
    let schemas = Schemas::new();
    let mut located: Vec<Located<'a>> = Vec::new();
    let mut namespaces = Vec::new();
    let charts = Charts::among(documents);
    for document in documents.iter().filter(|document| document.role == Role::Manifest) {
        if charts.have_template(document.name) {
            // Helm renders it, so its contents are unknown.
            continue;
        }
        let mut findings = Findings::new(document.name, found);
        let is_patch = kustomizations.is_patch(document.name);
        namespaces.extend(namespace::check(document, is_patch, &mut findings));
        for object in object::objects(&document.roots, &mut findings) {
            let is_patch = is_patch || object.has_directive();
            let missing = schemas.check(&object, &mut findings);
            annotation::check(&object, &mut findings);
            windows::check(&object, &mut findings);
            selector::check(&object, &mut findings);
            filter::check(&object, &mut findings);
            git_repository::check(&object, &mut findings);
            template::check_object(&object, document.text, &mut findings);
            located.push(Located { file: document.name, object, is_patch, missing });
        }
    }
    namespace::check_contradictions(&namespaces, found);
    let mut namesakes: BTreeMap<(Kind, &str), Vec<&Located<'a>>> = BTreeMap::new();
    for one in &located {
        // The namespace may be filled in later.
        namesakes.entry((one.object.kind, one.object.name())).or_default().push(one);
    }
    for Located { file, object, is_patch, missing } in &located {
        let mut findings = Findings::new(file, found);
        let others = namesakes[&(object.kind, object.name())].iter().filter(|other| other.file != *file);
        let is_patched = *is_patch || kustomizations.patches_kind(object.kind);
        let is_complete = !is_patched && others.clone().next().is_none();
        policy::check(object, is_complete, &mut findings);
        automation::check(object, is_complete, &mut findings);
        for field in missing.iter().filter(|_| !is_patched) {
            // A field missing in one of two files may be in the other: a base and its overlay.
            if others.clone().all(|other| other.missing.contains(field)) {
                let sentence = format!("{} lacks `{}`, which is required", object.title(), field.path);
                findings.add(field.location, Rule::MissingField, sentence);
            }
        }
    }
    let whole: Vec<delivery::Whole<'_>> = located
        .iter()
        .filter(|one| {
            let others = &namesakes[&(one.object.kind, one.object.name())];
            let is_patched = one.is_patch || kustomizations.patches_kind(one.object.kind);
            !is_patched && others.iter().all(|other| other.file == one.file)
        })
        .map(|one| delivery::Whole { file: one.file, object: &one.object })
        .collect();
    delivery::check(&whole, found);
    release_groups::check(documents, &located, kustomizations, found);
    let policies = located.iter().filter(|located| located.object.kind == Kind::Policy && !located.is_patch);
    let given = |located: &Located<'a>| ExpectedPolicy {
        file: located.file,
        name: declared_name(located.object.node, kustomizations.renaming_of(located.file)),
        location: located.object.location(),
        title: located.object.title(),
    };
    policies.map(given).collect()
}

fn declared_name(node: &Node, renaming: Renaming) -> DeclaredName {
    let text = |field: &str| node.text_at(&["metadata", field]).unwrap_or_default().to_owned();
    let namespace = Some(text("namespace")).filter(|namespace| !namespace.is_empty());
    DeclaredName { namespace, name: text("name"), renaming }
}

/// The policies that a marker may name.
///
/// They include policies that other programs generate from the files.
fn policy_names(documents: &[Document<'_>], kustomizations: &Kustomizations) -> PolicyNames {
    let mut names = PolicyNames::default();
    for document in documents {
        let renaming = || kustomizations.renaming_of(document.name);
        for root in &document.roots {
            visit_nested(root, Kind::Policy, &mut |node| names.add(declared_name(node, renaming())));
        }
        if document.error.is_some() && document.text.contains(Kind::Policy.name()) {
            for name in document.values_of("name") {
                names.add(DeclaredName { namespace: None, name: name.to_owned(), renaming: renaming() });
            }
        }
    }
    names
}
