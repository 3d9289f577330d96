//! Unified diffs on a terminal.

use super::terminal::{Palette, printable};

/// A diff for a person's eyes: with colours, if the palette has any.
pub(super) fn coloured(diff: &str, palette: Palette) -> String {
    if palette.reset.is_empty() {
        return diff.to_owned();
    }
    let mut text = String::with_capacity(diff.len());
    for line in diff.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        let colour = match content.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => palette.heading,
            [b'+', ..] => palette.added,
            [b'-', ..] => palette.removed,
            [b'@', ..] => palette.place,
            _ => "",
        };
        let reset = if colour.is_empty() { "" } else { palette.reset };
        text.extend([colour, &printable(content), reset, &line[content.len()..]]);
    }
    text
}
