//! The plan of an update: the new bytes of files, and an account of all that was met.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use memchr::memmem;
use tagboat_api::Reason;

use super::account::{MarkerReport, NearMiss, ReadFailure, Severity, Unparsable};
use super::budget::PlanBudget;
use super::edit::{ContentMark, FileEdit};
use super::file::{FileMarker, FileOutcome, Standing, update_file};
use super::index::{MarkerIndex, Recalled, VALUE_LENGTH};
use super::interrupt::{Checkpoint, Interrupt};
use super::marker::{self, NoMarker, QUOTED_TOKEN};
use super::markerless::OpenDirectories;
use super::result::{ObjectChanges, ObjectIdentifier, ResultV2};
use super::scope::{ScopeError, ScopeVisitor, ScopedFile, Skipped, walk_scope};
use super::setter::Setters;
use super::tree::{ContentId, Descent, Entry, FileTree, TreeError, TreePath};
use crate::failing::Failing;
use crate::yaml::{Cause, Limits, Splice};

/// The memory in bytes of one marker in a plan, beside its texts.
const MARKER_BYTES: usize = 384;

/// The memory of one file that is to change, beside its texts and changes.
const EDIT_BYTES: usize = 384;

/// The memory of one change.
const CHANGE_BYTES: usize = 192;

/// The memory of anything else that is reported, and of a link until it is followed.
const REPORT_BYTES: usize = 96;

/// What to update.
#[derive(Debug, Clone, Default)]
pub struct UpdateRequest {
    /// `update.path`: the directory or file to look into; `None` or empty: the whole tree.
    pub path: Option<String>,
    /// The policies and their images.
    pub setters: Setters,
    /// The bounds for each file.
    pub limits: Limits,
    /// Which markers the plan reports.
    pub reported: ReportedMarkers,
}

/// Which markers a plan reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReportedMarkers {
    /// Every marker.
    #[default]
    All,
    /// Those with a [`Severity`] that a person should hear of: many automations on one large repository would hold the
    /// same long list each.
    Warnings,
}

/// What an update would do, and everything it met on the way.
#[derive(Debug, Default)]
pub struct UpdatePlan {
    /// The files to write, in rising order of their paths.
    pub edits: Vec<FileEdit>,
    /// What the edits change.
    pub result: ResultV2,
    /// The reported markers, by file and line; those in files that only a link leads to come last.
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
    /// Values to replace so far.
    pub edits: usize,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The files cannot be listed.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// There is too much to change.
    #[error(
        "there are more than {limit} values to change, the limit of one plan; let update.path lead to a smaller directory"
    )]
    TooManyChanges {
        /// How many there may be.
        limit: usize,
    },
    /// There is too much to report.
    #[error(
        "the changes and markers take more than {} MiB of memory, the limit of one plan; let update.path lead to a \
         smaller directory",
        limit >> 20
    )]
    TooLarge {
        /// How many bytes they may take.
        limit: usize,
    },
    /// The caller ended it.
    #[error(transparent)]
    Interrupted(#[from] Interrupt),
}

impl Failing for PlanError {
    fn reason(&self) -> Reason {
        match self {
            Self::Scope(error) => error.reason(),
            Self::Interrupted(error) => error.reason(),
            Self::TooManyChanges { .. } | Self::TooLarge { .. } => Reason::UpdateFailed,
        }
    }

    fn is_retryable(&self) -> bool {
        match self {
            Self::Scope(error) => error.is_retryable(),
            Self::Interrupted(error) => error.is_retryable(),
            // The next commit may bring less.
            Self::TooManyChanges { .. } | Self::TooLarge { .. } => true,
        }
    }
}

/// Plans an update of `tree`.
///
/// A file that cannot be read, or not as YAML, never stops the others; it is listed in
/// [`unparsable`](UpdatePlan::unparsable). A file of which `index` knows enough is not read at all; `index` learns
/// from those that are, also if the plan ends with an error: the next one continues there. `checkpoint` is called
/// between files and directories.
///
/// # Errors
///
/// When `update.path` does not exist or leads out of the tree, when the tree cannot be listed, when the plan is beyond
/// a limit, or when `checkpoint` says so.
pub fn plan(
    tree: &dyn FileTree,
    request: &UpdateRequest,
    index: &mut MarkerIndex,
    checkpoint: &mut Checkpoint<'_>,
) -> Result<UpdatePlan, PlanError> {
    let mut planner = Planner {
        tree,
        request,
        index,
        checkpoint,
        token: memmem::Finder::new(marker::TOKEN),
        content: Vec::new(),
        changing: HashMap::new(),
        directories: OpenDirectories::default(),
        budget: PlanBudget::new(request.reported),
        plan: UpdatePlan::default(),
        error: None,
    };
    walk_scope(tree, request.path.as_deref(), &mut planner)?;
    match planner.error {
        Some(error) => Err(error),
        None => {
            let mut plan = planner.plan;
            // Files that only a link leads to were visited last.
            plan.edits.sort_by(|left, right| left.entry.path.cmp(&right.entry.path));
            Ok(plan)
        }
    }
}

/// Makes a plan of the files that it visits.
struct Planner<'p, 'c> {
    tree: &'p dyn FileTree,
    request: &'p UpdateRequest,
    index: &'p mut MarkerIndex,
    checkpoint: &'p mut Checkpoint<'c>,
    token: memmem::Finder<'static>,
    content: Vec<u8>,
    /// What is to be done to contents, which may stand under many names.
    changing: HashMap<ContentId, Rc<Outcome>>,
    directories: OpenDirectories,
    budget: PlanBudget,
    plan: UpdatePlan,
    error: Option<PlanError>,
}

/// What a plan says of one content, whatever the names of its files.
#[derive(Debug, Default)]
struct Outcome {
    known: Recalled,
    changes: ObjectChanges,
    edit: Option<(ContentMark, Arc<[Splice]>)>,
}

impl Planner<'_, '_> {
    fn check(&mut self) -> Result<(), PlanError> {
        let progress = Progress { files: self.plan.files, edits: self.budget.changes() };
        Ok((self.checkpoint)(progress)?)
    }

    /// Ends the walk after an error.
    fn flow<T>(&mut self, result: Result<T, PlanError>) -> ControlFlow<(), T> {
        match result {
            Ok(value) => ControlFlow::Continue(value),
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    fn look_into(&mut self, file: &ScopedFile<'_>) -> Result<(), PlanError> {
        self.check()?;
        self.plan.files += 1;
        if !file.is_linked() {
            self.directories.add_files(1);
        }
        let id = file.entry.content;
        if let Some(outcome) = id.and_then(|id| self.changing.get(&id).cloned()) {
            return self.take(file, &outcome);
        }
        if let Some(known) = id.and_then(|id| self.index.recall(&id, &self.request.setters)) {
            return self.take(file, &Outcome { known, ..Outcome::default() });
        }
        let outcome = self.read(&file.entry);
        if let Some(id) = id.filter(|_| outcome.edit.is_some()) {
            let outcome = Rc::new(outcome.without_unreported(self.request.reported));
            self.changing.insert(id, outcome.clone());
            return self.take(file, &outcome);
        }
        self.take(file, &outcome)
    }

    /// Reads a file, and lets the index remember what does not depend on policies.
    fn read(&mut self, entry: &Entry) -> Outcome {
        let UpdateRequest { setters, limits, .. } = self.request;
        let id = entry.content;
        if let Err(error) = self.tree.read(entry, limits.file_size, &mut self.content) {
            let TreeError::TooLarge { size, .. } = error else { return Outcome::failed(error.into()) };
            let failure = ReadFailure::too_large(size, limits.file_size);
            return match self.tree.contains(entry, QUOTED_TOKEN) {
                Ok(false) => self.remember(id, Outcome::default()),
                Ok(true) => self.remember(id, Outcome::failed(failure)),
                Err(_) => Outcome::failed(failure),
            };
        }
        let content = &self.content;
        if self.token.find(content).is_none() {
            // Most files end here.
            return self.remember(id, Outcome::default());
        }
        if memmem::find(content, QUOTED_TOKEN).is_none() {
            let lines = marker::lines_without_quotes(content).into_iter();
            let near_misses = lines.map(|line| (line, NoMarker::NoQuotes)).collect();
            let known = Recalled { near_misses, ..Recalled::default() };
            return self.remember(id, Outcome { known, ..Outcome::default() });
        }
        match update_file(content, setters, limits) {
            Ok(outcome) => {
                let outcome = Outcome::of(outcome, content);
                self.remember(id, outcome)
            }
            // Another image may be written as intended.
            Err(error) if error.cause == Cause::EditNotFaithful => Outcome::failed(error.into()),
            Err(error) => self.remember(id, Outcome::failed(error.into())),
        }
    }

    fn remember(&mut self, id: Option<ContentId>, outcome: Outcome) -> Outcome {
        match (id, &outcome.known.failure) {
            (None, _) => {}
            (Some(id), Some(failure)) => self.index.remember_failure(id, failure),
            (Some(id), None) => {
                self.index.remember(id, &outcome.known.markers, &outcome.known.near_misses);
            }
        }
        outcome
    }

    /// Takes the outcome of a file's content into the plan.
    fn take(&mut self, file: &ScopedFile<'_>, outcome: &Outcome) -> Result<(), PlanError> {
        let Outcome { known, changes, edit } = outcome;
        if known.is_empty() && edit.is_none() {
            return Ok(());
        }
        self.directories.add_finding();
        let key = file.key();
        for marker in known.markers.iter().filter(|marker| self.request.reported.includes(marker)) {
            self.budget.add_bytes(MARKER_BYTES + key.len() + text_of_marker(marker))?;
            self.plan.markers.push(report(&key, marker));
        }
        for (line, cause) in &known.near_misses {
            self.budget.add_bytes(REPORT_BYTES + key.len())?;
            self.plan.near_misses.push(NearMiss { file: key.clone(), line: *line, cause: *cause });
        }
        if let Some(error) = &known.failure {
            self.budget.add_bytes(REPORT_BYTES + key.len() + error.message.len())?;
            self.plan.unparsable.push(Unparsable { file: key.clone(), error: error.clone() });
        }
        let Some((mark, splices)) = edit else { return Ok(()) };
        let count = changes.values().map(Vec::len).sum();
        self.budget.add_changes(count)?;
        let texts = 3 * key.len() + text_of_changes(changes);
        self.budget.add_bytes(EDIT_BYTES + count * CHANGE_BYTES + texts)?;
        self.plan.result.file_changes.insert(key.clone(), changes.clone());
        self.plan.edits.push(FileEdit::new(file.entry.clone(), key, *mark, splices.clone()));
        Ok(())
    }
}

impl ScopeVisitor for Planner<'_, '_> {
    fn file(&mut self, file: ScopedFile<'_>) -> ControlFlow<()> {
        let result = self.look_into(&file);
        self.flow(result)
    }

    fn skipped(&mut self, skipped: Skipped) -> ControlFlow<()> {
        let result = self.budget.add_bytes(REPORT_BYTES + skipped.file.len());
        self.plan.skipped.push(skipped);
        self.flow(result)
    }

    fn link(&mut self, path: &TreePath) -> ControlFlow<()> {
        // What it leads to may change, although the directory does not.
        self.directories.add_finding();
        let result = self.budget.add_bytes(REPORT_BYTES + path.as_bytes().len());
        self.flow(result)
    }

    fn follow(&mut self) -> ControlFlow<()> {
        let result = self.check();
        self.flow(result)
    }

    fn enter(&mut self, content: Option<ContentId>) -> ControlFlow<(), Descent> {
        let result = self.check();
        self.flow(result)?;
        let (descent, files_left_out) = self.directories.enter(content, self.index);
        self.plan.files += files_left_out;
        ControlFlow::Continue(descent)
    }

    fn leave(&mut self) {
        self.directories.leave(self.index);
    }
}

impl Outcome {
    fn failed(failure: ReadFailure) -> Self {
        Self { known: Recalled { failure: Some(failure), ..Recalled::default() }, ..Self::default() }
    }

    /// The same without markers that are not reported, so that it takes no more memory than the plan.
    fn without_unreported(mut self, reported: ReportedMarkers) -> Self {
        self.known.markers.retain(|marker| reported.includes(marker));
        self.known.markers.shrink_to_fit();
        self
    }

    fn of(outcome: FileOutcome, content: &[u8]) -> Self {
        let FileOutcome { splices, changes, markers, near_misses, .. } = outcome;
        let edit = (!splices.is_empty()).then(|| (ContentMark::of(content), splices.into()));
        Self { known: Recalled { markers, near_misses, failure: None }, changes, edit }
    }
}

impl ReportedMarkers {
    fn includes(self, marker: &FileMarker) -> bool {
        self == Self::All || marker.outcome.severity() == Severity::WorthSaying
    }
}

fn report(file: &str, found: &FileMarker) -> MarkerReport {
    MarkerReport {
        file: file.to_owned(),
        line: found.line,
        object: found.object.clone(),
        setter: found.marker.setter.clone(),
        policy: found.marker.policy.clone(),
        // The same whether the index says it or the file.
        value: match &found.standing {
            Standing::Value(value) if value.len() <= VALUE_LENGTH => Some(value.clone()),
            Standing::Value(_) | Standing::Absent | Standing::Nowhere => None,
        },
        outcome: found.outcome,
    }
}

/// The bytes of text in the report of a marker.
fn text_of_marker(marker: &FileMarker) -> usize {
    let value = match &marker.standing {
        Standing::Value(value) => value.len().min(VALUE_LENGTH),
        Standing::Absent | Standing::Nowhere => 0,
    };
    text_of_object(&marker.object) + 2 * marker.marker.setter.len() + value
}

/// The bytes of text in the changes of one file, and in the splices that make them.
fn text_of_changes(changes: &ObjectChanges) -> usize {
    let texts = changes.iter().map(|(object, changes)| {
        let changes = changes.iter();
        let changes =
            changes.map(|change| change.old_value.len() + 2 * change.new_value.len() + change.setter.len());
        text_of_object(object) + changes.sum::<usize>()
    });
    texts.sum()
}

fn text_of_object(object: &ObjectIdentifier) -> usize {
    let ObjectIdentifier { api_version, kind, name, namespace } = object;
    [api_version, kind, name, namespace].map(String::len).iter().sum()
}
