//! The trees of a branch's commits, each made of the one before it.

use std::collections::BTreeSet;

use git2::Oid;

use super::model::BranchDraft;
use crate::git::commit_error::CommitError;
use crate::git::edited_tree::TreeWriter;
use crate::git::pack::NewObjects;
use crate::git::tree::GitTree;
use crate::update::{Checkpoint, FileEdit, FileTree, Interrupt, TreePath};

/// Makes the edits of a draft for a tree that others have edited.
pub(super) type EditsIn<'a> =
    dyn Fn(&BranchDraft, &dyn FileTree, &mut Checkpoint<'_>) -> Result<Vec<FileEdit>, Interrupt> + 'a;

/// Applies drafts to a tree, and returns the tree after each of them.
///
/// A draft whose files were edited by one before it gets new edits from `edits_in`: its own are for the base.
///
/// # Errors
///
/// If an edit does not fit, an object cannot be read or written, or `checkpoint` returns an error.
pub(super) fn stack(
    objects: &mut NewObjects<'_>,
    root: Oid,
    drafts: &[&BranchDraft],
    edits_in: &EditsIn<'_>,
    checkpoint: &mut Checkpoint<'_>,
) -> Result<Vec<Oid>, CommitError> {
    let (mut trees, mut tree) = (Vec::new(), root);
    let mut edited: BTreeSet<&TreePath> = BTreeSet::new();
    for draft in drafts {
        let edits = &draft.commit.edits;
        let is_shared = edits.iter().any(|edit| edited.contains(&edit.entry.path));
        tree = if is_shared {
            let files = GitTree::of_tree(objects.repository(), tree)?;
            let edits = edits_in(draft, &files, checkpoint)?;
            TreeWriter::new(objects, checkpoint).apply(tree, &edits)?
        } else {
            TreeWriter::new(objects, checkpoint).apply(tree, edits)?
        };
        edited.extend(edits.iter().map(|edit| &edit.entry.path));
        trees.push(tree);
    }
    Ok(trees)
}
