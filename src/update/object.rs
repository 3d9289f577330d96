//! Which Kubernetes object a value belongs to.
//!
//! An object is a document; in a `List` (what `kubectl get -o yaml` prints) or a `ResourceList` it is an entry
//! of `items`, or `functionConfig`. The name of a document's kind may stand below its items, so what a value
//! belongs to is known at the end of the document only.

use std::collections::BTreeMap;

use super::result::ObjectIdentifier;
use crate::yaml::Step;

/// Longer values name no object: each marker of a file carries its object's name.
const NAME_LENGTH: usize = 1024;

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

/// The first value of each part counts when a key is repeated.
#[derive(Debug, Default)]
struct Identity {
    api_version: Option<String>,
    kind: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
}

impl ObjectTracker {
    /// Takes note of a scalar value that may name its object.
    pub(crate) fn see(&mut self, path: &[Step<'_>], value: &str) {
        self.note(Part::Document, path, value);
        let (part, rest) = split(path);
        if part != Part::Document {
            self.note(part, rest, value);
        }
    }

    fn note(&mut self, part: Part, path: &[Step<'_>], value: &str) {
        let (key, below) = match path {
            [Step::Key(key)] => (key.as_ref(), None),
            [Step::Key(key), Step::Key(below)] => (key.as_ref(), Some(below.as_ref())),
            _ => return,
        };
        let is_naming =
            matches!((key, below), ("apiVersion" | "kind", None) | ("metadata", Some("name" | "namespace")));
        if !is_naming || value.len() > NAME_LENGTH {
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

    /// The identity of the object that `part` belongs to, once the document is over.
    pub(crate) fn identify(&self, part: Part) -> ObjectIdentifier {
        let document = self.identities.get(&Part::Document);
        let kind = document.and_then(|document| document.kind.as_deref());
        let is_list = matches!(kind, Some("List" | "ResourceList"));
        let identity = if is_list { self.identities.get(&part) } else { document };
        identity.map(Identity::to_object).unwrap_or_default()
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

/// The part of the document that a path leads into, and the rest of the way.
pub(crate) fn split<'p, 's>(path: &'p [Step<'s>]) -> (Part, &'p [Step<'s>]) {
    match path {
        [Step::Key(key), Step::Index(index), rest @ ..] if key == "items" => (Part::Item(*index), rest),
        [Step::Key(key), rest @ ..] if key == "functionConfig" => (Part::FunctionConfig, rest),
        _ => (Part::Document, path),
    }
}
