//! Own markers: the markers of selected policies, with their values before and after an update.
//!
//! The list is for reports of rollouts. It is not part of a plan's memory: it has limits of its own, and a marker beyond
//! them is only counted.

use std::ops::Range;

use tagboat_api::ObjectName;

use super::file::{FileMarker, MarkedNode};
use super::marker::Field;
use super::marker_index::MAX_VALUE_LENGTH;
use super::report::MarkerOutcome;
use super::result::ObjectIdentifier;
use super::setter::Setters;
use super::tree::TreePath;

/// The maximum length of all texts of a marker, in bytes.
const MAX_TEXTS: usize = 8 * 1024;

/// The limits of a list of own markers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnMarkerLimits {
    /// The maximum number of markers.
    pub count: usize,
    /// The maximum size of all markers, in bytes.
    pub bytes: usize,
}

/// A marker of a selected policy.
///
/// It writes more of the image than the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnMarker {
    /// The file, relative to the root of the tree.
    pub file: String,
    /// The line of the comment, counted from 1.
    pub line: usize,
    /// The object that contains the marker.
    pub object: ObjectIdentifier,
    /// The policy.
    pub policy: ObjectName,
    /// The part of the image that it writes.
    pub field: Field,
    /// The JSON Pointer from the object to the value, if it is known.
    pub pointer: Option<String>,
    /// The value before the update; empty if there is none, or a very long one.
    pub value: String,
    /// The value after the update, if it changes.
    pub new_value: Option<String>,
}

/// The own markers of a plan, in the order of visited files and lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnMarkers {
    /// The markers within the limits.
    pub markers: Vec<OwnMarker>,
    /// The number of further markers.
    pub omitted: usize,
    /// The size of the markers, in bytes.
    bytes: usize,
}

/// The own markers of one file in a list.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnMarkersOfFile {
    range: Range<usize>,
    omitted: usize,
}

impl OwnMarkers {
    /// Adds the markers of a file.
    pub(super) fn add_file(
        &mut self,
        path: &TreePath,
        markers: &[FileMarker],
        setters: &Setters,
        limits: OwnMarkerLimits,
    ) -> OwnMarkersOfFile {
        let (start, omitted) = (self.markers.len(), self.omitted);
        let mut own = markers.iter().filter(|marker| is_own(marker)).peekable();
        if own.peek().is_some() {
            let file = path.to_string();
            own.for_each(|marker| self.add(of_file(&file, marker, setters), limits));
        }
        OwnMarkersOfFile { range: start..self.markers.len(), omitted: self.omitted - omitted }
    }

    /// Adds a file with the content of an earlier one.
    pub(super) fn add_copy(&mut self, path: &TreePath, first: &OwnMarkersOfFile, limits: OwnMarkerLimits) {
        for index in first.range.clone() {
            self.add(OwnMarker { file: path.to_string(), ..self.markers[index].clone() }, limits);
        }
        self.omitted += first.omitted;
    }

    fn add(&mut self, marker: OwnMarker, limits: OwnMarkerLimits) {
        let texts = marker.texts();
        let bytes = size_of::<OwnMarker>() + texts;
        if texts > MAX_TEXTS || self.markers.len() >= limits.count || self.bytes + bytes > limits.bytes {
            self.omitted += 1;
        } else {
            self.bytes += bytes;
            self.markers.push(marker);
        }
    }
}

impl OwnMarker {
    /// Returns the length of all texts, in bytes.
    fn texts(&self) -> usize {
        let ObjectIdentifier { api_version, kind, name, namespace } = &self.object;
        let texts = [&self.file, api_version, kind, name, namespace, &self.policy.name, &self.value];
        let optional = [&self.new_value, &self.pointer].into_iter().flatten();
        let texts = texts.into_iter().chain(optional).map(String::len);
        texts.sum::<usize>() + self.policy.namespace.len()
    }
}

/// Returns true for a marker of a selected policy that writes more than the name.
fn is_own(marker: &FileMarker) -> bool {
    use MarkerOutcome::{Changed, Current, PolicyWithoutImage, Waiting};
    matches!(marker.outcome, Changed | Current | PolicyWithoutImage | Waiting)
        && !matches!(marker.marker.field, Field::Name | Field::Unknown)
}

fn of_file(file: &str, found: &FileMarker, setters: &Setters) -> OwnMarker {
    let value = match &found.node {
        MarkedNode::Scalar(value) if value.len() <= MAX_VALUE_LENGTH => value.clone(),
        MarkedNode::Scalar(_) | MarkedNode::Absent | MarkedNode::NotScalar => String::new(),
    };
    let is_changed = found.outcome == MarkerOutcome::Changed;
    OwnMarker {
        file: file.to_owned(),
        line: found.line,
        object: found.object.clone(),
        policy: found.marker.policy.clone(),
        field: found.marker.field,
        pointer: found.pointer.clone(),
        value,
        new_value: is_changed.then(|| setters.value(&found.marker).ok()).flatten(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::reference::ImageReference;
    use crate::update::PolicyState;
    use crate::update::file::update_file;
    use crate::yaml::Limits;

    const NO_LIMITS: OwnMarkerLimits = OwnMarkerLimits { count: usize::MAX, bytes: usize::MAX };

    const FILE: &str = "\
kind: Deployment
metadata: {name: web}
name: app # {\"$imagepolicy\": \"n:with:name\"}
image: app:1 # {\"$imagepolicy\": \"n:with\"}
tag: '2' # {\"$imagepolicy\": \"n:with:tag\"}
none: x # {\"$imagepolicy\": \"n:without:tag\"}
deselected: x # {\"$imagepolicy\": \"n:deselected:tag\"}
unknown: x # {\"$imagepolicy\": \"n:unknown:tag\"}
other: x # {\"$imagepolicy\": \"m:with:tag\"}
field: x # {\"$imagepolicy\": \"n:with:size\"}
";

    fn name(name: &str) -> ObjectName {
        ObjectName { namespace: "n".into(), name: name.into() }
    }

    fn setters() -> Setters {
        let image = PolicyState::Image(ImageReference::parse("app:2").unwrap());
        let policies = [
            (name("with"), image),
            (name("without"), PolicyState::WithoutImage),
            (name("deselected"), PolicyState::NotSelected),
        ];
        Setters::new(BTreeMap::from(policies)).only_for("n".to_owned())
    }

    fn found(limits: OwnMarkerLimits) -> (OwnMarkers, OwnMarkersOfFile) {
        let outcome = update_file(FILE.as_bytes(), &setters(), None, &Limits::default()).unwrap();
        let mut own = OwnMarkers::default();
        let of_file =
            own.add_file(&TreePath::from_bytes("apps/web.yaml"), &outcome.markers, &setters(), limits);
        (own, of_file)
    }

    #[test]
    fn markers_of_selected_policies_are_listed_unless_they_write_the_name_only() {
        let (own, _) = found(NO_LIMITS);
        let rows: Vec<_> = own
            .markers
            .iter()
            .map(|marker| (marker.line, &*marker.policy.name, &*marker.value, marker.new_value.as_deref()))
            .collect();
        assert_eq!(
            rows,
            [(4, "with", "app:1", Some("app:2")), (5, "with", "2", None), (6, "without", "x", None)]
        );
        let first = &own.markers[0];
        assert_eq!(
            (&*first.file, &*first.object.name, first.field),
            ("apps/web.yaml", "web", Field::Reference)
        );
        assert_eq!(own.omitted, 0);
    }

    #[test]
    fn markers_beyond_the_limits_are_counted() {
        let bytes = found(NO_LIMITS).0.bytes;
        for (limits, expected) in [
            (OwnMarkerLimits { count: 3, bytes }, (3, 0)),
            (OwnMarkerLimits { count: 2, bytes }, (2, 1)),
            (OwnMarkerLimits { count: 3, bytes: bytes - 1 }, (2, 1)),
            (OwnMarkerLimits { count: 0, bytes }, (0, 3)),
        ] {
            let (own, _) = found(limits);
            assert_eq!((own.markers.len(), own.omitted), expected, "{limits:?}");
        }
    }

    #[test]
    fn a_copy_of_a_file_has_the_same_markers() {
        let limits = OwnMarkerLimits { count: 5, bytes: usize::MAX };
        let (mut own, first) = found(limits);
        own.add_copy(&TreePath::from_bytes("copy.yaml"), &first, limits);
        let files: Vec<_> = own.markers.iter().map(|marker| (&*marker.file, marker.line)).collect();
        assert_eq!(files[3..], [("copy.yaml", 4), ("copy.yaml", 5)]);
        assert_eq!(own.omitted, 1);
    }
}
