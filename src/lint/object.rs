//! Finds the Kubernetes objects of a YAML file.

use std::collections::BTreeMap;
use std::rc::Rc;

use tagboat_api::nearest::nearest;
use tagboat_api::settings::PREFIX;
use tagboat_api::{DEPRECATED_VERSION, IMAGE_GROUP, Kind, VERSION};

use super::finding::{Findings, Location, Rule, hint};
use crate::yaml::Node;

/// An object of a checked kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Object<'n> {
    pub(super) kind: Kind,
    pub(super) version: &'n str,
    pub(super) node: &'n Node,
}

impl<'n> Object<'n> {
    pub(super) fn name(&self) -> &'n str {
        self.node.text_at(&["metadata", "name"]).unwrap_or_default()
    }

    /// The namespace, if given.
    pub(super) fn namespace(&self) -> Option<&'n str> {
        let namespace = self.node.text_at(&["metadata", "namespace"]);
        namespace.filter(|namespace| !namespace.is_empty())
    }

    /// The location of the object's name, or of the object if it has none.
    pub(super) fn location(&self) -> Location {
        Location::of(self.node.at(&["metadata", "name"]).unwrap_or(self.node))
    }

    /// The annotations, if there are any.
    pub(super) fn annotations(&self) -> Option<&'n Node> {
        self.node.at(&["metadata", "annotations"])
    }

    /// The texts of Tagboat's annotations.
    pub(super) fn own_annotations(&self) -> BTreeMap<String, String> {
        self.annotations().map(own_texts).unwrap_or_default()
    }

    /// Kind, namespace and name, if given.
    pub(super) fn title(&self) -> String {
        let kind = self.kind.name();
        match (self.namespace(), self.name()) {
            (_, "") => kind.to_owned(),
            (None, name) => format!("{kind} {name}"),
            (Some(namespace), name) => format!("{kind} {namespace}/{name}"),
        }
    }

    /// Returns true if it declares itself a patch, with a directive of strategic merge patches.
    pub(super) fn has_directive(&self) -> bool {
        has_directive(self.node)
    }
}

/// Returns true if a node contains a directive of strategic merge patches.
pub(super) fn has_directive(node: &Node) -> bool {
    node.fields().iter().any(|field| field.name.starts_with('$') || has_directive(field.value))
        || node.items().iter().any(|item| has_directive(item))
}

/// Returns all documents of a file, with lists replaced by their items.
pub(super) fn flatten(roots: &[Rc<Node>]) -> Vec<&Node> {
    fn take<'n>(node: &'n Node, found: &mut Vec<&'n Node>) {
        let is_list = node.text_at(&["kind"]).is_some_and(|kind| kind.ends_with("List"));
        match node.at(&["items"]) {
            Some(items) if is_list => items.items().iter().for_each(|item| take(item, found)),
            _ => found.push(node),
        }
    }
    let mut found = Vec::new();
    roots.iter().for_each(|root| take(root, &mut found));
    found
}

/// Returns the objects of a file.
///
/// A kind or version that does not exist is a finding.
pub(super) fn objects<'n>(roots: &'n [Rc<Node>], findings: &mut Findings<'_>) -> Vec<Object<'n>> {
    let mut objects = Vec::new();
    for node in flatten(roots) {
        let Some(api_version) = node.text_at(&["apiVersion"]) else {
            check_case(node, findings);
            continue;
        };
        let name = node.text_at(&["kind"]).unwrap_or_default();
        let location =
            |field: &str| node.field(field).map_or(Location::START, |field| Location::of(field.value));
        let Some((group, version)) = api_version.split_once('/') else {
            if api_version == IMAGE_GROUP {
                let sentence = format!("`apiVersion` has no version; write {IMAGE_GROUP}/{VERSION}");
                findings.add(location("apiVersion"), Rule::UnknownKind, sentence);
            }
            continue;
        };
        match Kind::of(group, name) {
            Some(kind) if [VERSION, DEPRECATED_VERSION].contains(&version) => {
                objects.push(Object { kind, version, node });
            }
            // Only the versions of the source group that are read can be checked.
            Some(kind) if kind.group() == IMAGE_GROUP => {
                let sentence = format!("{name} of {api_version} is not served; use {group}/{VERSION}");
                findings.add(location("apiVersion"), Rule::UnknownKind, sentence);
            }
            None if group == IMAGE_GROUP && name.is_empty() => {
                let names: Vec<&str> = names_of(group).collect();
                let sentence =
                    format!("the object has no `kind`; of {IMAGE_GROUP} there are {}", names.join(", "));
                let at = if node.field("kind").is_some() { location("kind") } else { location("apiVersion") };
                findings.add(at, Rule::UnknownKind, sentence);
            }
            None if group == IMAGE_GROUP => {
                let hint = hint(nearest(name, names_of(group)));
                let sentence = format!("there is no kind {name:?} in {IMAGE_GROUP}{hint}");
                let at = if node.field("kind").is_some() { location("kind") } else { location("apiVersion") };
                findings.add(at, Rule::UnknownKind, sentence);
            }
            _ => {}
        }
    }
    objects
}

fn names_of(group: &str) -> impl Iterator<Item = &'static str> {
    Kind::ALL.into_iter().filter(move |kind| kind.group() == group).map(Kind::name)
}

/// Checks for an object whose `apiVersion` has wrong capitals, so that nothing recognizes it.
fn check_case(node: &Node, findings: &mut Findings<'_>) {
    let fields = node.fields();
    let version = fields.iter().find(|field| field.name.eq_ignore_ascii_case("apiVersion"));
    let is_ours = |text: &str| text.split('/').next() == Some(IMAGE_GROUP);
    if let Some(field) = version
        && field.value.text().is_some_and(is_ours)
    {
        let sentence = format!("an object has no field `{}`{}", field.name, hint(Some("apiVersion")));
        findings.add(Location::of(field.key), Rule::UnknownField, sentence);
    }
}

/// Calls `visit` for every mapping that looks like an object of a kind.
///
/// Objects may be nested at any depth: resource sets and charts contain objects as values.
pub(super) fn visit_nested<'n>(node: &'n Node, kind: Kind, visit: &mut dyn FnMut(&'n Node)) {
    let is_of_kind = node.text_at(&["kind"]) == Some(kind.name())
        && node
            .text_at(&["apiVersion"])
            .and_then(|version| version.split_once('/'))
            .is_some_and(|(group, _)| group == kind.group());
    if is_of_kind {
        visit(node);
        return;
    }
    node.fields().iter().for_each(|field| visit_nested(field.value, kind, visit));
    node.items().iter().for_each(|item| visit_nested(item, kind, visit));
}

/// Returns the texts of Tagboat's annotations among those of an object.
pub(super) fn own_texts(annotations: &Node) -> BTreeMap<String, String> {
    let fields = annotations.fields();
    let own = fields.iter().filter(|field| field.name.starts_with(PREFIX));
    own.filter_map(|field| Some((field.name.to_owned(), field.value.text()?.to_owned()))).collect()
}
