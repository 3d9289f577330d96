//! Checks Namespaces, and finds those that contradict each other.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use tagboat_api::nearest::nearest;
use tagboat_api::settings::PREFIX;
use tagboat_api::substitution::contains_placeholder;

use super::finding::{Finding, Findings, Location, Rule};
use super::object::{flatten, has_directive};
use super::source::Document;
use super::{annotation, schema, windows};
use crate::yaml::Node;

const KIND: &str = "Namespace";

/// A Namespace with its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Namespace<'n> {
    file: &'n str,
    node: &'n Node,
}

/// The first manifest of a Namespace that has an annotation.
struct First<'n> {
    namespace: Namespace<'n>,
    line: usize,
    value: &'n str,
}

/// Checks the Namespaces of a file, and returns them without patches.
pub(super) fn check<'n>(
    document: &'n Document<'_>,
    is_patch: bool,
    findings: &mut Findings<'_>,
) -> Vec<Namespace<'n>> {
    let mut whole = Vec::new();
    for node in flatten(&document.roots) {
        let is_patch = is_patch || has_directive(node);
        let [version, kind] = ["apiVersion", "kind"].map(|field| node.text_at(&[field]).unwrap_or_default());
        if (version, kind) != ("v1", KIND) {
            if !is_patch && is_like(version, kind, node) {
                let at = if kind == KIND { "apiVersion" } else { "kind" };
                let location = node.field(at).map_or(Location::of(node), |field| Location::of(field.value));
                let sentence = format!(
                    "there is no kind {kind:?} with the apiVersion {version:?}; a Namespace has the apiVersion `v1` and the \
                     kind `{KIND}`"
                );
                findings.add(location, Rule::UnknownKind, sentence);
            }
            continue;
        }
        schema::check_namespace(node, findings);
        if let Some(annotations) = node.at(&["metadata", "annotations"]) {
            annotation::check_namespace(annotations, findings);
        }
        windows::check_namespace(node, findings);
        if is_patch {
            continue;
        }
        let is_without = |field: &str| {
            let value = node.at(&["metadata", field]);
            value.is_none_or(|value| value.is_null() || value.text() == Some(""))
        };
        if is_without("name") && is_without("generateName") {
            let sentence = format!("{KIND} lacks `metadata.name`, which is required");
            findings.add(Location::of(node), Rule::MissingField, sentence);
        }
        whole.push(Namespace { file: document.name, node });
    }
    whole
}

/// Returns true if an object of the core group is almost a Namespace.
fn is_like(version: &str, kind: &str, node: &Node) -> bool {
    let is_core = !version.contains('/') && node.at(&["metadata"]).is_some_and(Node::is_mapping);
    is_core && (kind.eq_ignore_ascii_case(KIND) || nearest(kind, [KIND]).is_some())
}

/// Reports annotations with different values in two manifests of a Namespace.
///
/// Files of different directories may be for different clusters.
pub(super) fn check_contradictions(namespaces: &[Namespace<'_>], found: &mut Vec<Finding>) {
    let mut all: BTreeMap<(&str, &str, &str), First<'_>> = BTreeMap::new();
    for &namespace in namespaces {
        let Namespace { file, node } = namespace;
        let name = node.text_at(&["metadata", "name"]).unwrap_or_default();
        let directory = file.rsplit_once('/').map_or("", |(directory, _)| directory);
        let Some(annotations) = node.at(&["metadata", "annotations"]) else { continue };
        if name.is_empty() || contains_placeholder(name) {
            continue;
        }
        for field in annotations.fields().iter().filter(|field| field.name.starts_with(PREFIX)) {
            let Some(value) = field.value.text().map(|text| if field.value.is_null() { "" } else { text })
            else {
                continue;
            };
            match all.entry((directory, name, field.name)) {
                Entry::Vacant(entry) => {
                    entry.insert(First { namespace, line: field.key.line, value });
                }
                // A field that is given twice in one manifest is reported already.
                Entry::Occupied(entry)
                    if entry.get().value != value && !std::ptr::eq(entry.get().namespace.node, node) =>
                {
                    let First { namespace: Namespace { file: other, .. }, line, .. } = entry.get();
                    let sentence = format!(
                        "annotation {} of {KIND} {name} has another value in {other}, line {line}; keep one",
                        field.name
                    );
                    Findings::new(file, found).add(Location::of(field.key), Rule::DuplicateField, sentence);
                }
                Entry::Occupied(_) => {}
            }
        }
    }
}
