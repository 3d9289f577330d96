//! Identifies the Kubernetes object that a value belongs to.
//!
//! An object is a document. In a `List` (the output of `kubectl get -o yaml`) or a `ResourceList` it is an entry of
//! `items`, or `functionConfig`. A document's `kind` may come after its `items`, so the object of a value is known only
//! at the end of the document.

use std::collections::BTreeMap;

use super::result::ObjectIdentifier;
use crate::yaml::Step;

/// The maximum length of a name in bytes.
///
/// Longer values are ignored, since each marker of a file has a copy of its object's name.
const MAX_NAME_LENGTH: usize = 1024;

/// A part of a document that may turn out to be an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// The document itself.
    Document,
    /// An entry of `items`.
    Item(usize),
    /// `functionConfig`.
    FunctionConfig,
}

/// Collects the identities of the objects of one document.
#[derive(Debug, Default)]
pub(crate) struct ObjectTracker {
    identities: BTreeMap<Part, Identity>,
}

/// The identifying fields of an object; the first value counts if a key is repeated.
#[derive(Debug, Default)]
struct Identity {
    api_version: Option<String>,
    kind: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
}

impl ObjectTracker {
    /// Records a scalar value that may identify its object.
    pub(crate) fn record(&mut self, path: &[Step<'_>], value: &str) {
        self.record_in(Part::Document, path, value);
        let (part, rest) = split(path);
        if part != Part::Document {
            self.record_in(part, rest, value);
        }
    }

    fn record_in(&mut self, part: Part, path: &[Step<'_>], value: &str) {
        let (key, below) = match path {
            [Step::Key(key)] => (key.as_ref(), None),
            [Step::Key(key), Step::Key(below)] => (key.as_ref(), Some(below.as_ref())),
            _ => return,
        };
        let is_naming =
            matches!((key, below), ("apiVersion" | "kind", None) | ("metadata", Some("name" | "namespace")));
        if !is_naming || value.len() > MAX_NAME_LENGTH {
            return;
        }
        let identity = self.identities.entry(part).or_default();
        let field = match (key, below) {
            ("apiVersion", None) => &mut identity.api_version,
            ("kind", None) => &mut identity.kind,
            (_, Some("name")) => &mut identity.name,
            _ => &mut identity.namespace,
        };
        field.get_or_insert_with(|| value.to_owned());
    }

    /// Returns the identity of the object that `part` belongs to.
    ///
    /// Call it at the end of the document.
    pub(crate) fn identify(&self, part: Part) -> ObjectIdentifier {
        let part = if self.is_list() { part } else { Part::Document };
        self.identities.get(&part).map(Identity::to_object).unwrap_or_default()
    }

    /// Returns true if the parts of the document are objects of their own.
    ///
    /// Call it at the end of the document.
    pub(crate) fn is_list(&self) -> bool {
        let document = self.identities.get(&Part::Document);
        let kind = document.and_then(|document| document.kind.as_deref());
        matches!(kind, Some("List" | "ResourceList"))
    }
}

impl Identity {
    fn to_object(&self) -> ObjectIdentifier {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        ObjectIdentifier {
            api_version: text(&self.api_version),
            kind: text(&self.kind),
            name: text(&self.name),
            namespace: text(&self.namespace),
        }
    }
}

/// Splits a path into a part of the document and the path inside it.
pub(crate) fn split<'p, 's>(path: &'p [Step<'s>]) -> (Part, &'p [Step<'s>]) {
    match path {
        [Step::Key(key), Step::Index(index), rest @ ..] if key == "items" => (Part::Item(*index), rest),
        [Step::Key(key), rest @ ..] if key == "functionConfig" => (Part::FunctionConfig, rest),
        _ => (Part::Document, path),
    }
}
