//! Standard output and standard error, with colour where a person looks at them.

use std::io::{self, IsTerminal, Write};

use crate::printable::printable;

/// Colours for one stream; all empty where colour is not wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Palette {
    pub(super) added: &'static str,
    pub(super) removed: &'static str,
    pub(super) place: &'static str,
    pub(super) heading: &'static str,
    pub(super) reset: &'static str,
    /// Set if a person may look at the stream, with or without colours.
    is_terminal: bool,
}

const PLAIN: Palette =
    Palette { added: "", removed: "", place: "", heading: "", reset: "", is_terminal: false };

const COLOURS: Palette = Palette {
    added: "\u{1b}[32m",
    removed: "\u{1b}[31m",
    place: "\u{1b}[36m",
    heading: "\u{1b}[1m",
    reset: "\u{1b}[0m",
    is_terminal: true,
};

impl Palette {
    /// Colours for standard output: on a terminal, unless `NO_COLOR` is set to anything (no-color.org).
    pub(super) fn for_output() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        let is_terminal = io::stdout().is_terminal();
        if is_terminal && !unwanted && !is_dumb { COLOURS } else { Palette { is_terminal, ..PLAIN } }
    }
}

/// Writes to standard output.
pub(super) fn print(text: &str) -> io::Result<()> {
    print_bytes(text.as_bytes())
}

/// Writes bytes to standard output.
pub(super) fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(bytes)?;
    output.flush()
}

/// Writes one line to standard error.
pub(super) fn say(line: &str) {
    // Nothing can be done when even this cannot be written.
    let _ = writeln!(io::stderr().lock(), "{}", printable(line));
}

/// The most that a column is widened to.
const WIDEST_COLUMN: usize = 128;

/// The width of a column of a table. A cell that is longer than any column may be stands out, and widens it for no other.
pub(super) fn column_width<'c>(cells: impl Iterator<Item = &'c str>) -> usize {
    let widths = cells.map(|cell| cell.chars().count());
    widths.filter(|width| *width <= WIDEST_COLUMN).max().unwrap_or_default()
}

/// Returns foreign text as a cell of a table: on one line, and without tabs, which would end it early.
pub(super) fn cell(text: &str) -> String {
    printable(text).replace('\t', "\\t")
}

/// A number and a noun, which stands in the plural unless there is one: `1 file`, `2 files`.
pub(super) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A diff for a person's eyes: on a terminal, with colours if they are wanted and unprintable characters as escapes. In a
/// pipe it is a patch, byte for byte.
pub(super) fn coloured(diff: &str, palette: Palette) -> String {
    if !palette.is_terminal {
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
