//! Compare mode of an automation: compares our would-be commit with another controller's pushes.
//!
//! Each reconcile gives a [`CompareResult`] with the result and the [`CompareState`] for the next reconcile. The values
//! of markers are compared ([`place`]), and if all values of a would-be commit are there, also the bytes of its files
//! ([`file`]). Commits of others are not read: the comparison is with the branch at the time of the reconcile.

mod file;
mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::metrics::ComparisonOutcome;
use crate::update::diff::DiffError;
use crate::update::{Checkpoint, FileEdit, FileTree, Progress, TreePath, UpdatePlan, UpdateRequest};
use file::{Proposed, bounded, would_be};
use place::{Place, Values, places};

/// The state of an automation between two reconciles.
#[derive(Clone, Debug, Default)]
pub struct CompareState {
    /// The values at the places that this automation sets.
    seen: BTreeMap<Place, Option<String>>,
    /// The would-be commit that the branch does not have yet.
    wish: Option<Wish>,
}

/// A would-be commit.
#[derive(Clone, Debug)]
struct Wish {
    changes: BTreeMap<Place, Values>,
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
enum Fate {
    /// It may still be pushed.
    Pending,
    /// All of its values are in the tree.
    Arrived,
    /// Other values are in its places.
    Supplanted(Vec<Place>),
    /// Its places are gone, or its values are not wanted any more.
    Void,
}

impl CompareRun {
    /// Compares a tree; a second comparison replaces the first. `checkpoint` is called between files.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or if `checkpoint` fails.
    pub fn look(&mut self, view: &View<'_>, checkpoint: &mut Checkpoint<'_>) -> Result<(), DiffError> {
        self.result = Some(self.before.look(view, checkpoint)?);
        Ok(())
    }
}

impl CompareState {
    /// Returns the memory that the state takes, in bytes.
    pub fn bytes(&self) -> u64 {
        let found = |found: &Option<String>| size_of_val(found) + found.as_ref().map_or(0, String::len);
        let seen: usize = self.seen.iter().map(|(place, value)| place.bytes() + found(value)).sum();
        let wish = self.wish.as_ref().map_or(0, Wish::bytes);
        u64::try_from(seen + wish).unwrap_or(u64::MAX)
    }

    /// Compares a tree with the state.
    fn look(&self, view: &View<'_>, checkpoint: &mut Checkpoint<'_>) -> Result<CompareResult, DiffError> {
        let places = places(view.plan);
        let fate = self.wish.as_ref().map(|wish| (wish, wish.fate(&places)));
        let pending = fate.as_ref().filter(|(_, fate)| matches!(fate, Fate::Pending)).map(|(wish, _)| *wish);
        let unforeseen = self.unforeseen(&places);
        let comparison = match fate {
            Some((_, Fate::Supplanted(by))) => {
                let others = [by, unforeseen].concat();
                Some(view.other_values(ComparisonOutcome::differed, &others, &places, checkpoint)?)
            }
            Some((wish, Fate::Arrived)) if unforeseen.is_empty() => Some(wish.compare(view, checkpoint)?),
            Some((_, Fate::Arrived)) => {
                Some(view.other_values(ComparisonOutcome::differed, &unforeseen, &places, checkpoint)?)
            }
            _ if unforeseen.is_empty() => None,
            _ => Some(view.other_values(ComparisonOutcome::missed, &unforeseen, &places, checkpoint)?),
        };
        let wish = view.wish(&places, checkpoint)?;
        let is_known = |wish: &Wish| pending.is_some_and(|pending| pending.is_alike(wish));
        let would_be = match &wish {
            Some(wish) if !is_known(wish) => {
                let diff = would_be(view.tree, view.edits, checkpoint)?;
                Some(WouldBe { message: wish.message.clone(), diff })
            }
            _ => None,
        };
        let seen = places.into_iter().map(|(place, values)| (place, values.found)).collect();
        Ok(CompareResult { state: Self { seen, wish }, comparison, would_be })
    }

    /// Returns the places with a new, unwanted value that we would not have changed.
    fn unforeseen(&self, places: &BTreeMap<Place, Values>) -> Vec<Place> {
        let is_wished = |place| self.wish.as_ref().is_some_and(|wish| wish.changes.contains_key(place));
        let unforeseen = places.iter().filter(|(place, now)| {
            let is_new = self.seen.get(place).is_some_and(|before| *before != now.found);
            is_new && !now.is_settled() && !is_wished(place)
        });
        unforeseen.map(|(place, _)| place.clone()).collect()
    }
}

impl Wish {
    /// Returns whether both are the same commit, except for changes of others around it.
    fn is_alike(&self, other: &Self) -> bool {
        (&self.changes, &self.message) == (&other.changes, &other.message)
    }

    fn bytes(&self) -> usize {
        let Self { changes, message, files } = self;
        let changes: usize = changes.iter().map(|(place, values)| place.bytes() + values.bytes()).sum();
        let files: usize = files.iter().map(|(path, file)| path.as_bytes().len() + file.bytes()).sum();
        changes + message.len() + files
    }

    fn fate(&self, places: &BTreeMap<Place, Values>) -> Fate {
        let (mut supplanted, mut is_waiting, mut is_void) = (Vec::new(), false, false);
        for (place, wished) in &self.changes {
            match places.get(place) {
                Some(now) if now.found.as_ref() == Some(&wished.wanted) => {}
                Some(now) if now.found == wished.found => is_waiting = true,
                Some(now) if !now.is_settled() => supplanted.push(place.clone()),
                Some(_) | None => is_void = true,
            }
        }
        match (supplanted.is_empty(), is_void, is_waiting) {
            (false, _, _) => Fate::Supplanted(supplanted),
            (true, true, _) => Fate::Void,
            (true, false, true) => Fate::Pending,
            (true, false, false) => Fate::Arrived,
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
            format!("another controller pushed the same values in other bytes: {}", listed(&others));
        Ok(Comparison { outcome: ComparisonOutcome::differed, sentence, diff: bounded(diffs.concat()) })
    }
}

impl View<'_> {
    /// Compares the places to which others gave other values than we would have.
    fn other_values(
        &self,
        outcome: ComparisonOutcome,
        others: &[Place],
        places: &BTreeMap<Place, Values>,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Comparison, DiffError> {
        let each: Vec<String> =
            others.iter().filter_map(|place| Some(format!("{place}: {}", places.get(place)?))).collect();
        let what = match outcome {
            ComparisonOutcome::missed => "values that we would have left alone",
            _ => "other values",
        };
        let sentence = format!("another controller pushed {what}: {}", listed(&each));
        let others: BTreeSet<&str> = others.iter().map(|place| place.file.as_str()).collect();
        let is_meant = |edit: &&FileEdit| others.contains(&*edit.key);
        let edits: Vec<FileEdit> = self.edits.iter().filter(is_meant).cloned().collect();
        Ok(Comparison { outcome, sentence, diff: would_be(self.tree, &edits, checkpoint)? })
    }

    /// Makes the would-be commit, if there is one.
    fn wish(
        &self,
        places: &BTreeMap<Place, Values>,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Option<Wish>, DiffError> {
        let Some(message) = self.message else { return Ok(None) };
        let changes = places.iter().filter(|(_, values)| !values.is_settled());
        Ok(Some(Wish {
            changes: changes.map(|(place, values)| (place.clone(), values.clone())).collect(),
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
