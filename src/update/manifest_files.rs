//! Lists the files of a tree that may be Kubernetes manifests.

use std::ops::ControlFlow;

use super::error::ScopeError;
use super::links::Skipped;
use super::scope::{ScopeVisitor, ScopedFile, is_yaml_name, walk};
use super::tree::{Entry, FileTree};

/// All files of a tree that may be manifests.
#[derive(Debug, Default)]
pub struct ManifestFiles {
    /// The files, each listed once.
    pub files: Vec<Entry>,
    /// The links and directories that were skipped, in ascending order.
    pub skipped: Vec<Skipped>,
}

/// Lists the files of the whole tree that may be manifests.
///
/// JSON files are included, since kubectl reads them too; an update never edits them, since JSON has no comments.
///
/// # Errors
///
/// Returns an error if the tree cannot be listed.
pub fn list_manifests(tree: &dyn FileTree) -> Result<ManifestFiles, ScopeError> {
    let mut manifests = ManifestFiles::default();
    walk(tree, None, |name| is_yaml_name(name) || name.ends_with(b".json"), &mut manifests)?;
    Ok(manifests)
}

impl ScopeVisitor for ManifestFiles {
    fn file(&mut self, file: ScopedFile<'_>) -> ControlFlow<()> {
        self.files.push(file.entry);
        ControlFlow::Continue(())
    }

    fn skipped(&mut self, skipped: Skipped) -> ControlFlow<()> {
        self.skipped.push(skipped);
        ControlFlow::Continue(())
    }
}
