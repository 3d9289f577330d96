//! Edits as a unified diff.

use similar::TextDiff;

use super::terminal::{Palette, printable};
use crate::update::FileEdit;

/// The unified diff of some edits, as `git apply` takes it.
pub(super) fn unified(edits: &[FileEdit]) -> String {
    edits.iter().map(unified_file).collect()
}

fn unified_file(edit: &FileEdit) -> String {
    let (before, after) = (String::from_utf8_lossy(&edit.before), String::from_utf8_lossy(&edit.after));
    let path = printable(&edit.entry.path.to_string());
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
