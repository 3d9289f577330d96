//! The values that an update leaves as they are.

use std::collections::{BTreeMap, BTreeSet};

use super::placed_marker::{Place, PlacedMarker, placed_markers};
use super::tree::TreePath;
use crate::yaml::{Limits, YamlError};

/// The values that an update leaves as they are, by file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldValues(BTreeMap<TreePath, FileHolds>);

/// The held values of one file.
///
/// The lines are not needed, so the holds fit a file that others edited as well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileHolds(BTreeSet<HeldValue>);

/// A held value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HeldValue {
    /// The place of the marker.
    pub(super) place: Place,
    /// The setter as written.
    pub(super) setter: String,
    /// The value.
    pub(super) value: String,
}

impl HeldValues {
    /// Adds a value of a file.
    pub(super) fn add(&mut self, path: TreePath, value: HeldValue) {
        self.0.entry(path).or_default().0.insert(value);
    }

    /// Returns the holds of a file.
    pub(super) fn of_file(&self, path: &TreePath) -> Option<&FileHolds> {
        self.0.get(path)
    }
}

impl FileHolds {
    /// Returns the lines of a content with values that are left as they are.
    ///
    /// # Errors
    ///
    /// If the bytes are not YAML within the limits.
    pub(super) fn lines(&self, content: &[u8], limits: &Limits) -> Result<BTreeSet<usize>, YamlError> {
        let setters: BTreeSet<&str> = self.0.iter().map(|held| held.setter.as_str()).collect();
        let markers = placed_markers(content, limits, &|marker| setters.contains(marker.setter.as_str()))?;
        let found: Vec<(HeldValue, usize)> = markers
            .into_iter()
            .map(|PlacedMarker { marker, place, value, line }| {
                (HeldValue { place, setter: marker.setter, value }, line)
            })
            .collect();
        let places: BTreeSet<(Place, &str)> = found.iter().map(|(value, _)| value.marker()).collect();
        // Others may have moved the marker: its value counts then.
        let is_moved = |held: &&HeldValue| !places.contains(&held.marker());
        let moved: BTreeSet<(&str, &str)> = self.0.iter().filter(is_moved).map(HeldValue::text).collect();
        let is_held = |value: &HeldValue| self.0.contains(value) || moved.contains(&value.text());
        Ok(found.iter().filter(|(value, _)| is_held(value)).map(|(_, line)| *line).collect())
    }
}

impl HeldValue {
    fn marker(&self) -> (Place, &str) {
        (self.place, &self.setter)
    }

    fn text(&self) -> (&str, &str) {
        (&self.setter, &self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str) -> String {
        text.replace("@p", r#"# {"$imagepolicy": "n:p:tag"}"#)
            .replace("@q", r#"# {"$imagepolicy": "n:q:tag"}"#)
    }

    /// Returns the held lines, with the holds of some lines of another content.
    fn held(of: &str, lines: &[usize], content: &str) -> Vec<usize> {
        let placed = placed_markers(marked(of).as_bytes(), &Limits::default(), &|_| true).unwrap();
        let held = placed.into_iter().filter(|marker| lines.contains(&marker.line));
        let held = held.map(|PlacedMarker { marker, place, value, .. }| HeldValue {
            place,
            setter: marker.setter,
            value,
        });
        let found = FileHolds(held.collect()).lines(marked(content).as_bytes(), &Limits::default());
        found.unwrap().into_iter().collect()
    }

    #[test]
    fn a_value_is_held_at_its_place() {
        let two = "a: '1' @p\nb: '1' @p\n";
        for (of, lines, content, expected) in [
            (two, &[2][..], two, &[2][..]),
            (two, &[1, 2], two, &[1, 2]),
            (two, &[], two, &[]),
            // Others have edited the file.
            (two, &[2], "x: y\na: '1' @p\nb: '1' @p\n", &[3]),
            (two, &[2], "a: '1' @p\nb: '2' @p\n", &[]),
            (two, &[2], "a: '2' @p\nb: '2' @p\n", &[]),
            // The marker has moved.
            (two, &[2], "c: '1' @p\nd: '1' @q\n", &[1]),
            ("a: '1' @p\nb: '1' @q\n", &[1], "a: '1' @q\nb: '1' @q\n", &[]),
        ] {
            assert_eq!(held(of, lines, content), expected, "{of:?} {lines:?} {content:?}");
        }
        let holds = FileHolds::default();
        holds.lines(b"a: [\n", &Limits::default()).unwrap_err();
    }
}
