//! Edits as a unified diff.

use similar::TextDiff;

use super::terminal::{Palette, printable};
use crate::update::{FileEdit, FileTree, TreeError, TreePath};

/// The unified diff of some edits of a tree, as `git apply` takes it.
///
/// A file that changed since the edits were planned is left out.
pub(super) fn unified(tree: &dyn FileTree, edits: &[FileEdit]) -> Result<String, TreeError> {
    let mut diff = String::new();
    let mut before = Vec::new();
    for edit in edits {
        tree.read(&edit.entry, usize::MAX, &mut before)?;
        if let Some(after) = edit.apply(&before) {
            diff.push_str(&unified_file(&edit.entry.path, &before, &after));
        }
    }
    Ok(diff)
}

fn unified_file(path: &TreePath, before: &[u8], after: &[u8]) -> String {
    let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
    let path = printable(&path.to_string());
    TextDiff::from_lines(before.as_ref(), after.as_ref())
        .unified_diff()
        .header(&format!("a/{path}"), &format!("b/{path}"))
        .to_string()
}

/// A diff for a person's eyes: with colours, if the palette has any.
pub(super) fn coloured(diff: &str, palette: Palette) -> String {
    if palette.reset.is_empty() {
        return diff.to_owned();
    }
    let mut text = String::with_capacity(diff.len());
    for line in diff.split_inclusive('\n') {
        let (content, end) = line.strip_suffix('\n').map_or((line, ""), |content| (content, "\n"));
        let colour = match content.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => palette.heading,
            [b'+', ..] => palette.added,
            [b'-', ..] => palette.removed,
            [b'@', ..] => palette.place,
            _ => "",
        };
        let reset = if colour.is_empty() { "" } else { palette.reset };
        text.extend([colour, &printable(content), reset, end]);
    }
    text
}
