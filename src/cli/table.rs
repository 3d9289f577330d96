//! A table whose rows are printed one after the other.

use super::terminal::{Palette, column_width};

/// A cell without a value.
pub(super) const NONE: &str = "-";

/// The word for an object that was deleted, or is not selected any more.
pub(super) const GONE: &str = "gone";

/// A table; the widths of its columns grow with the rows.
pub(super) struct Table {
    titles: Vec<&'static str>,
    palette: Palette,
    widths: Vec<usize>,
    /// The next rows are below the titles.
    is_new: bool,
}

/// A row.
pub(super) struct Row {
    /// A cell for each title.
    pub(super) cells: Vec<String>,
    pub(super) tone: Tone,
}

/// The colour of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// The object is as wanted.
    Good,
    /// The object has a problem.
    Bad,
    /// Neither.
    Plain,
}

impl Table {
    pub(super) fn new(titles: Vec<&'static str>, palette: Palette) -> Self {
        Self { widths: vec![0; titles.len()], titles, palette, is_new: true }
    }

    /// Puts the titles above the next rows.
    pub(super) fn restart(&mut self) {
        self.is_new = true;
    }

    /// Returns rows as text; the first ones are below the titles of the columns.
    pub(super) fn text(&mut self, rows: &[Row]) -> String {
        for (index, (width, title)) in self.widths.iter_mut().zip(&self.titles).enumerate() {
            let cells = rows.iter().map(|row| row.cells[index].as_str());
            *width = column_width(cells.chain([*title])).max(*width);
        }
        let Palette { heading, added, removed, reset, .. } = self.palette;
        let mut text = String::new();
        if std::mem::take(&mut self.is_new) {
            text.extend([heading, &self.line(&self.titles), reset, "\n"]);
        }
        for row in rows {
            let (colour, end) = match row.tone {
                Tone::Bad => (removed, reset),
                Tone::Good => (added, reset),
                Tone::Plain => ("", ""),
            };
            text.extend([colour, &self.line(&row.cells), end, "\n"]);
        }
        text
    }

    fn line(&self, cells: &[impl AsRef<str>]) -> String {
        let cells = cells.iter().zip(&self.widths).map(|(cell, width)| format!("{:width$}", cell.as_ref()));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    }
}
