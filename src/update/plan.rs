//! The plan of an update: which files get which bytes, and an account of all that was met.

use memchr::memmem;

use super::account::{FileError, MarkerReport, NearMiss, Severity, Unparsable};
use super::edit::FileEdit;
use super::file::{FileMarker, FileOutcome, Standing, update_file};
use super::index::{MarkerIndex, VALUE_LENGTH};
use super::marker::{self, NoMarker, QUOTED_TOKEN};
use super::result::ResultV2;
use super::scope::{ScopeError, Skipped, fertile_scope};
use super::setter::Setters;
use super::tree::{Entry, FileTree, TreeError};
use crate::yaml::Limits;

/// What to update.
#[derive(Debug, Clone, Default)]
pub struct UpdateRequest {
    /// `update.path`: the directory or file to look into; `None` or empty: the whole tree.
    pub path: Option<String>,
    /// The policies and their images.
    pub setters: Setters,
    /// The bounds for each file.
    pub limits: Limits,
}

/// What an update would do, and everything it met on the way.
#[derive(Debug, Default)]
pub struct UpdatePlan {
    /// The files to write, in rising order of their paths.
    pub edits: Vec<FileEdit>,
    /// What the edits change.
    pub result: ResultV2,
    /// Every marker, by file and line.
    pub markers: Vec<MarkerReport>,
    /// Every file that holds the token and could not be read.
    pub unparsable: Vec<Unparsable>,
    /// Comments that mention the token and are no markers.
    pub near_misses: Vec<NearMiss>,
    /// Links that were left alone.
    pub skipped: Vec<Skipped>,
    /// How many files were looked into.
    pub files: usize,
}

impl UpdatePlan {
    /// Forgets the markers that a person need not hear of.
    pub fn keep_worth_saying(&mut self) {
        self.markers.retain(|marker| marker.outcome.severity() == Severity::WorthSaying);
        self.markers.shrink_to_fit();
    }

    /// The markers that a person should hear of.
    pub fn unresolved(&self) -> impl Iterator<Item = &MarkerReport> {
        self.markers.iter().filter(|marker| marker.outcome.severity() == Severity::WorthSaying)
    }
}

/// How far a plan has come.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Files looked into so far.
    pub files: usize,
    /// Files there are.
    pub of: usize,
    /// Values to replace so far.
    pub edits: usize,
}

/// Plans an update of `tree`.
///
/// A file that cannot be read, or not as YAML, never stops the others; it is listed in
/// [`unparsable`](UpdatePlan::unparsable). A file of which `index` knows enough is not read at all; `index` learns
/// from those that are.
///
/// # Errors
///
/// When `update.path` does not exist or leads out of the tree, or when the tree cannot be listed.
pub fn plan(
    tree: &dyn FileTree,
    request: &UpdateRequest,
    index: &mut MarkerIndex,
    progress: &mut dyn FnMut(Progress),
) -> Result<UpdatePlan, ScopeError> {
    let mut scope = fertile_scope(tree, request.path.as_deref(), index)?;
    let skipped = std::mem::take(&mut scope.skipped);
    let directories = std::mem::take(&mut scope.directories);
    let mut eventful = std::mem::take(&mut scope.links);
    let mut plan = UpdatePlan { skipped, files: directories.files_left_out(), ..UpdatePlan::default() };
    let token = memmem::Finder::new(marker::TOKEN);
    let of = plan.files + scope.files.len();
    let mut edits = 0;
    let mut content = Vec::new();
    for file in &scope.files {
        plan.files += 1;
        let id = file.entry.content;
        if let Some(markers) = id.and_then(|id| index.recall(&id, &request.setters)) {
            if !markers.is_empty() {
                eventful.push(file.entry.path.clone());
                plan.take_markers(&scope.key(file), markers);
            }
            continue;
        }
        let mut remember = |markers: &[FileMarker]| {
            if let Some(id) = id {
                index.remember(id, markers);
            }
        };
        if let Err(error) = tree.read(&file.entry, request.limits.file_size, &mut content) {
            if matches!(error, TreeError::TooLarge { .. })
                && !tree.contains(&file.entry, QUOTED_TOKEN).unwrap_or(true)
            {
                remember(&[]);
                continue;
            }
            eventful.push(file.entry.path.clone());
            let error = unreadable(error, &request.limits);
            plan.unparsable.push(Unparsable { file: scope.key(file), error });
            continue;
        }
        if token.find(&content).is_none() {
            // Most files end here.
            remember(&[]);
            progress(Progress { files: plan.files, of, edits });
            continue;
        }
        eventful.push(file.entry.path.clone());
        if memmem::find(&content, QUOTED_TOKEN).is_none() {
            let (key, cause) = (scope.key(file), NoMarker::NoQuotes);
            let lines = marker::lines_without_quotes(&content).into_iter();
            plan.near_misses.extend(lines.map(|line| NearMiss { file: key.clone(), line, cause }));
        } else {
            let key = scope.key(file);
            match update_file(&content, &request.setters, &request.limits) {
                Err(error) => plan.unparsable.push(Unparsable { file: key, error: error.into() }),
                Ok(outcome) => {
                    if outcome.near_misses.is_empty() {
                        remember(&outcome.markers);
                    }
                    edits += outcome.changes.values().map(Vec::len).sum::<usize>();
                    plan.take(file.entry.clone(), key, &content, outcome);
                }
            }
        }
        progress(Progress { files: plan.files, of, edits });
    }
    directories.remember(&scope.files, &eventful, index);
    Ok(plan)
}

impl UpdatePlan {
    fn take_markers(&mut self, key: &str, markers: Vec<FileMarker>) {
        self.markers.extend(markers.into_iter().map(|found| MarkerReport {
            file: key.to_owned(),
            line: found.line,
            object: found.object,
            setter: found.marker.setter,
            policy: found.marker.policy,
            // The same whether the index says it or the file.
            value: match found.standing {
                Standing::Value(value) if value.len() <= VALUE_LENGTH => Some(value),
                Standing::Value(_) | Standing::Absent | Standing::Nowhere => None,
            },
            outcome: found.outcome,
        }));
    }

    fn take(&mut self, entry: Entry, key: String, before: &[u8], outcome: FileOutcome) {
        self.take_markers(&key, outcome.markers);
        let misses = outcome.near_misses.into_iter();
        self.near_misses.extend(misses.map(|(line, cause)| NearMiss { file: key.clone(), line, cause }));
        if !outcome.changes.is_empty() {
            self.result.file_changes.insert(key.clone(), outcome.changes);
        }
        if !outcome.splices.is_empty() {
            self.edits.push(FileEdit::new(entry, key, before, outcome.splices));
        }
    }
}

fn unreadable(error: TreeError, limits: &Limits) -> FileError {
    match error {
        TreeError::TooLarge { size, .. } => FileError::TooLarge { size, limit: limits.file_size },
        other => other.into(),
    }
}
