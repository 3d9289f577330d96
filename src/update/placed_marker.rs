//! The marked values of a file, with their places.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::quality::FixedState;

use super::marker::{self, Marker};
use super::object::{self, ObjectTracker, Part};
use super::result::ObjectIdentifier;
use crate::yaml::{Limits, Step, Visit, Walk, YamlError, YamlErrorKind};

/// A marked value with its place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlacedMarker {
    /// The marker.
    pub(super) marker: Marker,
    /// The place.
    pub(super) place: Place,
    /// The value; empty if the key or list item has none.
    pub(super) value: String,
    /// The line of the comment, counted from 1.
    pub(super) line: usize,
}

/// The place of a value in a file: a hash of its object and path.
///
/// An entry of a list is known by its `name`, or else by its index. So it stays in its place when others are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place(u64);

/// A marked value of a document whose objects are not yet known.
struct Open {
    marker: Marker,
    part: Part,
    /// The path from the document.
    path: Vec<PathHash>,
    /// The number of steps in front of the path inside the part.
    outer: usize,
    value: String,
    line: usize,
}

/// A step of a path as hashes.
#[derive(Clone, Copy)]
struct PathHash {
    /// The step alone.
    step: u64,
    /// The whole path up to the step.
    whole: u64,
}

/// Returns the marked values of a file that `is_wanted` selects by the setter.
///
/// # Errors
///
/// If the bytes are not YAML within the limits.
pub(super) fn placed_markers(
    content: &[u8],
    limits: &Limits,
    is_wanted: &dyn Fn(&Marker) -> bool,
) -> Result<Vec<PlacedMarker>, YamlError> {
    let source = std::str::from_utf8(content).map_err(|error| YamlError::not_utf8(content, error))?;
    let mut walk = Walk::new(source, limits);
    let mut document = Document::default();
    let mut placed = Vec::new();
    loop {
        match walk.next_visit()? {
            Some(Visit::Value(scalar, comment)) => {
                let path = walk.path();
                document.objects.record(path, &scalar.value);
                if let [outer @ .., Step::Key(key)] = path
                    && key == "name"
                    && let Some(entry) = hashes(outer).last().filter(|_| is_entry(outer))
                {
                    document.names.insert(entry.whole, hash_of(("name", scalar.value.as_ref())));
                }
                let marker = comment.as_ref().and_then(|comment| marker::parse(comment.text(source)).ok());
                if let (Some(marker), Some(comment)) = (marker.filter(is_wanted), comment) {
                    let (part, rest) = object::split(path);
                    let outer = path.len() - rest.len();
                    let (value, line) = (scalar.value.to_string(), comment.line);
                    document.open.push(Open { marker, part, path: hashes(path), outer, value, line });
                }
            }
            Some(Visit::Stray(_)) => {}
            Some(Visit::DocumentEnd) => std::mem::take(&mut document).finish(&mut placed),
            None => {
                document.finish(&mut placed);
                return Ok(placed);
            }
        }
        if placed.len() + document.open.len() > limits.markers {
            let line = document.open.last().map_or(1, |open| open.line);
            let cause = YamlErrorKind::TooManyMarkers { limit: limits.markers };
            return Err(YamlError { line, column: 1, cause });
        }
    }
}

/// The markers of one document.
#[derive(Default)]
struct Document {
    objects: ObjectTracker,
    open: Vec<Open>,
    /// The names of entries of lists, by their paths.
    names: HashMap<u64, u64>,
}

impl Document {
    fn finish(self, placed: &mut Vec<PlacedMarker>) {
        let Self { objects, open, names } = self;
        for Open { marker, part, path, outer, value, line } in open {
            let object = objects.identify(part);
            let inner = if part != Part::Document && objects.is_list() { outer } else { 0 };
            let place = place(&object, &path[inner..], &names);
            placed.push(PlacedMarker { marker, place, value, line });
        }
    }
}

fn place(object: &ObjectIdentifier, path: &[PathHash], names: &HashMap<u64, u64>) -> Place {
    let mut hasher = FixedState::default().build_hasher();
    (&object.api_version, &object.kind, &object.namespace, &object.name).hash(&mut hasher);
    for (index, step) in path.iter().enumerate() {
        // The name of an entry does not name itself.
        let is_name = index + 2 == path.len() && path[index + 1].step == hash_of(Step::Key("name".into()));
        let name = names.get(&step.whole).filter(|_| !is_name);
        name.unwrap_or(&step.step).hash(&mut hasher);
    }
    Place(hasher.finish())
}

fn is_entry(path: &[Step<'_>]) -> bool {
    matches!(path, [.., Step::Index(_)])
}

/// Returns the hashes of a path's steps.
fn hashes(path: &[Step<'_>]) -> Vec<PathHash> {
    let mut whole = 0;
    let hash = |step: &Step<'_>| {
        let step = hash_of(step);
        whole = hash_of((whole, step));
        PathHash { step, whole }
    };
    path.iter().map(hash).collect()
}

impl Hash for Step<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Key(key) => (0_u8, key.as_ref()).hash(state),
            Self::Index(index) => (1_u8, index).hash(state),
            Self::NoName => 2_u8.hash(state),
        }
    }
}

fn hash_of(value: impl Hash) -> u64 {
    FixedState::default().hash_one(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Vec<Place> {
        let text = text.replace('@', r#"# {"$imagepolicy": "n:p:tag"}"#);
        let placed = placed_markers(text.as_bytes(), &Limits::default(), &|_| true).unwrap();
        placed.into_iter().map(|marker| marker.place).collect()
    }

    #[test]
    fn a_place_is_the_object_and_the_path_with_the_names_of_entries() {
        let object = "kind: A\nmetadata: {name: x}\n";
        for (one, other, is_same) in [
            ("a: v1 @\n", "b: x\na: v2 @\n", true),
            ("a: v1 @\n", "b: v1 @\n", false),
            ("kind: A\na: v1 @\n", "kind: B\na: v1 @\n", false),
            ("- {name: x, b: c}\n- name: y\n  a: v1 @\n", "- a: v1 @\n  name: y\n", true),
            ("- name: x\n  a: v1 @\n", "- name: y\n  a: v1 @\n", false),
            ("- b: c\n- a: v1 @\n", "- a: v1 @\n", false),
            ("- name: v1 @\n", "- name: v2 @\n", true),
            ("- name: x\n  l:\n  - v1 @\n", "- {}\n- name: x\n  l:\n  - v1 @\n", true),
            (
                "kind: List\nitems:\n- kind: A\n  metadata: {name: x}\n  a: v1 @\n",
                &format!("{object}a: v1 @\n"),
                true,
            ),
            ("items:\n- kind: A\n  a: v1 @\n", "items:\n- {}\n- kind: A\n  a: v1 @\n", false),
        ] {
            assert_eq!(places(one) == places(other), is_same, "{one:?} {other:?}");
        }
    }
}
