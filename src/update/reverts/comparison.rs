//! Decides which candidates are reverted, by the tree of the baseline.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::BuildHasher;
use std::ops::ControlFlow;

use foldhash::quality::FixedState;
use memchr::memmem;

use super::candidate::{Candidate, HeldBefore};
use crate::update::error::{PlanError, ScopeError};
use crate::update::held_values::{HeldValue, HeldValues};
use crate::update::interrupt::{Checkpoint, Progress};
use crate::update::marker::{Marker, QUOTED_TOKEN};
use crate::update::placed_marker::{Place, PlacedMarker, placed_markers};
use crate::update::plan::UpdateRequest;
use crate::update::scope::{ScopeVisitor, ScopedFile, walk_scope};
use crate::update::tree::{Entry, EntryKind, FileTree, TreePath};

/// The maximum number of files that are compared, which bounds memory.
const MAX_FILES: usize = 100_000;

/// Two versions of the tree, and what is looked for in them.
struct Versions<'v, 'c> {
    current: &'v dyn FileTree,
    baseline: &'v dyn FileTree,
    request: &'v UpdateRequest,
    setters: HashSet<&'v str>,
    checkpoint: &'v mut Checkpoint<'c>,
    content: Vec<u8>,
}

/// Returns the candidates that are reverted since the baseline.
///
/// A marker that moved counts as the one that it was, and a copy of a reverted marker as reverted. Markers that the baseline
/// does not have in any way are new, and not reverted. The result is `None` if too many files have changed.
///
/// # Errors
///
/// If a tree cannot be listed, or `checkpoint` returns an error.
pub fn reverted(
    candidates: &[Candidate],
    (current, baseline): (&dyn FileTree, &dyn FileTree),
    request: &UpdateRequest,
    held: &HeldBefore,
    checkpoint: &mut Checkpoint<'_>,
) -> Result<Option<Vec<Candidate>>, PlanError> {
    let setters = candidates.iter().map(|candidate| candidate.setter.as_str()).collect();
    let mut versions = Versions { current, baseline, request, setters, checkpoint, content: Vec::new() };
    let is_reverted = |candidate: &Candidate, was: &str| {
        if was == candidate.then { candidate.value != candidate.then } else { held.has(&candidate.policy) }
    };
    let (mut reverted, mut new) = (Vec::new(), Vec::new());
    let mut before: (Option<&TreePath>, Option<Vec<PlacedMarker>>) = (None, None);
    for candidate in candidates {
        if before.0 != Some(&candidate.path) {
            before = (Some(&candidate.path), versions.markers(versions.baseline, &candidate.path)?);
        }
        let Some(before) = &before.1 else {
            // It is not known what the file had.
            if candidate.has_same_image || held.has(&candidate.policy) {
                reverted.push(Candidate { was_reverted_before: true, ..candidate.clone() });
            }
            continue;
        };
        let is_same = |marker: &&PlacedMarker| {
            marker.place == candidate.place && marker.marker.setter == candidate.setter
        };
        let same: Vec<&str> = before.iter().filter(is_same).map(|marker| marker.value.as_str()).collect();
        if same.is_empty() {
            new.push(candidate);
        } else if same.iter().any(|was| is_reverted(candidate, was)) {
            let was_reverted_before = !same.contains(&candidate.then.as_str());
            reverted.push(Candidate { was_reverted_before, ..candidate.clone() });
        }
    }
    if new.is_empty() {
        return Ok(Some(reverted));
    }
    let Some(gone) = versions.gone()? else { return Ok(None) };
    let (moved, new): (Vec<_>, Vec<_>) = new.into_iter().partition(|candidate| {
        let mut values = gone.get(&candidate.setter).into_iter().flatten();
        values.any(|was| is_reverted(candidate, was))
    });
    reverted.extend(moved.into_iter().map(|candidate| {
        let was_wanted = gone.get(&candidate.setter).is_some_and(|values| values.contains(&candidate.then));
        Candidate { was_reverted_before: !was_wanted, ..candidate.clone() }
    }));
    // A copy was reverted when all of its originals were.
    let mut originals: BTreeMap<(String, String), bool> = BTreeMap::new();
    for Candidate { setter, value, was_reverted_before, .. } in &reverted {
        *originals.entry((setter.clone(), value.clone())).or_insert(true) &= *was_reverted_before;
    }
    reverted.extend(new.into_iter().filter_map(|candidate| {
        let was_reverted_before = *originals.get(&(candidate.setter.clone(), candidate.value.clone()))?;
        Some(Candidate { was_reverted_before, ..candidate.clone() })
    }));
    reverted.sort_by(|left, right| (&left.path, left.line).cmp(&(&right.path, right.line)));
    Ok(Some(reverted))
}

/// Returns the values of reverted markers, which an update holds.
pub fn held_values(reverted: &[Candidate]) -> HeldValues {
    let mut held = HeldValues::default();
    for Candidate { path, place, setter, value, .. } in reverted {
        let value = HeldValue { place: *place, setter: setter.clone(), value: value.clone() };
        held.add(path.clone(), value);
    }
    held
}

impl Versions<'_, '_> {
    /// Returns the markers of a readable file with a wanted setter.
    ///
    /// There is none if the file has markers and cannot be parsed.
    fn markers(
        &mut self,
        tree: &dyn FileTree,
        path: &TreePath,
    ) -> Result<Option<Vec<PlacedMarker>>, PlanError> {
        (self.checkpoint)(Progress::default())?;
        let entry = Entry { path: path.clone(), kind: EntryKind::File, content: None };
        if !tree.kind(path).is_ok_and(|kind| kind == EntryKind::File)
            || tree.read(&entry, self.request.limits.file_size, &mut self.content).is_err()
            || memmem::find(&self.content, QUOTED_TOKEN).is_none()
        {
            return Ok(Some(Vec::new()));
        }
        let setters = &self.setters;
        let is_wanted = |marker: &Marker| setters.contains(marker.setter.as_str());
        Ok(placed_markers(&self.content, &self.request.limits, &is_wanted).ok())
    }

    /// Returns the values of markers that disappeared, by their setters.
    ///
    /// The result is `None` if too many files have changed.
    fn gone(&mut self) -> Result<Option<HashMap<String, BTreeSet<String>>>, PlanError> {
        let path = self.request.path.as_deref();
        let mut current = HashMap::new();
        let mut note = EachFile(|Entry { path, content, .. }: Entry| {
            current.insert(hash(&path), content);
            ControlFlow::Continue(())
        });
        walk_scope(self.current, path, &mut note)?;
        let mut changed = Vec::new();
        let mut compare = EachFile(|Entry { path, content, .. }: Entry| {
            if content.is_none() || current.get(&hash(&path)) != Some(&content) {
                changed.push(path);
            }
            // One more shows that there are too many.
            if changed.len() > MAX_FILES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        // After any other error the baseline had no file there.
        if let Err(error @ ScopeError::Tree(_)) = walk_scope(self.baseline, path, &mut compare) {
            return Err(error.into());
        }
        if changed.len() > MAX_FILES {
            return Ok(None);
        }
        let mut gone: HashMap<String, BTreeSet<String>> = HashMap::new();
        for path in changed {
            let before = self.markers(self.baseline, &path)?.unwrap_or_default();
            if before.is_empty() {
                continue;
            }
            let now = self.markers(self.current, &path)?;
            let places: HashSet<(Place, &str)> =
                now.iter().flatten().map(|found| (found.place, found.marker.setter.as_str())).collect();
            for PlacedMarker { marker, place, value, .. } in before {
                let is_there = match &now {
                    Some(_) => places.contains(&(place, marker.setter.as_str())),
                    // The places are not known, and the text has the setter.
                    None => memmem::find(&self.content, marker.setter.as_bytes()).is_some(),
                };
                if !is_there {
                    gone.entry(marker.setter).or_default().insert(value);
                }
            }
        }
        Ok(Some(gone))
    }
}

fn hash(path: &TreePath) -> u64 {
    FixedState::default().hash_one(path.as_bytes())
}

/// Visits each file in scope with a function.
struct EachFile<F>(F);

impl<F: FnMut(Entry) -> ControlFlow<()>> ScopeVisitor for EachFile<F> {
    fn file(&mut self, file: ScopedFile<'_>) -> ControlFlow<()> {
        (self.0)(file.entry)
    }
}
