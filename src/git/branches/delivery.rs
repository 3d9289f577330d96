//! Pushes the branches of an attempt, and gives each proposal its answer.

use std::collections::{BTreeMap, BTreeSet};

use super::attempt::BranchAttempt;
use super::branch::{Branch, Built, BuiltCommit};
use super::decision::Decision;
use super::model::BranchAction;
use super::pushes::{PushResult, push_all};
use super::state::BranchState;
use crate::git::attempt::context::AttemptContext;
use crate::git::attempts::AttemptOutcome;
use crate::git::error::SyncError;
use crate::git::mirror::Mirror;
use crate::git::name::{BranchName, CommitId};
use crate::git::outcome::excerpt;
use crate::git::proposal::Proposer;
use crate::git::push::{PushRequest, PushUpdate};
use crate::git::push_journal::{OwnTip, PendingBranch, PendingPush, PushJournal};

impl<P: Proposer> BranchAttempt<P> {
    /// Pushes the branches that were made, or are deleted, and gives the answers.
    ///
    /// If branches in `later` are to follow, there are no answers yet.
    pub(super) fn push(
        &mut self,
        branches: &[Branch],
        later: &BTreeSet<BranchName>,
        (context, base): (&AttemptContext<'_>, CommitId),
        journal: &mut PushJournal,
    ) -> Result<(), AttemptOutcome> {
        if self.is_dry_run {
            self.open().for_each(BranchState::settle_dry_run);
            return Ok(());
        }
        let mut request = PushRequest { is_on_listed: true, ..PushRequest::default() };
        if let Some(state) = self.open().next() {
            request.options.clone_from(&state.proposal.target.options);
        }
        for branch in branches {
            let (reference, old) = (branch.name.reference(), branch.tip);
            match (&branch.built, &branch.decision) {
                (Some(Built { tip, .. }), _) if Some(*tip) != old => {
                    request.updates.push(PushUpdate { reference, new: Some(*tip), old });
                }
                (None, Decision::Delete) => request.updates.push(PushUpdate { reference, new: None, old }),
                _ => {}
            }
        }
        let mut results = BTreeMap::new();
        if !request.updates.is_empty() {
            context.remote.confirm(context.mirror).map_err(SyncError::from)?;
            self.record_pending(branches, base, journal);
            store(journal, context.mirror)?;
            // What a forge signed is pushed again if the result stays unknown.
            context.mirror.keep(&journal.retained_with(base)).map_err(SyncError::from)?;
            if context.mirror.is_cancelled() {
                return Err(AttemptOutcome::Repaired);
            }
            let is_pushed = |branch: &&Branch| {
                request.updates.iter().any(|update| update.reference == branch.name.reference())
            };
            if branches.iter().filter(is_pushed).any(|branch| self.is_held(branch)) {
                // The next attempt leaves these branches alone.
                for branch in branches.iter().filter(is_pushed) {
                    self.take_result(branch, Some(&PushResult::Stale), journal);
                }
                for state in self.states.iter().filter(|state| state.is_open()) {
                    let pending = journal.pending_branches.get_mut(&state.proposal.name);
                    pending.into_iter().for_each(|pending| {
                        pending.retain(|push| request.commit_for(&push.reference) != Some(push.new));
                    });
                }
                store(journal, context.mirror)?;
                return Err(AttemptOutcome::Repaired);
            }
            let may_begin = || !branches.iter().filter(is_pushed).any(|branch| self.is_held(branch));
            results = push_all(context, &request, &may_begin)?;
        }
        for branch in branches {
            self.take_result(branch, results.get(&branch.name.reference()), journal);
        }
        if results.values().any(|result| *result == PushResult::Stale) {
            // Branches that were pushed are found again by the next attempt.
            store(journal, context.mirror)?;
            return Err(AttemptOutcome::LostRace);
        }
        if !later.is_empty() {
            store(journal, context.mirror)?;
            self.keep_failures();
            return Err(AttemptOutcome::Repaired);
        }
        let tips: BTreeMap<&BranchName, Option<CommitId>> = branches
            .iter()
            .map(|branch| {
                let is_done = results.get(&branch.name.reference()) == Some(&PushResult::Done);
                let new = branch.built.as_ref().map(|built| built.tip);
                (&branch.name, if is_done { new } else { branch.tip })
            })
            .collect();
        for state in self.states.iter_mut().filter(|state| state.is_open()) {
            let pending = journal.pending_branches.remove(&state.proposal.name).unwrap_or_default();
            let is_unreported = |push: &PendingBranch| {
                let result = results.get(&push.reference);
                state.arrived.contains(push)
                    || result.is_some_and(|result| !matches!(result, PushResult::Refused(_)))
            };
            let mut pending: Vec<PendingBranch> =
                pending.into_iter().filter(|push| is_unreported(push)).collect();
            state.note_report(&mut pending);
            if !pending.is_empty() {
                journal.pending_branches.insert(state.proposal.name.clone(), pending);
            }
            state.settle(|branch| tips.get(branch).copied().flatten(), journal);
        }
        let used = branches.iter().map(|branch| branch.name.reference()).collect();
        journal.forget_unused_tips(&used);
        store(journal, context.mirror)?;
        context.mirror.keep(&journal.retained_with(base)).map_err(SyncError::from)?;
        Ok(())
    }

    /// Records the pushes in the journal before they are made.
    fn record_pending(&self, branches: &[Branch], base: CommitId, journal: &mut PushJournal) {
        for branch in branches {
            let Some(Built { tip, commits }) = &branch.built else { continue };
            let (change, members) = (branch.change.clone(), self.members(branch));
            let ids = commits.iter().map(|commit| commit.id).collect();
            let own = OwnTip { tip: *tip, base, change, members, verified: None, commits: ids };
            journal.add_own_tip(&branch.name, own);
            for BuiltCommit { proposal, draft, id, is_signed_by_forge, is_there } in commits {
                let state = &self.states[*proposal];
                let draft = &state.drafts[*draft].commit;
                let reference = branch.name.reference();
                let message = String::from_utf8_lossy(&draft.message);
                let limit = PendingPush::MAX_MESSAGE.min(state.message_limit);
                let pushes = journal.pending_branches.entry(state.proposal.name.clone()).or_default();
                let is_of_branch = |push: &PendingBranch| push.reference == reference;
                let is_unreported = pushes.iter().any(|push| is_of_branch(push) && push.commit == *id);
                // A new push of a branch replaces the report of an earlier one.
                pushes.retain(|push| !is_of_branch(push));
                if *is_there && !is_unreported {
                    continue;
                }
                pushes.push(PendingBranch {
                    reference,
                    old: branch.tip,
                    new: *tip,
                    commit: *id,
                    message: excerpt(&message, limit),
                    time: draft.time,
                    is_signed_by_forge: *is_signed_by_forge,
                    reported_with: None,
                });
            }
        }
    }

    /// Keeps the failures of branches, which the next attempt of the transaction does not repeat.
    fn keep_failures(&mut self) {
        for outcome in self.states.iter().flat_map(|state| state.outcomes.values()) {
            if let BranchAction::Failed { message, .. } = &outcome.action {
                self.failed.insert(outcome.branch.clone(), message.clone());
            }
        }
    }

    /// Sets the outcomes of a branch after a push.
    fn take_result(&mut self, branch: &Branch, result: Option<&PushResult>, journal: &mut PushJournal) {
        let (name, reference) = (&branch.name, branch.name.reference());
        let new = branch.built.as_ref().map(|built| built.tip);
        match result {
            None | Some(PushResult::Unknown(_)) => {}
            Some(PushResult::Done) => match new {
                Some(new) => {
                    if let Some(tips) = journal.own_tips.get_mut(&reference) {
                        tips.retain(|own| own.tip == new);
                    }
                }
                None => {
                    journal.own_tips.remove(&reference);
                    self.deleted.insert(name.clone());
                }
            },
            Some(PushResult::Stale | PushResult::Refused(_)) => {
                if let Some(tips) = journal.own_tips.get_mut(&reference) {
                    tips.retain(|own| Some(own.tip) != new);
                }
            }
        }
        for (index, state) in self.states.iter_mut().enumerate().filter(|(_, state)| state.is_open()) {
            let Some(outcome) = state.outcomes.get_mut(name) else { continue };
            match result {
                Some(PushResult::Done) => {
                    outcome.tip = new;
                    let commits = branch.built.iter().flat_map(|built| &built.commits);
                    // One that was there is reported only if an earlier run has not done so.
                    let is_new = |commit: &&BuiltCommit| commit.proposal == index && !commit.is_there;
                    if let Some(commit) = commits.into_iter().find(is_new) {
                        let message = String::from_utf8_lossy(&state.drafts[commit.draft].commit.message);
                        outcome.commit = Some(commit.id);
                        outcome.message = excerpt(&message, state.message_limit);
                    }
                }
                Some(PushResult::Refused(message) | PushResult::Unknown(message)) => {
                    outcome.action =
                        BranchAction::Failed { message: message.clone(), is_deletion: new.is_none() };
                    outcome.dropped.clear();
                }
                Some(PushResult::Stale) | None => {}
            }
        }
    }
}

fn store(journal: &PushJournal, mirror: &Mirror) -> Result<(), SyncError> {
    journal.store(&mirror.folder).map_err(SyncError::PushJournal)
}
