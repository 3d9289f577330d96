//! The decisions on branches, and the commits of those that are pushed.

use std::collections::BTreeMap;

use super::attempt::BranchAttempt;
use super::branch::{Branch, Built, BuiltCommit};
use super::decision::{Decision, decide};
use super::model::{BranchAction, BranchDraft, BranchOutcome, LeftReason};
use super::stack::stack;
use crate::error::chain;
use crate::git::attempt::context::AttemptContext;
use crate::git::attempt::deadline::PlanDeadline;
use crate::git::commit::write_commit_of;
use crate::git::commit_error::CommitError;
use crate::git::error::SyncError;
use crate::git::name::{BranchName, CommitId};
use crate::git::object;
use crate::git::pack::NewObjects;
use crate::git::proposal::{Proposer, object_of};
use crate::git::push_journal::PushJournal;
use crate::update::{Checkpoint, FileEdit, FileTree, Interrupt};

impl<P: Proposer> BranchAttempt<P> {
    /// Decides on each branch, and makes the commits of those that are pushed.
    pub(super) fn decide_and_commit(
        &mut self,
        branches: &mut [Branch],
        context: &AttemptContext<'_>,
        base: CommitId,
        journal: &mut PushJournal,
    ) -> Result<(), SyncError> {
        let memory = self.open().map(|state| state.proposal.proposer.memory()).max().unwrap_or_default();
        let _permit = context.mirror.enter_pool(memory)?;
        let repository = &context.mirror.repository;
        let database = repository.odb()?;
        let has_room = || context.remote.has_room(context.mirror);
        let mut objects = NewObjects::new(repository, &database)?.limited_by(&has_room);
        let mut failures: BTreeMap<BranchName, String> = BTreeMap::new();
        for branch in &mut *branches {
            let mut deadline = PlanDeadline::new(context.mirror, context.remote.timeout);
            let found = self.find(branch, &mut objects, base, journal, &mut |_| deadline.check());
            let found = match found {
                Ok(found) => found,
                Err(error) => return Err(deadline.into_cancelled().unwrap_or(error)),
            };
            if self.is_refused_there(branch, &objects, journal, &mut |_| deadline.check())? {
                branch.facts.is_refused = true;
            }
            branch.decision = decide(!branch.drafts.is_empty(), &found, branch.tip, branch.facts);
            if branch.decision == Decision::Delete && !self.may_delete(branch, journal) {
                branch.decision = Decision::Leave(LeftReason::NothingLeft);
            }
            branch.decision = self.of_unparsable(branch, repository, journal)?;
            branch.bystanders = self.bystanders(branch, repository, journal)?;
            if matches!(branch.decision, Decision::Rebuild | Decision::Delete) {
                self.add_dropped(branch, journal);
            }
            let is_push = match branch.decision {
                Decision::Create | Decision::Rebuild | Decision::Delete => true,
                // The forge will permit a push, and the wait counts from now on.
                Decision::Leave(LeftReason::AwaitingForge) => !branch.drafts.is_empty(),
                _ => false,
            };
            if is_push {
                let closed: Vec<_> = self.closed(branch).collect();
                if !closed.is_empty() {
                    branch.decision = Decision::Leave(LeftReason::Waiting { closed });
                }
            }
            if let Some(failure) = self.failed.get(&branch.name) {
                failures.insert(branch.name.clone(), failure.clone());
                continue;
            }
            if self.is_dry_run || !matches!(branch.decision, Decision::Create | Decision::Rebuild) {
                continue;
            }
            self.set_times(branch, journal);
            let mut deadline = PlanDeadline::new(context.mirror, context.remote.timeout);
            objects.begin_commit();
            match self.build(branch, &mut objects, base, &mut |_| deadline.check()) {
                Ok(built) => branch.built = Some(built),
                Err(error) => match deadline.into_cancelled().or_else(|| context.too_large(&error)) {
                    Some(shared) => return Err(shared),
                    None if error.is_of_proposal() => {
                        objects.discard_commit();
                        failures.insert(branch.name.clone(), chain(&SyncError::from(error)));
                    }
                    None => return Err(error.into()),
                },
            }
        }
        if branches.iter().any(|branch| branch.built.is_some()) {
            let mut deadline = PlanDeadline::new(context.mirror, context.remote.timeout);
            match objects.finish(&mut |_| deadline.check()) {
                Ok(packs) => self.packs = packs,
                Err(error) => {
                    let shared = deadline.into_cancelled().or_else(|| context.too_large(&error));
                    return Err(shared.unwrap_or_else(|| error.into()));
                }
            }
        }
        for branch in &*branches {
            self.set_outcomes(branch, failures.get(&branch.name));
        }
        Ok(())
    }

    /// Makes the edits of a draft for a tree with other commits of its branch.
    pub(super) fn edits_in(
        &self,
        draft: &BranchDraft,
        branch: &Branch,
        tree: &dyn FileTree,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Vec<FileEdit>, Interrupt> {
        let owner = branch.drafts.iter().find(|(index, number)| {
            std::ptr::eq(&raw const self.states[*index].drafts[*number], std::ptr::from_ref(draft))
        });
        match owner {
            Some((index, _)) => self.states[*index].proposal.proposer.edits_in(draft, tree, checkpoint),
            None => Ok(Vec::new()),
        }
    }

    /// Gives drafts the times of pushes that may still arrive.
    ///
    /// The same change at the same time is the same commit, so nothing is lost if both arrive.
    fn set_times(&mut self, branch: &Branch, journal: &PushJournal) {
        let reference = branch.name.reference();
        for (index, number) in &branch.drafts {
            let state = &mut self.states[*index];
            let pending = journal.pending_branches.get(&state.proposal.name).map(Vec::as_slice);
            let pending = pending
                .unwrap_or_default()
                .iter()
                .rfind(|pending| (&pending.reference, pending.old) == (&reference, branch.tip));
            let commit = &mut state.drafts[*number].commit;
            if let Some(pending) = pending
                && commit.signer.as_ref().is_none_or(|signer| signer.existed_at(pending.time))
            {
                commit.time = pending.time;
            }
        }
    }

    /// Makes the commits of a branch on the base.
    fn build(
        &self,
        branch: &Branch,
        objects: &mut NewObjects<'_>,
        base: CommitId,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Built, CommitError> {
        let drafts = self.drafts(branch);
        let mut tree = object::find_commit(objects.repository(), base)?.tree_id();
        let edits_in = |draft: &BranchDraft, tree: &dyn FileTree, checkpoint: &mut Checkpoint<'_>| {
            self.edits_in(draft, branch, tree, checkpoint)
        };
        let trees = stack(objects, tree, &drafts, &edits_in, checkpoint)?;
        let mut built = Built { tip: base, commits: Vec::new() };
        for ((draft, (index, number)), next) in drafts.iter().zip(&branch.drafts).zip(trees) {
            if next != tree {
                built.tip = write_commit_of(objects, next, built.tip, &draft.commit, checkpoint)?;
                let (proposal, draft) = (*index, *number);
                let (id, is_signed_by_forge, is_there) = (built.tip, false, false);
                built.commits.push(BuiltCommit { proposal, draft, id, is_signed_by_forge, is_there });
            }
            tree = next;
        }
        Ok(built)
    }

    /// Sets the outcomes of a branch before a push.
    fn set_outcomes(&mut self, branch: &Branch, failure: Option<&String>) {
        let is_deleted = self.deleted.contains(&branch.name);
        let action = |decision: Decision| match (decision, failure) {
            (decision, Some(message)) => {
                let is_deletion = decision == Decision::Delete;
                Some(BranchAction::Failed { message: message.clone(), is_deletion })
            }
            (Decision::Nothing, None) => is_deleted.then_some(BranchAction::Deleted),
            (Decision::Create, None) => Some(BranchAction::Created),
            (Decision::Rebuild, None) => Some(BranchAction::Rebuilt),
            (Decision::Keep, None) => Some(BranchAction::Kept),
            (Decision::Leave(reason), None) => Some(BranchAction::Left(reason)),
            (Decision::Delete, None) => Some(BranchAction::Deleted),
        };
        let reference = branch.name.reference();
        let dropped = self.dropped.get(&branch.name).cloned().unwrap_or_default();
        for (index, state) in self.states.iter_mut().enumerate().filter(|(_, state)| state.is_open()) {
            let Some(facts) = state.proposal.proposer.branch(&branch.name) else { continue };
            let decision = match branch.bystanders.contains(&index) {
                true => branch.decision.clone().of_bystander(facts),
                false if facts.is_abandoned => {
                    branch.decision.clone().of_abandoning(object_of(&state.proposal.name))
                }
                false => branch.decision.clone(),
            };
            let Some(action) = action(decision) else { continue };
            let mut outcome = BranchOutcome {
                branch: branch.name.clone(),
                action,
                tip: branch.tip,
                commit: None,
                message: String::new(),
                dropped: Vec::new(),
            };
            // A push of an earlier run is reported by this one.
            if let Some(push) = state.arrived.iter().find(|push| push.reference == reference) {
                (outcome.commit, outcome.message) = (Some(push.commit), push.message.clone());
                if outcome.action == BranchAction::Kept {
                    outcome.action =
                        if push.old.is_none() { BranchAction::Created } else { BranchAction::Rebuilt };
                }
            }
            if matches!(outcome.action, BranchAction::Rebuilt | BranchAction::Deleted) {
                outcome.dropped.clone_from(&dropped);
            }
            state.outcomes.insert(branch.name.clone(), outcome);
        }
    }
}
