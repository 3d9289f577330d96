//! The files of a would-be commit: their digests and their diffs.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::git::unified_diff;
use crate::update::diff::{self, DiffError};
use crate::update::marker_values::strip_foreign_markers;
use crate::update::{Checkpoint, Entry, EntryKind, FileEdit, FileTree, Progress, TreePath, UpdateRequest};

/// The maximum bytes of the files of one would-be commit that are kept, for diffs.
const KEPT: usize = 128 * 1024;

/// The maximum bytes of a diff that are shown.
const SHOWN: usize = 32 * 1024;

/// A file as a would-be commit leaves it.
#[derive(Clone, Debug)]
pub(super) struct Proposed {
    /// The SHA-256 of its content without the values of other automations.
    digest: [u8; 32],
    /// Its content, unless it is too large.
    pub(super) content: Option<Vec<u8>>,
}

impl Proposed {
    /// Makes the files that edits lead to.
    pub(super) fn all(
        tree: &dyn FileTree,
        edits: &[FileEdit],
        update: &UpdateRequest,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<BTreeMap<TreePath, Self>, DiffError> {
        let (mut files, mut content, mut remaining) = (BTreeMap::new(), Vec::new(), KEPT);
        for edit in edits {
            checkpoint(Progress::default())?;
            tree.read(&edit.entry, usize::MAX, &mut content)?;
            let after = edit.apply(&content).expect("a tree of git does not change");
            let digest = digest(&after, update);
            let rest = remaining.checked_sub(after.len());
            remaining = rest.unwrap_or(remaining);
            let content = rest.map(|_| after);
            files.insert(edit.entry.path.clone(), Self { digest, content });
        }
        Ok(files)
    }

    /// Returns the memory that the file takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.content.as_ref().map_or(0, Vec::len)
    }

    /// Returns the diff to the file in a tree, if it differs.
    pub(super) fn difference(
        &self,
        path: &TreePath,
        tree: &dyn FileTree,
        update: &UpdateRequest,
    ) -> Option<String> {
        let entry = Entry { path: path.clone(), kind: EntryKind::File, content: None };
        let mut theirs = Vec::new();
        if let Err(error) = tree.read(&entry, update.limits.file_size, &mut theirs) {
            return Some(format!("{error}\n"));
        }
        if digest(&theirs, update) == self.digest {
            return None;
        }
        Some(match &self.content {
            None => format!("{path} is too large to be shown\n"),
            Some(ours) if may_have_secrets(ours) || may_have_secrets(&theirs) => hidden(path),
            Some(ours) => unified_diff(&path.to_string(), &theirs, ours),
        })
    }
}

/// Returns the diff of edits to the files of a tree.
pub(super) fn would_be(
    tree: &dyn FileTree,
    edits: &[FileEdit],
    checkpoint: &mut Checkpoint<'_>,
) -> Result<String, DiffError> {
    let (mut text, mut content) = (String::new(), Vec::new());
    for edit in edits {
        checkpoint(Progress::default())?;
        tree.read(&edit.entry, usize::MAX, &mut content)?;
        if may_have_secrets(&content) {
            text.push_str(&hidden(&edit.entry.path));
        } else {
            diff::write_file(edit, &content, &mut text);
        }
        if text.len() > SHOWN {
            break;
        }
    }
    Ok(bounded(text))
}

/// Shortens a diff to the maximum length.
pub(super) fn bounded(mut text: String) -> String {
    if text.len() > SHOWN {
        let end = text.floor_char_boundary(SHOWN);
        text.truncate(text[..end].rfind('\n').map_or(end, |newline| newline + 1));
        text.push_str("… the rest is not shown\n");
    }
    text
}

fn digest(content: &[u8], update: &UpdateRequest) -> [u8; 32] {
    Sha256::digest(strip_foreign_markers(content, &update.setters, &update.limits)).into()
}

/// Returns whether a file may contain a Secret, whose lines must not be logged.
fn may_have_secrets(content: &[u8]) -> bool {
    let has = |line: &[u8], word: &[u8]| memchr::memmem::find(line, word).is_some();
    content.split(|byte| *byte == b'\n').any(|line| has(line, b"kind") && has(line, b"Secret"))
}

fn hidden(path: &TreePath) -> String {
    format!("{path} has a Secret, so its lines are not shown\n")
}
