//! Changes of marked values between two versions of several files.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use super::marked_content::{MarkedValue, MarkerKey};
use crate::update::result::ObjectIdentifier;

/// A file with its marked values before and after.
#[derive(Debug, Clone, Copy)]
pub struct FileVersions<'c> {
    /// The file.
    pub file: &'c Rc<str>,
    /// The marked values before; empty if there was no file.
    pub old: &'c [MarkedValue],
    /// The marked values after; empty if there is no file.
    pub new: &'c [MarkedValue],
}

/// A marked value at its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: Rc<str>,
    /// The identity of the marker.
    pub key: Rc<MarkerKey>,
    /// The value.
    pub value: Rc<str>,
    /// The line of the value, counted from 1.
    pub line: usize,
}

/// A marked value before and after; at least one of them exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueChange {
    /// The value before, unless the marker is new.
    pub old: Option<Place>,
    /// The value after, unless the marker is gone.
    pub new: Option<Place>,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// Another value.
    Changed,
    /// A new marker.
    Added,
    /// A marker that is gone.
    Removed,
    /// The same value in another file, or with another ordinal.
    Moved,
}

impl ValueChange {
    /// The kind of the change.
    pub fn kind(&self) -> ChangeKind {
        match (&self.old, &self.new) {
            (None, _) => ChangeKind::Added,
            (Some(_), None) => ChangeKind::Removed,
            (Some(old), Some(new)) if old.value == new.value => ChangeKind::Moved,
            _ => ChangeKind::Changed,
        }
    }

    /// The location after the change, or before it if the marker is gone.
    pub fn place(&self) -> &Place {
        self.new.as_ref().or(self.old.as_ref()).expect("a change has a value before or after")
    }
}

/// Returns the changes of marked values between two versions of files.
///
/// Markers with the same object and setter are the same marker: in one file, else in any. So a value that moves with
/// its file, or within it, is neither removed nor added. The order is by file, then by line.
pub fn compare(files: &[FileVersions<'_>]) -> Vec<ValueChange> {
    let mut changes = Vec::new();
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for versions in files {
        if versions.has_same_markers() {
            let pairs = versions.old.iter().zip(versions.new);
            let different = pairs.filter(|(old, new)| old.value != new.value);
            changes.extend(different.map(|(old, new)| ValueChange {
                old: Some(versions.place(old)),
                new: Some(versions.place(new)),
            }));
        } else {
            old.extend(versions.old.iter().map(|value| versions.place(value)));
            new.extend(versions.new.iter().map(|value| versions.place(value)));
        }
    }
    if !(old.is_empty() && new.is_empty()) {
        take_pairs(&mut old, &mut new, &mut changes, |place| place.pair_key(true, true));
        take_pairs(&mut old, &mut new, &mut changes, |place| place.pair_key(true, false));
        take_pairs(&mut old, &mut new, &mut changes, |place| place.pair_key(false, false));
        changes.extend(old.into_iter().map(|old| ValueChange { old: Some(old), new: None }));
        changes.extend(new.into_iter().map(|new| ValueChange { old: None, new: Some(new) }));
        // Stable: a marker that is gone stays before a new one on the same line.
        changes.sort_by(|left, right| left.place().location().cmp(&right.place().location()));
    }
    changes
}

/// The parts of a marker by which two versions of it are recognized.
type PairKey<'p> = (&'p ObjectIdentifier, &'p str, Option<&'p str>, Option<&'p str>);

/// Moves the pairs with equal keys from `old` and `new` to `changes`.
///
/// Pairs without a difference are dropped.
fn take_pairs(
    old: &mut Vec<Place>,
    new: &mut Vec<Place>,
    changes: &mut Vec<ValueChange>,
    key: impl Fn(&Place) -> PairKey<'_>,
) {
    let mut places: HashMap<PairKey<'_>, VecDeque<usize>> = HashMap::new();
    for (index, place) in old.iter().enumerate() {
        places.entry(key(place)).or_default().push_back(index);
    }
    let partner = |place| places.get_mut(&key(place)).and_then(VecDeque::pop_front);
    let partners: Vec<Option<usize>> = new.iter().map(partner).collect();
    let mut olds: Vec<Option<Place>> = std::mem::take(old).into_iter().map(Some).collect();
    for (place, partner) in std::mem::take(new).into_iter().zip(partners) {
        match partner.and_then(|index| olds[index].take()) {
            None => new.push(place),
            Some(before) => {
                let is_same =
                    before.value == place.value && before.file == place.file && before.key == place.key;
                if !is_same {
                    changes.push(ValueChange { old: Some(before), new: Some(place) });
                }
            }
        }
    }
    old.extend(olds.into_iter().flatten());
}

impl FileVersions<'_> {
    /// Returns true if both versions have the same markers in the same order.
    fn has_same_markers(&self) -> bool {
        let is_same =
            |(old, new): (&MarkedValue, &MarkedValue)| Rc::ptr_eq(&old.key, &new.key) || old.key == new.key;
        self.old.len() == self.new.len() && self.old.iter().zip(self.new).all(is_same)
    }

    fn place(&self, value: &MarkedValue) -> Place {
        let MarkedValue { key, value, line, .. } = value;
        Place { file: self.file.clone(), key: key.clone(), value: value.clone(), line: *line }
    }
}

impl Place {
    /// Returns the object and setter, and the file and value if requested.
    fn pair_key(&self, has_file: bool, has_value: bool) -> PairKey<'_> {
        let (file, value) = (has_file.then_some(&*self.file), has_value.then_some(&*self.value));
        (&self.key.object, &self.key.setter, file, value)
    }

    fn location(&self) -> (&str, usize) {
        (&self.file, self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update::history::MarkedContent;
    use crate::yaml::Limits;

    /// Parses a version: lines `KIND SETTER=VALUE …`, each line a document.
    fn version(text: &str) -> MarkedContent {
        let document = |line: &str| {
            let (kind, values) = line.split_once(' ').unwrap();
            let value = |(index, value): (usize, &str)| {
                let (setter, value) = value.split_once('=').unwrap();
                format!("v{index}: {value} # {{\"$imagepolicy\": \"n:{setter}\"}}\n")
            };
            format!("---\nkind: {kind}\n{}", values.split(' ').enumerate().map(value).collect::<String>())
        };
        let text: String = text.lines().map(document).collect();
        MarkedContent::parse(text.into_bytes(), &Limits::default()).unwrap()
    }

    /// Compares versions of files: name, old, new.
    fn changes(files: &[(&str, &str, &str)]) -> Vec<String> {
        let files: Vec<(Rc<str>, MarkedContent, MarkedContent)> =
            files.iter().map(|(file, old, new)| ((*file).into(), version(old), version(new))).collect();
        let versions: Vec<FileVersions<'_>> = files
            .iter()
            .map(|(file, old, new)| FileVersions { file, old: old.values(), new: new.values() })
            .collect();
        let value = |place: &Option<Place>| {
            place.as_ref().map_or("-".to_owned(), |place| format!("{}:{}", place.file, place.value))
        };
        let show = |change: &ValueChange| {
            let key = &change.place().key;
            let (old, new) = (value(&change.old), value(&change.new));
            format!("{:?} {}/{} {old} {new}", change.kind(), key.object.kind, key.setter)
        };
        compare(&versions).iter().map(show).collect()
    }

    #[test]
    fn changes_of_files() {
        for (files, expected) in [
            (&[("f", "A p=1 q=1", "A p=2 q=1")][..], &["Changed A/n:p f:1 f:2"][..]),
            (&[("f", "A p=1", "A p=1")], &[]),
            (&[("f", "", "A p=1")], &["Added A/n:p - f:1"]),
            (&[("f", "A p=1", "")], &["Removed A/n:p f:1 -"]),
            // Another policy is another marker.
            (&[("f", "A p=1", "A q=1")], &["Removed A/n:p f:1 -", "Added A/n:q - f:1"]),
            // Twice in an object: by order, and by value if one is gone.
            (&[("f", "A p=1 p=2", "A p=2 p=3")], &["Changed A/n:p f:1 f:2", "Changed A/n:p f:2 f:3"]),
            (&[("f", "A p=1 p=2", "A p=2")], &["Moved A/n:p f:2 f:2", "Removed A/n:p f:1 -"]),
            (
                &[("f", "A p=1 p=1", "A p=2 p=2 q=1")],
                &["Changed A/n:p f:1 f:2", "Changed A/n:p f:1 f:2", "Added A/n:q - f:1"],
            ),
            // Moved markers, in a file and with it.
            (&[("f", "A p=1 q=1\nB p=1", "B p=1\nA q=1 p=1")], &[]),
            (&[("f", "A p=1 q=1", "A q=1 p=2")], &["Changed A/n:p f:1 f:2"]),
            (&[("f", "A p=1", ""), ("g", "", "A p=1")], &["Moved A/n:p f:1 g:1"]),
            (&[("f", "A p=1", ""), ("g", "", "A p=2")], &["Changed A/n:p f:1 g:2"]),
            (&[("f", "A p=1", ""), ("g", "", "B p=1")], &["Removed A/n:p f:1 -", "Added B/n:p - g:1"]),
            // A file that keeps its marker keeps it, although another file has the same one.
            (
                &[("f", "A p=1", "A p=2"), ("g", "A p=1", "")],
                &["Changed A/n:p f:1 f:2", "Removed A/n:p g:1 -"],
            ),
            (
                &[("f", "A p=1", "A p=2 q=1"), ("g", "", "A p=1")],
                &["Changed A/n:p f:1 f:2", "Added A/n:q - f:1", "Added A/n:p - g:1"],
            ),
        ] {
            assert_eq!(changes(files), expected, "{files:?}");
        }
    }
}
