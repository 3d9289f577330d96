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
    // A line ends at LF alone, as git sees it; a lone CR is part of its line.
    let before: Vec<&str> = before.split_inclusive('\n').collect();
    let after: Vec<&str> = after.split_inclusive('\n').collect();
    let mut text = format!("--- {}\n+++ {}\n", quoted_path(b"a/", path), quoted_path(b"b/", path));
    for hunk in TextDiff::from_slices(&before, &after).unified_diff().iter_hunks() {
        text.push_str(&format!("{}\n", hunk.header()));
        for change in hunk.iter_changes() {
            text.push_str(&format!("{}{}", change.tag(), change.value()));
            if !change.value().ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    text
}

/// A path as git writes it in a diff: in double quotes, with escapes, where its bytes would be taken otherwise.
fn quoted_path(prefix: &[u8], path: &TreePath) -> String {
    let is_plain = |text: &str| !text.chars().any(|c| c.is_control() || c == '"' || c == '\\');
    let bytes = [prefix, path.as_bytes()].concat();
    if let Ok(text) = std::str::from_utf8(&bytes)
        && is_plain(text)
    {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' => quoted.push(char::from(byte)),
            byte => quoted.push_str(&format!("\\{byte:03o}")),
        }
    }
    quoted.push('"');
    quoted
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
