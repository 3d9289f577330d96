//! Compare mode of an automation: compares our would-be commit with another controller's pushes.
//!
//! Each reconcile gives a [`CompareResult`] with the result and the [`CompareState`] for the next reconcile. The values
//! of markers are compared ([`marker_key`]), and if all values of a would-be commit are there, also the bytes of its
//! files ([`file`]). Commits of others are not read: the comparison is with the branch at the time of the reconcile.

mod file;
mod marker_key;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::metrics::ComparisonOutcome;
use crate::update::diff::DiffError;
use crate::update::{Checkpoint, FileEdit, FileTree, Progress, TreePath, UpdatePlan, UpdateRequest};
use file::{Proposed, bounded, would_be};
use marker_key::{MarkerKey, Values, marker_values};

/// State of compare mode for one automation, between two reconciles.
#[derive(Clone, Debug, Default)]
pub struct CompareState {
    /// The values of the markers that this automation sets.
    seen: BTreeMap<MarkerKey, Option<String>>,
    /// The would-be commit that the branch does not have yet.
    pending_commit: Option<PendingCommit>,
}

/// A would-be commit that the branch does not have yet.
#[derive(Clone, Debug)]
struct PendingCommit {
    changes: BTreeMap<MarkerKey, Values>,
    message: String,
    files: BTreeMap<TreePath, Proposed>,
}

/// The comparison in one reconcile of an automation that another controller reconciles.
#[derive(Debug, Default)]
pub struct CompareRun {
    /// The state from earlier reconciles.
    pub before: Arc<CompareState>,
    /// The result of the last comparison.
    pub result: Option<CompareResult>,
}

/// The result of a comparison.
#[derive(Clone, Debug)]
pub struct CompareResult {
    /// The state for the next reconcile.
    pub state: CompareState,
    /// The comparison of the other controller's push with ours, if there was one.
    pub comparison: Option<Comparison>,
    /// A would-be commit other than that of the last reconcile.
    pub would_be: Option<WouldBe>,
}

/// A comparison of what another controller pushed with what we would have pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The result in a word.
    pub outcome: ComparisonOutcome,
    /// The result in a sentence.
    pub sentence: String,
    /// The diff from the actual push to our would-be commit; empty if they are equal.
    pub diff: String,
}

/// A would-be commit as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WouldBe {
    /// Its message.
    pub message: String,
    /// The diff of its changes.
    pub diff: String,
}

/// The input of a comparison.
///
/// It has a tree, our plan for it, and the message of the would-be commit if there is one.
pub struct View<'v> {
    /// The tree, as others left it.
    pub tree: &'v dyn FileTree,
    /// The update.
    pub update: &'v UpdateRequest,
    /// The plan.
    pub plan: &'v UpdatePlan,
    /// The edits that we would make.
    pub edits: &'v [FileEdit],
    /// The message that we would write.
    pub message: Option<&'v [u8]>,
}

/// The state of a would-be commit.
enum CommitState {
    /// It may still be pushed.
    Pending,
    /// All of its values are in the tree.
    Applied,
    /// Its markers have other values.
    Superseded(Vec<MarkerKey>),
    /// Its markers are gone, or its values are not wanted any more.
    Obsolete,
}

impl CompareRun {
    /// Compares a tree; a second comparison replaces the first. `checkpoint` is called between files.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or if `checkpoint` fails.
    pub fn compare(&mut self, view: &View<'_>, checkpoint: &mut Checkpoint<'_>) -> Result<(), DiffError> {
        self.result = Some(self.before.compare(view, checkpoint)?);
        Ok(())
    }
}

impl CompareState {
    /// Returns the memory that the state takes, in bytes.
    pub fn bytes(&self) -> u64 {
        let found = |found: &Option<String>| size_of_val(found) + found.as_ref().map_or(0, String::len);
        let seen: usize = self.seen.iter().map(|(key, value)| key.bytes() + found(value)).sum();
        let pending_commit = self.pending_commit.as_ref().map_or(0, PendingCommit::bytes);
        u64::try_from(seen + pending_commit).unwrap_or(u64::MAX)
    }

    /// Compares a tree with the state.
    fn compare(&self, view: &View<'_>, checkpoint: &mut Checkpoint<'_>) -> Result<CompareResult, DiffError> {
        let markers = marker_values(view.plan);
        let state = self
            .pending_commit
            .as_ref()
            .map(|pending_commit| (pending_commit, pending_commit.state(&markers)));
        let pending = state
            .as_ref()
            .filter(|(_, state)| matches!(state, CommitState::Pending))
            .map(|(pending_commit, _)| *pending_commit);
        let unexpected = self.unexpected(&markers);
        let comparison = match state {
            Some((_, CommitState::Superseded(by))) => {
                let others = [by, unexpected].concat();
                Some(view.other_values(ComparisonOutcome::differed, &others, &markers, checkpoint)?)
            }
            Some((pending_commit, CommitState::Applied)) if unexpected.is_empty() => {
                Some(pending_commit.compare(view, checkpoint)?)
            }
            Some((_, CommitState::Applied)) => {
                Some(view.other_values(ComparisonOutcome::differed, &unexpected, &markers, checkpoint)?)
            }
            _ if unexpected.is_empty() => None,
            _ => Some(view.other_values(ComparisonOutcome::missed, &unexpected, &markers, checkpoint)?),
        };
        let pending_commit = view.pending_commit(&markers, checkpoint)?;
        let is_known =
            |pending_commit: &PendingCommit| pending.is_some_and(|pending| pending.is_alike(pending_commit));
        let would_be = match &pending_commit {
            Some(pending_commit) if !is_known(pending_commit) => {
                let diff = would_be(view.tree, view.edits, checkpoint)?;
                Some(WouldBe { message: pending_commit.message.clone(), diff })
            }
            _ => None,
        };
        let seen = markers.into_iter().map(|(key, values)| (key, values.found)).collect();
        Ok(CompareResult { state: Self { seen, pending_commit }, comparison, would_be })
    }

    /// Returns the places with a new, unwanted value that we would not have changed.
    fn unexpected(&self, markers: &BTreeMap<MarkerKey, Values>) -> Vec<MarkerKey> {
        let is_pending = |key| {
            self.pending_commit
                .as_ref()
                .is_some_and(|pending_commit| pending_commit.changes.contains_key(key))
        };
        let unexpected = markers.iter().filter(|(key, now)| {
            let is_new = self.seen.get(key).is_some_and(|before| *before != now.found);
            is_new && !now.is_settled() && !is_pending(key)
        });
        unexpected.map(|(key, _)| key.clone()).collect()
    }
}

impl PendingCommit {
    /// Returns whether both are the same commit, except for changes of others around it.
    fn is_alike(&self, other: &Self) -> bool {
        (&self.changes, &self.message) == (&other.changes, &other.message)
    }

    fn bytes(&self) -> usize {
        let Self { changes, message, files } = self;
        let changes: usize = changes.iter().map(|(key, values)| key.bytes() + values.bytes()).sum();
        let files: usize = files.iter().map(|(path, file)| path.as_bytes().len() + file.bytes()).sum();
        changes + message.len() + files
    }

    fn state(&self, markers: &BTreeMap<MarkerKey, Values>) -> CommitState {
        let (mut superseded, mut is_waiting, mut is_obsolete) = (Vec::new(), false, false);
        for (key, proposed) in &self.changes {
            match markers.get(key) {
                Some(now) if now.found.as_ref() == Some(&proposed.wanted) => {}
                Some(now) if now.found == proposed.found => is_waiting = true,
                Some(now) if !now.is_settled() => superseded.push(key.clone()),
                Some(_) | None => is_obsolete = true,
            }
        }
        match (superseded.is_empty(), is_obsolete, is_waiting) {
            (false, _, _) => CommitState::Superseded(superseded),
            (true, true, _) => CommitState::Obsolete,
            (true, false, true) => CommitState::Pending,
            (true, false, false) => CommitState::Applied,
        }
    }

    /// Compares the files, whose values are equal.
    fn compare(&self, view: &View<'_>, checkpoint: &mut Checkpoint<'_>) -> Result<Comparison, DiffError> {
        let mut diffs = Vec::new();
        let mut others = Vec::new();
        for (path, proposed) in &self.files {
            checkpoint(Progress::default())?;
            if let Some(diff) = proposed.difference(path, view.tree, view.update) {
                others.push(path.to_string());
                diffs.push(diff);
            }
        }
        if others.is_empty() {
            let sentence = "another controller pushed the same".to_owned();
            return Ok(Comparison { outcome: ComparisonOutcome::agreed, sentence, diff: String::new() });
        }
        let sentence =
            format!("another controller pushed the same values in different bytes: {}", listed(&others));
        Ok(Comparison { outcome: ComparisonOutcome::differed, sentence, diff: bounded(diffs.concat()) })
    }
}

impl View<'_> {
    /// Compares the markers to which others gave other values than we would have.
    fn other_values(
        &self,
        outcome: ComparisonOutcome,
        others: &[MarkerKey],
        markers: &BTreeMap<MarkerKey, Values>,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Comparison, DiffError> {
        let each: Vec<String> =
            others.iter().filter_map(|key| Some(format!("{key}: {}", markers.get(key)?))).collect();
        let what = match outcome {
            ComparisonOutcome::missed => "values that this controller would not change",
            _ => "other values",
        };
        let sentence = format!("another controller pushed {what}: {}", listed(&each));
        let others: BTreeSet<&str> = others.iter().map(|key| key.file.as_str()).collect();
        let is_meant = |edit: &&FileEdit| others.contains(&*edit.key);
        let edits: Vec<FileEdit> = self.edits.iter().filter(is_meant).cloned().collect();
        Ok(Comparison { outcome, sentence, diff: would_be(self.tree, &edits, checkpoint)? })
    }

    /// Makes the would-be commit, if there is one.
    fn pending_commit(
        &self,
        markers: &BTreeMap<MarkerKey, Values>,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Option<PendingCommit>, DiffError> {
        let Some(message) = self.message else { return Ok(None) };
        let changes = markers.iter().filter(|(_, values)| !values.is_settled());
        Ok(Some(PendingCommit {
            changes: changes.map(|(key, values)| (key.clone(), values.clone())).collect(),
            message: String::from_utf8_lossy(message).into_owned(),
            files: Proposed::all(self.tree, self.edits, self.update, checkpoint)?,
        }))
    }
}

/// Returns the first few, and the number of the others.
fn listed(items: &[String]) -> String {
    const SHOWN: usize = 3;
    let text = items[..items.len().min(SHOWN)].join(", ");
    match items.len().saturating_sub(SHOWN) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
