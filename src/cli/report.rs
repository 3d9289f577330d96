//! Text report of an update.

use std::fmt::Write;

use super::terminal::{Palette, count};
use crate::printable::{is_unprintable, printable};
use crate::update::{MarkerOutcome, ResultV2, Setters, Unparsable, UpdatePlan};

/// The contents of a report.
pub(super) struct Report<'a> {
    /// The automation's namespace and name, if there is one.
    pub(super) automation: Option<String>,
    /// True if that name was printed already.
    pub(super) is_headed: bool,
    pub(super) setters: &'a Setters,
    pub(super) plan: &'a UpdatePlan,
    /// The changes, made or not.
    pub(super) result: &'a ResultV2,
    pub(super) mode: ReportMode,
    /// The number of files that could not be written.
    pub(super) not_written: usize,
}

/// The treatment of the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportMode {
    /// They were made.
    Changed,
    /// They were not made, but would be.
    WouldChange,
    /// They were not made, as while they wait or are on a branch.
    NotChanged,
}

/// Returns the heading of an automation.
pub(super) fn heading(automation: &str, palette: Palette) -> String {
    format!("{}Automation: {}{}\n", palette.heading, printable(automation), palette.reset)
}

/// Renders the report: selected policies, changes by file, warnings, and a summary.
pub(super) fn render(report: &Report<'_>, palette: Palette) -> String {
    let mut text = String::new();
    write_report(report, palette, &mut text).expect("writing to a string cannot fail");
    text
}

fn write_report(report: &Report<'_>, palette: Palette, text: &mut String) -> std::fmt::Result {
    write_policies(report, palette, text)?;
    if let Some(automation) = report.automation.as_ref().filter(|_| !report.is_headed) {
        write!(text, "\n{}", heading(automation, palette))?;
    }
    write_changes(report.result, palette, text)?;
    write_warnings(report.plan, palette, text)?;
    write_summary(report, text)
}

fn write_policies(report: &Report<'_>, palette: Palette, text: &mut String) -> std::fmt::Result {
    writeln!(text, "{}Policies:{}", palette.heading, palette.reset)?;
    let mut is_empty = true;
    for (policy, image) in report.setters.selected() {
        is_empty = false;
        let name = if report.automation.is_some() { policy.name.clone() } else { policy.to_string() };
        let is_held = || report.setters.wanted().any(|(wanted, _)| wanted == policy);
        let image = match image {
            Some(image) => image.to_string(),
            None if is_held() => "its image waits".to_owned(),
            None => "no latest image that can be used".to_owned(),
        };
        writeln!(text, "- {}: {image}", printable(&name))?;
    }
    if is_empty {
        writeln!(text, "- none is selected")?;
    }
    Ok(())
}

fn write_changes(result: &ResultV2, palette: Palette, text: &mut String) -> std::fmt::Result {
    for (file, objects) in &result.file_changes {
        writeln!(text, "\n- File: {}{}{}", palette.location, printable(file), palette.reset)?;
        for (object, changes) in objects.iter() {
            writeln!(text, "  - Object: {}\n    Changes:", printable(&object.to_string()))?;
            for change in changes {
                let (old, new) = (value(&change.old_value), value(&change.new_value));
                let Palette { added, removed, reset, .. } = palette;
                writeln!(text, "    - {removed}{old}{reset} -> {added}{new}{reset}")?;
            }
        }
    }
    Ok(())
}

/// Returns a value on one line.
/// It is in quotes if it is empty or has unprintable characters.
fn value(text: &str) -> String {
    if text.is_empty() || text.contains(is_unprintable) { format!("{text:?}") } else { text.to_owned() }
}

fn write_warnings(plan: &UpdatePlan, palette: Palette, text: &mut String) -> std::fmt::Result {
    let mut lines: Vec<(&str, usize, String)> = Vec::new();
    for marker in plan.warnings() {
        let warning = marker.outcome.warning().unwrap_or_default();
        lines.push((&marker.file, marker.line, format!("marker `{}`: {warning}", marker.setter)));
    }
    for miss in &plan.near_misses {
        lines.push((&miss.file, miss.line, format!("not a marker: {}", miss.cause)));
    }
    for Unparsable { file, error } in &plan.unparsable {
        let sentence = format!("not changed, because it cannot be read: {error} (column {})", error.column);
        lines.push((file, error.line, sentence));
    }
    for skipped in &plan.skipped {
        lines.push((&skipped.file, 0, format!("skipped: {}", skipped.cause)));
    }
    if lines.is_empty() {
        return Ok(());
    }
    lines.sort();
    writeln!(text, "\n{}Warnings:{}", palette.heading, palette.reset)?;
    for (file, line, sentence) in lines {
        let location = if line == 0 { file.to_owned() } else { format!("{file}:{line}") };
        let (location, sentence) = (printable(&location), printable(&sentence));
        writeln!(text, "- {}{location}{}: {sentence}", palette.location, palette.reset)?;
    }
    Ok(())
}

fn write_summary(report: &Report<'_>, text: &mut String) -> std::fmt::Result {
    let files = report.result.file_changes.len();
    let failed = match report.not_written {
        0 => String::new(),
        number => format!("; {} could not be written", count(number, "file")),
    };
    let markers = &report.plan.markers;
    let number_of = |outcome| markers.iter().filter(|marker| marker.outcome == outcome).count();
    let (current, waiting) = (number_of(MarkerOutcome::Current), number_of(MarkerOutcome::Waiting));
    let what = match (files, report.mode) {
        (0, _) if report.not_written > 0 => "Changed nothing".to_owned(),
        // The values of a release group are not among the changes.
        (0, _) if waiting > 0 => format!("Still to change: {}", count(waiting, "value")),
        (0, _) => "Nothing to change".to_owned(),
        (files, mode) => {
            let verb = match mode {
                ReportMode::Changed => "Changed",
                ReportMode::WouldChange => "Would change",
                ReportMode::NotChanged => "Still to change:",
            };
            format!("{verb} {} in {}", count(report.result.edits(), "value"), count(files, "file"))
        }
    };
    let waiting = if waiting > 0 { format!(", {waiting} waiting") } else { String::new() };
    writeln!(
        text,
        "\n{what}{failed}; {} read, {} found, {current} already current{waiting}, {} unresolved, {} unreadable.",
        count(report.plan.files, "file"),
        count(markers.len(), "marker"),
        report.plan.warnings().count(),
        count(report.plan.unparsable.len(), "file"),
    )
}
