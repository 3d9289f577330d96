//! What an update changed: file, then object, then change (seed 003, Flux's `ResultV2`).

use std::collections::{BTreeMap, HashSet};
use std::fmt;

/// A Kubernetes object's identity as its document states it; missing parts are empty.
///
/// Ordered by apiVersion, kind, name, namespace, as Flux's templates see it.
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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Change {
    /// What the scalar read before.
    pub old_value: String,
    /// What it reads now.
    pub new_value: String,
    /// The marker's setter, such as `default:podinfo:tag`.
    pub setter: String,
    /// The line of the scalar, counted from 1.
    pub line: usize,
}

/// The changes of one file or of all files, by object; in document order within an object.
pub type ObjectChanges = BTreeMap<ObjectIdentifier, Vec<Change>>;

/// Everything that an update changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResultV2 {
    /// By file, relative to `update.path`.
    pub file_changes: BTreeMap<String, ObjectChanges>,
}

impl ResultV2 {
    /// All changes in the order of files and objects, without repetitions of the same old value, new value and
    /// setter.
    pub fn changes(&self) -> Vec<&Change> {
        let mut seen = HashSet::new();
        self.file_changes
            .values()
            .flat_map(BTreeMap::values)
            .flatten()
            .filter(|change| seen.insert((&change.old_value, &change.new_value, &change.setter)))
            .collect()
    }

    /// The changes by object, those of one object in several files joined in the order of the files.
    pub fn objects(&self) -> BTreeMap<&ObjectIdentifier, Vec<&Change>> {
        let mut objects: BTreeMap<&ObjectIdentifier, Vec<&Change>> = BTreeMap::new();
        for (object, changes) in self.file_changes.values().flatten() {
            objects.entry(object).or_default().extend(changes);
        }
        objects
    }

    /// How many values were replaced.
    pub fn edits(&self) -> usize {
        self.file_changes.values().flat_map(BTreeMap::values).map(Vec::len).sum()
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
    fn changes_are_listed_once_and_objects_joined_over_files() {
        let result = ResultV2 {
            file_changes: BTreeMap::from([
                (
                    "a.yaml".to_owned(),
                    BTreeMap::from([(object("x"), vec![change("1", "2", 3), change("1", "2", 9)])]),
                ),
                (
                    "b.yaml".to_owned(),
                    BTreeMap::from([
                        (object("w"), vec![change("0", "2", 1)]),
                        (object("x"), vec![change("1", "3", 1)]),
                    ]),
                ),
            ]),
        };
        let changes: Vec<_> =
            result.changes().iter().map(|change| (&*change.old_value, &*change.new_value)).collect();
        assert_eq!(changes, [("1", "2"), ("0", "2"), ("1", "3")]);
        let objects = result.objects();
        let lines: Vec<_> = objects[&object("x")].iter().map(|change| change.line).collect();
        assert_eq!(lines, [3, 9, 1]);
        assert_eq!(result.edits(), 4);
    }
}
