//! The changes of an update: by file, then by object.
//!
//! This is Flux's `ResultV2` (`docs/flux-behaviour.md`, Results of an update).

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Kubernetes object's identity as its document states it.
///
/// Missing fields are empty. The order is by apiVersion, kind, name and namespace, as in Flux's templates.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectIdentifier {
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.namespace`.
    pub namespace: String,
}

/// Prints as `kind/namespace/name`.
impl fmt::Display for ObjectIdentifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{}", self.kind, self.namespace, self.name)
    }
}

/// One value replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, expecting = "an object")]
// A printed change has all members; one that is read may lack some.
#[schemars(!default)]
pub struct Change {
    /// The value before.
    pub old_value: String,
    /// The value now.
    pub new_value: String,
    /// The marker's setter, such as `default:app:tag`.
    pub setter: String,
    /// The line of the value, counted from 1.
    pub line: usize,
}

/// The changes of one file by object.
///
/// Objects are in ascending order, changes in document order within an object.
///
/// Most files have one object with one change, so this is a list: a map takes a kilobyte for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectChanges(Vec<(ObjectIdentifier, Vec<Change>)>);

impl ObjectChanges {
    /// Returns true if nothing changes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The objects and their changes.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectIdentifier, &Vec<Change>)> {
        self.0.iter().map(|(object, changes)| (object, changes))
    }

    /// The changes of each object.
    pub fn values(&self) -> impl Iterator<Item = &Vec<Change>> {
        self.0.iter().map(|(_, changes)| changes)
    }
}

/// Groups changes by object.
impl FromIterator<(ObjectIdentifier, Change)> for ObjectChanges {
    fn from_iter<I: IntoIterator<Item = (ObjectIdentifier, Change)>>(changes: I) -> Self {
        let mut all: Vec<(ObjectIdentifier, Change)> = changes.into_iter().collect();
        all.sort_by(|(left, _), (right, _)| left.cmp(right));
        let objects = all.chunk_by(|(left, _), (right, _)| left == right).count();
        let mut grouped: Vec<(ObjectIdentifier, Vec<Change>)> = Vec::with_capacity(objects);
        for (object, change) in all {
            match grouped.last_mut() {
                Some((last, changes)) if *last == object => changes.push(change),
                _ => grouped.push((object, Vec::from([change]))),
            }
        }
        grouped.iter_mut().for_each(|(_, changes)| changes.shrink_to_fit());
        Self(grouped)
    }
}

/// All changes of an update.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResultV2 {
    /// By file, relative to `update.path`.
    pub file_changes: BTreeMap<Arc<str>, Arc<ObjectChanges>>,
}

impl ResultV2 {
    /// All changes in the order of files and objects.
    ///
    /// Repetitions of the same old value, new value and setter are left out.
    pub fn changes(&self) -> Vec<&Change> {
        let mut seen = HashSet::new();
        self.file_changes
            .values()
            .flat_map(|objects| objects.values())
            .flatten()
            .filter(|change| seen.insert((&change.old_value, &change.new_value, &change.setter)))
            .collect()
    }

    /// The number of replaced values.
    pub fn edits(&self) -> usize {
        self.file_changes.values().flat_map(|objects| objects.values()).map(Vec::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(old: &str, new: &str, line: usize) -> Change {
        Change { old_value: old.to_owned(), new_value: new.to_owned(), setter: "n:p".to_owned(), line }
    }

    fn object(name: &str) -> ObjectIdentifier {
        ObjectIdentifier { name: name.to_owned(), ..ObjectIdentifier::default() }
    }

    #[test]
    fn changes_are_listed_once() {
        let a = [(object("x"), change("1", "2", 3)), (object("x"), change("1", "2", 9))];
        let b = [(object("x"), change("1", "3", 1)), (object("w"), change("0", "2", 1))];
        let result = ResultV2 {
            file_changes: BTreeMap::from([
                ("a.yaml".into(), Arc::new(a.into_iter().collect())),
                ("b.yaml".into(), Arc::new(b.into_iter().collect())),
            ]),
        };
        let changes: Vec<_> =
            result.changes().iter().map(|change| (&*change.old_value, &*change.new_value)).collect();
        assert_eq!(changes, [("1", "2"), ("0", "2"), ("1", "3")]);
        assert_eq!(result.edits(), 4);
    }
}
