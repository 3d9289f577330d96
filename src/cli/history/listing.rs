//! Prints a history while it is read: as text, or as one JSON document.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use super::document::{End, EndReason, ListedChange, ListedKind, SCHEMA, Unreadable};
use super::live::{LiveComponent, LiveSummary};
use crate::cli::output::OutputFormat;
use crate::cli::terminal::{Palette, buffered, cell, say};
use crate::git::CommitId;
use crate::git::history::{CommitSummary, UnreadableVersion};
use crate::printable::{is_unprintable, printable_json};
use crate::update::history::Returning;

/// The maximum number of unreadable versions in the document.
const MAX_UNREADABLE: usize = 1_000;

/// A list that is being printed.
pub(super) struct Listing {
    output: BufWriter<StdoutLock<'static>>,
    format: OutputFormat,
    palette: Palette,
    is_terminal: bool,
    /// The number of changes so far.
    count: u64,
    unreadable: Vec<Unreadable>,
}

impl Listing {
    /// Starts a list; a document has the commit of HEAD.
    pub(super) fn start(format: OutputFormat, palette: Palette, head: Option<CommitId>) -> io::Result<Self> {
        let mut output = buffered();
        if format == OutputFormat::Json {
            let head = json(&head.map(|head| head.to_string()));
            write!(output, "{{\n  \"schema\": {},\n  \"head\": {head},\n  \"changes\": [", json(SCHEMA))?;
        }
        let is_terminal = output.get_ref().is_terminal();
        Ok(Self { output, format, palette, is_terminal, count: 0, unreadable: Vec::new() })
    }

    /// The number of changes so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Prints a change.
    ///
    /// `live` are the components that have its new value; `None` if they are not requested.
    pub(super) fn add(
        &mut self,
        change: &Returning<CommitSummary>,
        live: Option<Vec<LiveComponent>>,
    ) -> io::Result<()> {
        let change = ListedChange { live, ..ListedChange::of(change) };
        match self.format {
            OutputFormat::Text => writeln!(self.output, "{}", line(&change, self.palette))?,
            OutputFormat::Json => {
                let separator = if self.count == 0 { "" } else { "," };
                write!(self.output, "{separator}\n    {}", json(&change))?;
            }
        }
        self.count += 1;
        Ok(())
    }

    /// Warns of versions that cannot be read.
    pub(super) fn warn(&mut self, commit: &CommitSummary, versions: &[UnreadableVersion]) {
        for version in versions {
            let UnreadableVersion { path, error } = version;
            let id = commit.id.short();
            say(&format!("warning: {path}:{} in commit {id} cannot be read: {error}", error.line));
            if self.unreadable.len() < MAX_UNREADABLE {
                self.unreadable.push(Unreadable::of(commit, version));
            }
        }
    }

    /// Shows all changes so far if a person is waiting for them.
    pub(super) fn flush_to_terminal(&mut self) -> io::Result<()> {
        if self.is_terminal { self.output.flush() } else { Ok(()) }
    }

    /// Ends the list.
    pub(super) fn finish(mut self, end: Option<&End>) -> io::Result<()> {
        match (self.format, end) {
            (OutputFormat::Json, _) => {
                let closing = if self.count == 0 { "]" } else { "\n  ]" };
                let (unreadable, end) = (json(&self.unreadable), json(&end));
                writeln!(self.output, "{closing},\n  \"unreadable\": {unreadable},\n  \"end\": {end}\n}}")?;
            }
            (
                OutputFormat::Text,
                Some(End { reason: EndReason::Shallow, commit: Some(commit), time: Some(time) }),
            ) => {
                let id = commit.get(..7).unwrap_or(commit);
                writeln!(
                    self.output,
                    "The history ends at commit {id} of {time}, because the clone is shallow; git fetch --unshallow \
                     completes it."
                )?;
            }
            (OutputFormat::Text, _) => {}
        }
        self.output.flush()
    }
}

/// Returns a change as one line.
fn line(change: &ListedChange, palette: Palette) -> String {
    let Palette { added, removed, location, heading, reset, .. } = palette;
    let old = change.old.as_deref().map(value).unwrap_or_default();
    let new = change.new.as_deref().map(value).unwrap_or_default();
    let setter = cell(&change.setter);
    let values = match change.kind {
        ListedKind::Changed => format!("{removed}{old}{reset} -> {added}{new}{reset}"),
        ListedKind::Added => format!("{added}{new}{reset} (added: {setter})"),
        ListedKind::Removed => format!("{removed}{old}{reset} (removed: {setter})"),
    };
    let back = if change.back { " (back)" } else { "" };
    let live = change.live.as_deref().and_then(LiveSummary::of);
    let live = live.map_or_else(String::new, |live| format!(" [{live}]"));
    let id = change.commit.get(..7).unwrap_or(&change.commit);
    let (author, object, file) = (cell(&change.author), cell(&change.object.title()), cell(&change.file));
    let (time, number) = (&change.time, change.line);
    format!(
        "{time} {heading}{id}{reset} {author}  {object}  {location}{file}:{number}{reset}  {values}{back}{live}"
    )
}

/// Returns a value on one line.
///
/// It is in quotes if it is empty or has unprintable characters.
fn value(text: &str) -> String {
    if text.is_empty() || text.contains(is_unprintable) { format!("{text:?}") } else { text.to_owned() }
}

fn json(value: &(impl serde::Serialize + ?Sized)) -> String {
    printable_json(serde_json::to_string(value).expect("a history is plain JSON"))
}
