//! The values that a run holds or overwrites.

use std::collections::{BTreeMap, BTreeSet};

use tagboat_api::ObjectName;
use tagboat_api::settings::OnRevert;

use super::baseline::{Note, StatusBaseline, text};
use super::condition::{HeldMarker, Holds, RevertOutcome, UnavailableCommit};
use super::record::{Between, HeldPolicy};
use crate::git::{Baseline, BaselineTree, CommitId, ProposalTrees};
use crate::update::reverts::{Candidate, HeldBefore, candidates, held_values, reverted};
use crate::update::{Checkpoint, HeldValues, PlanError, UpdatePlan, UpdateRequest};

/// The maximum number of characters of a value in reports.
const MAX_SHOWN: usize = 1_024;

/// Decides which values an automation leaves as others set them.
#[derive(Debug, Default)]
pub struct Reverts {
    /// The setting; none if nothing is written, as in compare mode.
    mode: Option<OnRevert>,
    /// The last run by the status.
    status: StatusBaseline,
    /// Policies whose images a person named.
    exempt: BTreeSet<ObjectName>,
    /// True if the last plan needs the missing tree of the baseline.
    pub lacks_baseline: bool,
    /// The values of the last plan that are held.
    held: Option<Holds>,
    /// The values of the last plan that are overwritten though others set them.
    overwritten: Vec<Overwritten>,
}

/// A value that others set, and that is overwritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overwritten {
    /// The file, relative to `update.path`.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The value that others set.
    pub value: String,
    /// The policy.
    pub policy: ObjectName,
    /// The commit of the last run, in which it was another one.
    pub since: CommitId,
}

impl Reverts {
    /// Creates the decisions of a run.
    ///
    /// Without a setting nothing is decided, as in compare mode. The values of policies in `exempt` are always written.
    pub fn new(mode: Option<OnRevert>, status: StatusBaseline, exempt: BTreeSet<ObjectName>) -> Self {
        Self { mode, status, exempt, ..Self::default() }
    }

    /// Returns true if the last run held values.
    pub fn has_held(&self) -> bool {
        self.status.held.is_some()
    }

    /// Decides about the changes of a plan, and returns the values to hold.
    ///
    /// The plan is made again then.
    ///
    /// # Errors
    ///
    /// If a tree cannot be listed, or `checkpoint` returns an error.
    pub(in crate::reconcile::automation) fn decide(
        &mut self,
        trees: &ProposalTrees<'_>,
        plan: &UpdatePlan,
        request: &UpdateRequest,
        namespace: &str,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Option<HeldValues>, PlanError> {
        (self.lacks_baseline, self.held, self.overwritten) = (false, None, Vec::new());
        let Some(mode) = self.mode else { return Ok(None) };
        let mut holds = Holds::new(mode, self.without_image(namespace, request));
        let Some(baseline) = &trees.baseline else {
            self.held = Some(holds);
            return Ok(None);
        };
        let note = baseline.note.and_then(|note| serde_json::from_str::<Note>(note).ok());
        let query = self.status.query(namespace, mode, note.as_ref(), self.exempt.clone());
        let candidates = candidates(trees.tree, plan, request, &query, checkpoint)?;
        let (found, reason) = match baseline.tree {
            _ if candidates.is_empty() => (Vec::new(), None),
            BaselineTree::Here(before) => {
                match reverted(&candidates, (trees.tree, before), request, &query.held, checkpoint)? {
                    Some(found) => (found, None),
                    None => (unchecked(candidates, &query.held), Some("too many files have changed")),
                }
            }
            BaselineTree::Unavailable(reason) => (unchecked(candidates, &query.held), Some(reason)),
            BaselineTree::Missing => {
                // A warning is not worth a fetch.
                self.lacks_baseline = mode != OnRevert::Overwrite;
                return Ok(None);
            }
        };
        if mode == OnRevert::Overwrite {
            // Of a value that the last run left as it was, or could not read, no warning is due any more.
            let new = found.iter().filter(|found| !found.was_reverted_before);
            if let Some(since) = baseline.commit {
                self.overwritten = new.map(|found| overwritten(found, since)).collect();
            }
            self.held = Some(holds);
            return Ok(None);
        }
        let known = self.status.held.as_ref().and_then(|held| held.policies.as_ref());
        let images: BTreeMap<_, _> = request.setters.images().collect();
        let is_known = reason.is_none() && !found.is_empty();
        let change = baseline.commit.filter(|_| is_known).map(|from| between(from, baseline));
        for candidate in &found {
            let Some(image) = images.get(&candidate.policy) else { continue };
            // The change of a value that was reverted before is in none of these commits.
            let known = known.and_then(|known| known.get(&candidate.policy.name));
            let between = if candidate.was_reverted_before {
                known.and_then(|known| known.between.clone())
            } else {
                change.clone()
            };
            holds.markers.push(HeldMarker {
                policy: candidate.policy.name.clone(),
                image: image.to_string(),
                value: shortened(&candidate.value),
                file: candidate.file.to_string(),
                line: candidate.line,
                between,
            });
        }
        let unavailable =
            |reason: &str| UnavailableCommit { commit: baseline.commit, reason: reason.to_owned() };
        holds.unavailable = reason.map(unavailable);
        self.held = Some(holds);
        let held = held_values(&found);
        Ok((!found.is_empty()).then_some(held))
    }

    /// Returns the note for the journal.
    pub(in crate::reconcile::automation) fn note(
        &self,
        images: &BTreeMap<String, tagboat_api::ImageRef>,
    ) -> Option<String> {
        self.mode.filter(|mode| *mode != OnRevert::Overwrite)?;
        let of_held = |held: BTreeMap<String, HeldPolicy>| {
            held.into_iter().map(|(policy, held)| (policy, held.image)).collect()
        };
        let held = self.held.as_ref().and_then(Holds::policies).map(of_held);
        let without_image = self.held.as_ref().map(|held| of_held(held.without_image.clone()));
        let images = images.iter().map(|(policy, image)| (policy.clone(), text(image))).collect();
        serde_json::to_string(&Note { images, held, without_image: without_image.unwrap_or_default() }).ok()
    }

    /// Returns the result of a run that succeeded, for reports.
    ///
    /// The holds of the last run are kept while values wait, because the status keeps the images of that run, and while a
    /// file cannot be parsed, because its values are not known.
    pub fn outcome(&self, keeps_holds: bool) -> RevertOutcome {
        match (self.mode, &self.held) {
            (Some(OnRevert::Overwrite), _) => RevertOutcome::Overwrite,
            (Some(_), Some(holds)) => {
                let before = self.status.held.as_ref().filter(|_| keeps_holds);
                RevertOutcome::Known(before.map_or_else(|| holds.clone(), |before| holds.with_kept(before)))
            }
            _ => RevertOutcome::Unknown,
        }
    }

    /// Returns the values that are overwritten though others set them.
    pub fn overwritten(&self) -> &[Overwritten] {
        &self.overwritten
    }

    /// Returns true if the setting has changed since the last run.
    pub fn has_changed(&self) -> bool {
        self.status.held.as_ref().is_some_and(|held| self.mode.is_some_and(|mode| mode != held.mode))
    }

    /// Returns the held policies that have no image at present.
    fn without_image(&self, namespace: &str, request: &UpdateRequest) -> BTreeMap<String, HeldPolicy> {
        let Some(record) = &self.status.held else { return BTreeMap::new() };
        let is_without = |name: &String| {
            let name = ObjectName { namespace: namespace.to_owned(), name: name.clone() };
            request.setters.selected().any(|(policy, image)| *policy == name && image.is_none())
        };
        let mut known = record.named().clone();
        if record.policies.is_none() {
            // Every policy counts as held, with the image that the last run wanted.
            for (policy, image) in &self.status.images {
                known
                    .entry(policy.clone())
                    .or_insert_with(|| HeldPolicy { image: text(image), between: None });
            }
        }
        known.retain(|name, _| is_without(name));
        known
    }
}

/// Returns the commits between which a value was changed since the last run.
fn between(from: CommitId, Baseline { tip, author, .. }: &Baseline<'_>) -> Between {
    Between { from, to: *tip, author: author() }
}

/// Returns the candidates that may be reverted, if the baseline cannot be searched.
fn unchecked(candidates: Vec<Candidate>, held: &HeldBefore) -> Vec<Candidate> {
    let may_be = |candidate: &Candidate| candidate.has_same_image || held.has(&candidate.policy);
    candidates.into_iter().filter(may_be).collect()
}

/// Returns the beginning of a long value.
fn shortened(value: &str) -> String {
    match value.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", &value[..end]),
        None => value.to_owned(),
    }
}

fn overwritten(candidate: &Candidate, since: CommitId) -> Overwritten {
    Overwritten {
        file: candidate.file.to_string(),
        line: candidate.line,
        value: shortened(&candidate.value),
        policy: candidate.policy.clone(),
        since,
    }
}

/// Prints a sentence about it and the setting that would keep it.
impl std::fmt::Display for Overwritten {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, line, value, policy, since } = self;
        write!(
            formatter,
            "{file}:{line}: the value {value:?}, which others set after commit {since}, is overwritten with the image of policy \
             {}; annotate the automation with tagboat.dev/on-revert=hold or pause before a revert to keep it",
            policy.name
        )
    }
}
