//! The values that an update leaves as they are.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::TreePath;

/// The values that an update leaves as they are, by file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldValues(BTreeMap<TreePath, FileHolds>);

/// The held values of one file: setters as written, each with a value.
///
/// The lines are not needed, so the holds fit a file that others edited as well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileHolds(BTreeSet<(String, String)>);

impl HeldValues {
    /// Adds a value of a file.
    pub fn add(&mut self, path: TreePath, setter: String, value: String) {
        self.0.entry(path).or_default().0.insert((setter, value));
    }

    /// Returns the holds of a file.
    pub(super) fn of_file(&self, path: &TreePath) -> Option<&FileHolds> {
        self.0.get(path)
    }
}

impl FileHolds {
    /// Returns true if a value is left as it is.
    pub(super) fn has(&self, setter: &str, value: &str) -> bool {
        self.0.contains(&(setter.to_owned(), value.to_owned()))
    }
}
