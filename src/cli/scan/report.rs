//! Tags of an image as JSON and as a table.

use std::fmt::Write;

use jiff::Timestamp;
use serde::Serialize;

use crate::cli::age::age;
use crate::cli::terminal::{Palette, cell, column_width};

/// The result of a scan.
#[derive(Debug, Serialize)]
pub(super) struct ScanReport {
    /// The image, as given.
    pub(super) image: String,
    /// Its full name.
    pub(super) canonical: String,
    /// The number of tags, shown or not.
    pub(super) count: usize,
    /// The checksum of all tags.
    pub(super) revision: String,
    /// The tags that are shown, the latest first.
    pub(super) tags: Vec<FoundTag>,
}

/// One tag.
#[derive(Debug, Serialize)]
pub(super) struct FoundTag {
    pub(super) tag: String,
    pub(super) digest: Option<String>,
    /// The creation time of the image, if it states one.
    pub(super) created: Option<Timestamp>,
    /// The error of the lookup.
    pub(super) error: Option<String>,
}

/// Renders a scan as a table.
pub(super) fn render(report: &ScanReport, now: Timestamp, palette: Palette) -> String {
    let mut text = String::new();
    write(report, now, palette, &mut text).expect("writing to a string cannot fail");
    text
}

fn write(report: &ScanReport, now: Timestamp, palette: Palette, text: &mut String) -> std::fmt::Result {
    let Palette { heading, reset, .. } = palette;
    writeln!(text, "{heading}Image:{reset} {}", report.canonical)?;
    writeln!(text, "{heading}Tags:{reset}  {}", report.count)?;
    if report.tags.is_empty() {
        return Ok(());
    }
    let rows: Vec<[String; 3]> = report.tags.iter().map(|tag| cells(tag, now)).collect();
    let width = |column: usize, title: &'static str| {
        column_width(rows.iter().map(|row| row[column].as_str()).chain([title]))
    };
    let (tags, digests) = (width(0, "TAG"), width(1, "DIGEST"));
    writeln!(text, "\n{heading}{:tags$}  {:digests$}  AGE{reset}", "TAG", "DIGEST")?;
    for [tag, digest, age] in &rows {
        writeln!(text, "{tag:tags$}  {digest:digests$}  {age}")?;
    }
    Ok(())
}

fn cells(tag: &FoundTag, now: Timestamp) -> [String; 3] {
    let unknown = || "-".to_owned();
    [
        cell(&tag.tag),
        tag.digest.clone().unwrap_or_else(unknown),
        tag.created.map_or_else(unknown, |created| age(created, now)),
    ]
}
