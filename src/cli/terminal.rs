//! Standard output and standard error, with colours on a terminal.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use crate::printable::printable;

/// Colours for one stream; all are empty without colours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Palette {
    pub(super) added: &'static str,
    pub(super) removed: &'static str,
    pub(super) location: &'static str,
    pub(super) heading: &'static str,
    pub(super) reset: &'static str,
    /// True if the stream is a terminal, with or without colours.
    is_terminal: bool,
}

/// No colours, not even on a terminal.
pub(super) const PLAIN: Palette =
    Palette { added: "", removed: "", location: "", heading: "", reset: "", is_terminal: false };

const COLOURS: Palette = Palette {
    added: "\u{1b}[32m",
    removed: "\u{1b}[31m",
    location: "\u{1b}[36m",
    heading: "\u{1b}[1m",
    reset: "\u{1b}[0m",
    is_terminal: true,
};

impl Palette {
    /// Returns colours for standard output: on a terminal, unless `NO_COLOR` is not empty (no-color.org).
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

/// Returns standard output with a buffer, which the caller flushes.
pub(super) fn buffered() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

/// Writes one line to standard error.
pub(super) fn say(line: &str) {
    // A failure to write here cannot be reported.
    let _ = writeln!(io::stderr().lock(), "{}", printable(line));
}

/// The maximum width of a column.
const WIDEST_COLUMN: usize = 128;

/// Returns the width of a column of a table.
///
/// Cells longer than the maximum do not widen it.
pub(super) fn column_width<'c>(cells: impl Iterator<Item = &'c str>) -> usize {
    let widths = cells.map(|cell| cell.chars().count());
    widths.filter(|width| *width <= WIDEST_COLUMN).max().unwrap_or_default()
}

/// Returns foreign text as a cell of a table: on one line, and without tabs.
pub(super) fn cell(text: &str) -> String {
    printable(text).replace('\t', "\\t")
}

/// Returns a number and a noun, in singular or plural: `1 file`, `2 files`.
pub(super) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Returns a diff for standard output.
///
/// On a terminal it has colours, and escapes for unprintable characters. In a pipe it is a patch, byte for byte.
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
            [b'@', ..] => palette.location,
            _ => "",
        };
        let reset = if colour.is_empty() { "" } else { palette.reset };
        text.extend([colour, &printable(content), reset, &line[content.len()..]]);
    }
    text
}
