//! Plans an update: the new bytes of files, and a report of every finding.

use std::collections::{BTreeMap, HashMap};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use memchr::memmem;
use tagboat_api::ObjectName;

use super::budget::{PlanBudget, ReportedMarkers};
use super::edit::{ContentHash, FileEdit};
use super::error::PlanError;
use super::file::{FileMarker, FileOutcome, MarkedNode, update_file};
use super::held_values::HeldValues;
use super::interrupt::{Checkpoint, Progress};
use super::links::Skipped;
use super::marker::{self, MarkerError, QUOTED_TOKEN};
use super::marker_index::{IndexedOutcome, MAX_VALUE_LENGTH, MarkerIndex};
use super::markerless::OpenDirectories;
use super::own_marker::{OwnMarkerLimits, OwnMarkers, OwnMarkersOfFile};
use super::report::{MarkerOutcome, MarkerReport, NearMiss, ReadError, Severity, Unparsable};
use super::result::{Change, ObjectChanges, ObjectIdentifier, ResultV2};
use super::scope::{ScopeVisitor, ScopedFile, walk_scope};
use super::setter::Setters;
use super::tree::{ContentId, Entry, FileTree, TreeError, TreePath, WalkDecision};
use crate::yaml::{Limits, Splice, YamlErrorKind};

/// The memory in bytes of one marker in a plan, without its texts.
const MARKER_BYTES: usize = 480;

/// The memory in bytes of one edited file, without its texts, objects and changes.
const EDIT_BYTES: usize = 440;

/// The memory in bytes of one object with changes, without its texts and changes.
const OBJECT_BYTES: usize = 200;

/// The memory in bytes of one change, without its texts.
const CHANGE_BYTES: usize = 192;

/// The memory in bytes of any other report, and of each unfollowed link.
const REPORT_BYTES: usize = 96;

/// The input of a plan.
#[derive(Debug, Clone, Default)]
pub struct UpdateRequest {
    /// `update.path`: the directory or file to update; `None` or empty means the whole tree.
    pub path: Option<String>,
    /// The policies and their images.
    pub setters: Setters,
    /// The limits of each file.
    pub limits: Limits,
    /// The markers that the plan reports.
    pub reported: ReportedMarkers,
    /// The limits of the list of own markers; without them, there is no list.
    pub own_markers: Option<OwnMarkerLimits>,
    /// The values that are left as they are.
    pub held: HeldValues,
}

/// The edits of an update, and its findings.
#[derive(Debug, Default)]
pub struct UpdatePlan {
    /// The files to write, in rising order of their paths.
    pub edits: Vec<FileEdit>,
    /// The changes that the edits make.
    pub result: ResultV2,
    /// The reported markers, by file and line.
    ///
    /// Markers in files that only a link leads to come last.
    pub markers: Vec<MarkerReport>,
    /// The own markers, if the request has limits of them.
    pub own_markers: OwnMarkers,
    /// The number of values of each held policy that wait.
    pub waiting: BTreeMap<ObjectName, usize>,
    /// Every file that holds the token and could not be read.
    pub unparsable: Vec<Unparsable>,
    /// Comments that mention the token and are no markers.
    pub near_misses: Vec<NearMiss>,
    /// Links and directories that were skipped.
    pub skipped: Vec<Skipped>,
    /// The number of files in scope.
    pub files: usize,
    /// The unused memory of the plan in bytes, for the message made of it.
    pub remaining_bytes: usize,
}

impl UpdatePlan {
    /// Drops everything but the number of files.
    pub fn drop_details(&mut self) {
        *self = Self { files: self.files, ..Self::default() };
    }

    /// Checks that the remaining memory has room for two more copies of the markers.
    ///
    /// # Errors
    ///
    /// Returns an error if it has not.
    pub fn check_memory_for_markers(&self) -> Result<(), PlanError> {
        let size = |marker: &MarkerReport| MARKER_BYTES + text_of_marker(marker);
        if 2 * self.markers.iter().map(size).sum::<usize>() > self.remaining_bytes {
            return Err(PlanError::TooLarge { limit: ReportedMarkers::All.max_bytes() });
        }
        Ok(())
    }

    /// Marks the values of policies that would change as waiting.
    pub fn withhold(&mut self, is_of: impl Fn(&ObjectName) -> bool) {
        let would_change = |marker: &&mut MarkerReport| marker.outcome == MarkerOutcome::Changed;
        for marker in self.markers.iter_mut().filter(would_change) {
            if is_of(&marker.policy) {
                marker.outcome = MarkerOutcome::Waiting;
            }
        }
    }

    /// Counts values that wait.
    fn add_waiting<'m>(&mut self, policies: impl Iterator<Item = &'m ObjectName>) {
        policies.for_each(|policy| *self.waiting.entry(policy.clone()).or_default() += 1);
    }

    /// The markers whose outcome is a warning.
    pub fn warnings(&self) -> impl Iterator<Item = &MarkerReport> {
        self.markers.iter().filter(|marker| marker.outcome.severity() == Severity::Warning)
    }
}

/// Plans an update of `tree`.
///
/// A file that cannot be read or parsed never stops the others; it is listed in [`unparsable`](UpdatePlan::unparsable).
/// A file that `index` already covers is not read at all; `index` is extended by all others, even if the plan ends with
/// an error: the next plan continues there. `checkpoint` is called between files and directories.
///
/// # Errors
///
/// Returns an error if `update.path` does not exist or leads out of the tree, if the tree cannot be listed, if the plan
/// exceeds a limit, or if `checkpoint` returns one.
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
        changed_contents: HashMap::new(),
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
            plan.remaining_bytes = planner.budget.remaining_bytes();
            plan.edits.shrink_to_fit();
            // Files that only a link leads to were visited last.
            plan.edits.sort_by(|left, right| left.entry.path.cmp(&right.entry.path));
            Ok(plan)
        }
    }
}

/// Builds a plan from the files that it visits.
struct Planner<'p, 'c> {
    tree: &'p dyn FileTree,
    request: &'p UpdateRequest,
    index: &'p mut MarkerIndex,
    checkpoint: &'p mut Checkpoint<'c>,
    token: memmem::Finder<'static>,
    content: Vec<u8>,
    /// The contents that change, each of which may belong to several files.
    changed_contents: HashMap<ContentId, FirstFile>,
    directories: OpenDirectories,
    budget: PlanBudget,
    plan: UpdatePlan,
    error: Option<PlanError>,
}

/// The location in a plan of the first file with a content that changes.
#[derive(Debug, Clone)]
struct FirstFile {
    markers: Range<usize>,
    near_misses: Range<usize>,
    own_markers: OwnMarkersOfFile,
    /// The held policies whose values wait, each once for a value.
    waiting: Vec<ObjectName>,
    edit: usize,
}

/// The outcome of one content, independent of the names of its files.
#[derive(Debug, Default)]
struct ContentOutcome {
    known: IndexedOutcome,
    changes: Arc<ObjectChanges>,
    edit: Option<(ContentHash, Arc<[Splice]>)>,
}

impl Planner<'_, '_> {
    fn check(&mut self) -> Result<(), PlanError> {
        let progress = Progress { files: self.plan.files, edits: self.budget.changes() };
        Ok((self.checkpoint)(progress)?)
    }

    /// Stores an error, which ends the walk.
    fn flow<T>(&mut self, result: Result<T, PlanError>) -> ControlFlow<(), T> {
        match result {
            Ok(value) => ControlFlow::Continue(value),
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    fn visit_file(&mut self, file: &ScopedFile<'_>) -> Result<(), PlanError> {
        self.check()?;
        self.plan.files += 1;
        if !file.is_linked() {
            self.directories.add_files(1);
        }
        // Of files with the same content, some may have held values.
        let is_held = self.request.held.of_file(&file.entry.path).is_some();
        let id = file.entry.content.filter(|_| !is_held);
        if let Some(first) = id.and_then(|id| self.changed_contents.get(&id).cloned()) {
            return self.add_copy(file, &first);
        }
        if let Some(known) = id.and_then(|id| self.index.get(&id, &self.request.setters)) {
            self.add_outcome(file, &ContentOutcome { known, ..ContentOutcome::default() })?;
            return Ok(());
        }
        let outcome = self.read(&file.entry);
        let UpdatePlan { markers, near_misses, edits, .. } = &self.plan;
        let (markers, near_misses, edit) = (markers.len(), near_misses.len(), edits.len());
        let own_markers = self.add_outcome(file, &outcome)?;
        if let Some(id) = id.filter(|_| outcome.edit.is_some()) {
            let markers = markers..self.plan.markers.len();
            let near_misses = near_misses..self.plan.near_misses.len();
            let waiting = waiting(&outcome.known.markers).cloned().collect();
            self.changed_contents.insert(id, FirstFile { markers, near_misses, own_markers, waiting, edit });
        }
        Ok(())
    }

    /// Reads a file, and stores in the index what does not depend on policies.
    fn read(&mut self, entry: &Entry) -> ContentOutcome {
        let UpdateRequest { setters, limits, held, .. } = self.request;
        let id = entry.content;
        if let Err(error) = self.tree.read(entry, limits.file_size, &mut self.content) {
            let TreeError::TooLarge { size, .. } = error else { return ContentOutcome::failed(error.into()) };
            let error = ReadError::too_large(size, limits.file_size);
            return match self.tree.contains(entry, QUOTED_TOKEN) {
                Ok(false) => self.remember(id, ContentOutcome::default()),
                Ok(true) => self.remember(id, ContentOutcome::failed(error)),
                Err(_) => ContentOutcome::failed(error),
            };
        }
        let content = &self.content;
        if self.token.find(content).is_none() {
            // Most files return here.
            return self.remember(id, ContentOutcome::default());
        }
        if memmem::find(content, QUOTED_TOKEN).is_none() {
            let lines = marker::lines_without_quotes(content).into_iter();
            let near_misses = lines.map(|line| (line, MarkerError::NoQuotes)).collect();
            let known = IndexedOutcome { near_misses, ..IndexedOutcome::default() };
            return self.remember(id, ContentOutcome { known, ..ContentOutcome::default() });
        }
        match update_file(content, setters, held.of_file(&entry.path), limits) {
            Ok(outcome) => {
                let outcome = ContentOutcome::of(outcome, content);
                self.remember(id, outcome)
            }
            // Another image may read as intended.
            Err(error) if error.cause == YamlErrorKind::EditNotFaithful => {
                ContentOutcome::failed(error.into())
            }
            Err(error) => self.remember(id, ContentOutcome::failed(error.into())),
        }
    }

    fn remember(&mut self, id: Option<ContentId>, outcome: ContentOutcome) -> ContentOutcome {
        match (id, &outcome.known.error) {
            (None, _) => {}
            (Some(id), Some(error)) => self.index.insert_error(id, error),
            (Some(id), None) => {
                self.index.insert(id, &outcome.known.markers, &outcome.known.near_misses);
            }
        }
        outcome
    }

    /// Adds the outcome of a file's content to the plan, and returns its own markers.
    fn add_outcome(
        &mut self,
        file: &ScopedFile<'_>,
        outcome: &ContentOutcome,
    ) -> Result<OwnMarkersOfFile, PlanError> {
        let ContentOutcome { known, changes, edit } = outcome;
        if known.is_empty() && edit.is_none() {
            return Ok(OwnMarkersOfFile::default());
        }
        let UpdateRequest { setters, own_markers, .. } = self.request;
        let own_markers = own_markers
            .map(|limits| self.plan.own_markers.add_file(&file.entry.path, &known.markers, setters, limits));
        let own_markers = own_markers.unwrap_or_default();
        self.directories.add_finding();
        let key: Arc<str> = file.key().into();
        self.plan.add_waiting(waiting(&known.markers));
        for marker in
            known.markers.iter().filter(|marker| self.request.reported.includes(marker.outcome.severity()))
        {
            self.add_marker(report(&key, marker))?;
        }
        for (line, cause) in &known.near_misses {
            self.add_near_miss(&key, *line, *cause)?;
        }
        if let Some(error) = &known.error {
            self.budget.add_bytes(REPORT_BYTES + key.len() + error.message.len())?;
            self.plan.unparsable.push(Unparsable { file: key.to_string(), error: error.clone() });
        }
        let Some((mark, splices)) = edit else { return Ok(own_markers) };
        self.budget.add_bytes(memory_of_changes(changes))?;
        self.add_edit(FileEdit::new(file.entry.clone(), key, *mark, splices.clone()), Arc::clone(changes))?;
        Ok(own_markers)
    }

    /// Adds a file whose content equals that of another file in the plan.
    fn add_copy(&mut self, file: &ScopedFile<'_>, first: &FirstFile) -> Result<(), PlanError> {
        self.directories.add_finding();
        let key: Arc<str> = file.key().into();
        self.plan.add_waiting(first.waiting.iter());
        for index in first.markers.clone() {
            self.add_marker(MarkerReport { file: key.to_string(), ..self.plan.markers[index].clone() })?;
        }
        for index in first.near_misses.clone() {
            let NearMiss { line, cause, .. } = self.plan.near_misses[index];
            self.add_near_miss(&key, line, cause)?;
        }
        if let Some(limits) = self.request.own_markers {
            self.plan.own_markers.add_copy(&file.entry.path, &first.own_markers, limits);
        }
        let edit = &self.plan.edits[first.edit];
        let changes = Arc::clone(&self.plan.result.file_changes[&edit.key]);
        self.add_edit(edit.of_file(file.entry.clone(), key), changes)
    }

    fn add_marker(&mut self, marker: MarkerReport) -> Result<(), PlanError> {
        self.budget.add_bytes(MARKER_BYTES + text_of_marker(&marker))?;
        self.plan.markers.push(marker);
        Ok(())
    }

    fn add_near_miss(&mut self, file: &str, line: usize, cause: MarkerError) -> Result<(), PlanError> {
        self.budget.add_bytes(REPORT_BYTES + file.len())?;
        self.plan.near_misses.push(NearMiss { file: file.to_owned(), line, cause });
        Ok(())
    }

    /// Adds an edit; files of the same content share their changes.
    fn add_edit(&mut self, edit: FileEdit, changes: Arc<ObjectChanges>) -> Result<(), PlanError> {
        self.budget.add_changes(changes.values().map(Vec::len).sum())?;
        self.budget.add_bytes(EDIT_BYTES + edit.key.len() + edit.entry.path.as_bytes().len())?;
        self.plan.result.file_changes.insert(Arc::clone(&edit.key), changes);
        self.plan.edits.push(edit);
        Ok(())
    }
}

impl ScopeVisitor for Planner<'_, '_> {
    fn file(&mut self, file: ScopedFile<'_>) -> ControlFlow<()> {
        let result = self.visit_file(&file);
        self.flow(result)
    }

    fn skipped(&mut self, skipped: Skipped) -> ControlFlow<()> {
        let result = self.budget.add_bytes(REPORT_BYTES + skipped.file.len());
        self.plan.skipped.push(skipped);
        self.flow(result)
    }

    fn link(&mut self, path: &TreePath) -> ControlFlow<()> {
        // The link's target may change although the directory does not.
        self.directories.add_finding();
        let result = self.budget.add_bytes(REPORT_BYTES + path.as_bytes().len());
        self.flow(result)
    }

    fn follow(&mut self) -> ControlFlow<()> {
        let result = self.check();
        self.flow(result)
    }

    fn enter(&mut self, content: Option<ContentId>) -> ControlFlow<(), WalkDecision> {
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

impl ContentOutcome {
    fn failed(error: ReadError) -> Self {
        Self { known: IndexedOutcome { error: Some(error), ..IndexedOutcome::default() }, ..Self::default() }
    }

    fn of(outcome: FileOutcome, content: &[u8]) -> Self {
        let FileOutcome { splices, changes, markers, near_misses, .. } = outcome;
        let edit = (!splices.is_empty()).then(|| (ContentHash::of(content), splices.into()));
        Self { known: IndexedOutcome { markers, near_misses, error: None }, changes: changes.into(), edit }
    }
}

/// Returns the policy of each marker that waits.
fn waiting(markers: &[FileMarker]) -> impl Iterator<Item = &ObjectName> {
    markers.iter().filter(|found| found.outcome == MarkerOutcome::Waiting).map(|found| &found.marker.policy)
}

fn report(file: &str, found: &FileMarker) -> MarkerReport {
    MarkerReport {
        file: file.to_owned(),
        line: found.line,
        object: found.object.clone(),
        setter: found.marker.setter.clone(),
        policy: found.marker.policy.clone(),
        // The report is the same from the index and from the file.
        value: match &found.node {
            MarkedNode::Scalar(value) if value.len() <= MAX_VALUE_LENGTH => Some(value.clone()),
            MarkedNode::Scalar(_) | MarkedNode::Absent | MarkedNode::NotScalar => None,
        },
        outcome: found.outcome,
    }
}

/// The length in bytes of the texts in the report of a marker.
fn text_of_marker(marker: &MarkerReport) -> usize {
    let value = marker.value.as_ref().map_or(0, String::len);
    marker.file.len() + text_of_object(&marker.object) + 2 * marker.setter.len() + value
}

/// The memory in bytes of one content's changes and their splices.
fn memory_of_changes(changes: &ObjectChanges) -> usize {
    let objects = changes.iter().map(|(object, changes)| {
        let of_change = |change: &Change| {
            CHANGE_BYTES + change.old_value.len() + 2 * change.new_value.len() + change.setter.len()
        };
        OBJECT_BYTES + text_of_object(object) + changes.iter().map(of_change).sum::<usize>()
    });
    objects.sum()
}

fn text_of_object(object: &ObjectIdentifier) -> usize {
    let ObjectIdentifier { api_version, kind, name, namespace } = object;
    [api_version, kind, name, namespace].map(String::len).iter().sum()
}
