//! Prints deployments, and their changes as they come, in each format.

use std::io;
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::DeploymentStatus;

use super::StatusFormat;
use super::selection::Selection;
use super::table::{Columns, StatusTable};
use crate::cli::output::to_json;
use crate::cli::terminal::{Palette, print, say};
use crate::objects::ObjectName;
use crate::objects::cluster::Change;
use crate::printable::printable_json;
use crate::rollout::document::{Document, DocumentList};

/// The output of the command.
pub(super) enum Printer {
    /// A table, to which each change adds rows.
    Table(StatusTable),
    /// One JSON document.
    Json,
    /// A JSON document for each change, on one line.
    JsonLines,
}

impl Printer {
    pub(super) fn new(format: StatusFormat, has_namespace: bool, is_watch: bool) -> Self {
        let table = |is_wide| StatusTable::new(Columns { has_namespace, is_wide }, Palette::for_output());
        match format {
            StatusFormat::Text => Self::Table(table(false)),
            StatusFormat::Wide => Self::Table(table(true)),
            StatusFormat::Json if is_watch => Self::JsonLines,
            StatusFormat::Json => Self::Json,
        }
    }

    /// Prints all deployments; without any, a table has no titles.
    pub(super) fn all(&mut self, objects: &[Arc<DeploymentStatus>]) -> io::Result<()> {
        let text = match self {
            Self::Table(_) if objects.is_empty() => return Ok(()),
            Self::Table(table) => table.rows(objects.iter().map(AsRef::as_ref), Timestamp::now()),
            Self::Json => {
                for object in objects.iter().filter(|object| object.status.is_none()) {
                    say(&format!("note: {} has no status yet", ObjectName::of(&**object)));
                }
                to_json(&list(objects)).lines().map(|line| printable_json(line.to_owned()) + "\n").collect()
            }
            Self::JsonLines => {
                let json = serde_json::to_string(&list(objects)).expect("a document is plain JSON");
                printable_json(json) + "\n"
            }
        };
        print(&text)
    }

    /// Prints changes of the selection.
    ///
    /// `selected` returns all deployments that are selected after the changes.
    pub(super) fn changes(
        &mut self,
        changes: &[Change<DeploymentStatus>],
        selection: &Selection,
        selected: impl FnOnce() -> Vec<Arc<DeploymentStatus>>,
    ) -> io::Result<()> {
        let changes = changes.iter().filter_map(|change| SelectedChange::of(change, selection));
        let mut changes = changes.peekable();
        if changes.peek().is_none() {
            return Ok(());
        }
        let Self::Table(table) = self else { return self.all(&selected()) };
        let now = Timestamp::now();
        let rows = changes.map(|change| match change {
            SelectedChange::Shown(object) => table.rows([object], now),
            SelectedChange::Gone(name) => table.gone(name),
        });
        print(&rows.collect::<String>())
    }
}

/// A change of the selection.
enum SelectedChange<'c> {
    /// A selected deployment is new, or has another status.
    Shown(&'c DeploymentStatus),
    /// A deployment was deleted, or is no longer selected.
    Gone(&'c ObjectName),
}

impl<'c> SelectedChange<'c> {
    fn of(change: &'c Change<DeploymentStatus>, selection: &Selection) -> Option<Self> {
        let selected = |object: &'c Option<Arc<DeploymentStatus>>| {
            object.as_deref().filter(|object| selection.selects(object))
        };
        match (selected(&change.old), selected(&change.new)) {
            (Some(old), Some(new)) if old.status == new.status && old.labels() == new.labels() => None,
            (_, Some(new)) => Some(Self::Shown(new)),
            (Some(_), None) => Some(Self::Gone(&change.name)),
            (None, None) => None,
        }
    }
}

/// Returns the list document of the deployments that have a status.
fn list(objects: &[Arc<DeploymentStatus>]) -> DocumentList {
    objects.iter().filter_map(|object| Document::new(object)).collect::<Vec<_>>().into()
}
