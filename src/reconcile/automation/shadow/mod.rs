//! An automation that another controller carries out: what we would commit, and how that compares with what it pushes.
//!
//! Each look at the files gives a [`Sight`]: what to say, and the [`Shadow`] to remember for the next look. What is
//! compared are the values of markers ([`place`]); where all of a would-be commit are there, also the bytes of its files
//! ([`file`]). Nobody else's commit is looked at by itself: what counts is what the branch has at the time of a look.

mod file;
mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::metrics::ShadowOutcome;
use crate::update::diff::DiffError;
use crate::update::{Checkpoint, FileEdit, FileTree, Progress, TreePath, UpdatePlan, UpdateRequest};
use file::{Proposed, bounded, would_be};
use place::{Place, Values, places};

/// What is remembered of an automation from one look at its files to the next.
#[derive(Clone, Debug, Default)]
pub struct Shadow {
    /// What stood on the places whose values are ours to set.
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

/// A look at an automation that another controller carries out.
#[derive(Debug, Default)]
pub struct Shadowing {
    /// What is known from looks before.
    pub before: Arc<Shadow>,
    /// What the last look at a tree came to.
    pub sight: Option<Sight>,
}

/// What a look came to.
#[derive(Clone, Debug)]
pub struct Sight {
    /// What the next look has to know.
    pub shadow: Shadow,
    /// How what was pushed compares with what we would have pushed.
    pub comparison: Option<Comparison>,
    /// A would-be commit that is not the one of the look before.
    pub would_be: Option<WouldBe>,
}

/// How what another controller pushed compares with what we would have pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The result in a word.
    pub outcome: ShadowOutcome,
    /// The result in a sentence.
    pub sentence: String,
    /// From what was pushed to what we would have pushed; empty where that is the same.
    pub diff: String,
}

/// A would-be commit in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WouldBe {
    /// Its message.
    pub message: String,
    /// What it changes.
    pub diff: String,
}

/// What is looked at: a tree, what we would do to it, and the message of the commit if there would be one.
pub struct View<'v> {
    /// The tree, as others left it.
    pub tree: &'v dyn FileTree,
    /// What is to be updated.
    pub update: &'v UpdateRequest,
    /// What was found.
    pub plan: &'v UpdatePlan,
    /// What we would write.
    pub edits: &'v [FileEdit],
    /// What we would say.
    pub message: Option<&'v [u8]>,
}

/// What has become of a would-be commit.
enum Fate {
    /// It may still be pushed.
    Pending,
    /// All of its values are there.
    Arrived,
    /// There are other values in their places.
    Supplanted(Vec<Place>),
    /// Its places are gone, or nobody wants its values any more.
    Void,
}

impl Shadowing {
    /// Looks at a tree; a second look takes the place of the first. `checkpoint` is called between files.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or when `checkpoint` says so.
    pub fn look(&mut self, view: &View<'_>, checkpoint: &mut Checkpoint<'_>) -> Result<(), DiffError> {
        self.sight = Some(self.before.look(view, checkpoint)?);
        Ok(())
    }
}

impl Shadow {
    /// The memory that it takes, in bytes.
    pub fn bytes(&self) -> u64 {
        let found = |found: &Option<String>| size_of_val(found) + found.as_ref().map_or(0, String::len);
        let seen: usize = self.seen.iter().map(|(place, value)| place.bytes() + found(value)).sum();
        let wish = self.wish.as_ref().map_or(0, Wish::bytes);
        u64::try_from(seen + wish).unwrap_or(u64::MAX)
    }

    /// Compares a tree with what is known.
    fn look(&self, view: &View<'_>, checkpoint: &mut Checkpoint<'_>) -> Result<Sight, DiffError> {
        let places = places(view.plan);
        let fate = self.wish.as_ref().map(|wish| (wish, wish.fate(&places)));
        let pending = fate.as_ref().filter(|(_, fate)| matches!(fate, Fate::Pending)).map(|(wish, _)| *wish);
        let unforeseen = self.unforeseen(&places);
        let comparison = match fate {
            Some((_, Fate::Supplanted(by))) => {
                let others = [by, unforeseen].concat();
                Some(view.other_values(ShadowOutcome::differed, &others, &places, checkpoint)?)
            }
            Some((wish, Fate::Arrived)) if unforeseen.is_empty() => Some(wish.compare(view, checkpoint)?),
            Some((_, Fate::Arrived)) => {
                Some(view.other_values(ShadowOutcome::differed, &unforeseen, &places, checkpoint)?)
            }
            _ if unforeseen.is_empty() => None,
            _ => Some(view.other_values(ShadowOutcome::missed, &unforeseen, &places, checkpoint)?),
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
        Ok(Sight { shadow: Self { seen, wish }, comparison, would_be })
    }

    /// The places that somebody gave a value that is not wanted, and that we would not have touched.
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
    /// Whether both are the same commit, but for what others changed around it.
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

    /// Compares the files, now that the values are the same.
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
            return Ok(Comparison { outcome: ShadowOutcome::agreed, sentence, diff: String::new() });
        }
        let sentence =
            format!("another controller pushed the same values in other bytes: {}", listed(&others));
        Ok(Comparison { outcome: ShadowOutcome::differed, sentence, diff: bounded(diffs.concat()) })
    }
}

impl View<'_> {
    /// What is to be said of places that others gave other values than we would have.
    fn other_values(
        &self,
        outcome: ShadowOutcome,
        others: &[Place],
        places: &BTreeMap<Place, Values>,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Comparison, DiffError> {
        let each: Vec<String> =
            others.iter().filter_map(|place| Some(format!("{place}: {}", places.get(place)?))).collect();
        let what = match outcome {
            ShadowOutcome::missed => "values that we would have left alone",
            _ => "other values",
        };
        let sentence = format!("another controller pushed {what}: {}", listed(&each));
        let others: BTreeSet<&str> = others.iter().map(|place| place.file.as_str()).collect();
        let is_meant = |edit: &&FileEdit| others.contains(&*edit.key);
        let edits: Vec<FileEdit> = self.edits.iter().filter(is_meant).cloned().collect();
        Ok(Comparison { outcome, sentence, diff: would_be(self.tree, &edits, checkpoint)? })
    }

    /// The would-be commit, if there is one.
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

/// The first few, and how many more there are.
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
