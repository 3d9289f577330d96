//! Proposals with a part in a branch, and commits of those without one.

use std::collections::BTreeSet;

use git2::Repository;

use super::attempt::BranchAttempt;
use super::beyond::{Beyond, ReadBranch};
use super::branch::Branch;
use super::decision::Decision;
use super::model::{Absence, DropReason, DroppedCommit, LeftReason};
use super::ownership::has_own_commit;
use super::state::BranchState;
use crate::git::error::SyncError;
use crate::git::proposal::{Proposal, Proposer, object_of};
use crate::git::push_journal::PushJournal;

impl<P: Proposer> BranchAttempt<P> {
    /// Decides about the commit of a proposer without a part in the transaction.
    pub(super) fn absence(&self, branch: &Branch, proposal: &str) -> Absence {
        let mut dropped = Absence::Dropped(DropReason::Gone);
        for owner in self.owners(&branch.name) {
            match owner.absence(&branch.name, proposal) {
                awaited @ Absence::Awaited(_) => return awaited,
                other => dropped = other,
            }
        }
        dropped
    }

    /// Returns the names of the proposals with a part in a branch.
    ///
    /// One that does not render the branch now has none, as one that is not in the transaction.
    pub(super) fn participants(&self, branch: &Branch) -> BTreeSet<&str> {
        let has_part = |state: &&BranchState<P>| {
            let facts = state.proposal.proposer.branch(&branch.name);
            facts.is_some_and(|facts| branch.drafts.is_empty() || !facts.is_abandoned)
        };
        let open = self.states.iter().filter(|state| state.is_open());
        open.filter(has_part).map(|state| state.proposal.name.as_str()).collect()
    }

    /// Returns the name of a proposer whose commit would be lost with a branch.
    ///
    /// The proposer renders the branch no more, but may do so again. Without the journal, its commit is one that makes only
    /// changes of its own.
    pub(super) fn awaited(
        &self,
        branch: &Branch,
        beyond: &Beyond,
        repository: &Repository,
    ) -> Result<Option<String>, SyncError> {
        let participants = self.participants(branch);
        for state in self.states.iter().filter(|state| state.is_open()) {
            let Proposal { name, proposer, .. } = &state.proposal;
            if participants.contains(name.as_str()) || proposer.branch(&branch.name).is_none() {
                continue;
            }
            if let Absence::Awaited(name) = self.absence(branch, name)
                && has_own_commit(repository, beyond, &|change| proposer.owns_change(&branch.name, change))?
            {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Returns true if each proposer with a commit on it permits the end.
    pub(super) fn may_delete(&self, branch: &Branch, journal: &PushJournal) -> bool {
        let own = branch.tip.and_then(|tip| journal.own_tip(&branch.name, tip));
        // Without the journal, the commits were found to be those of the present proposers.
        let Some(own) = own.filter(|_| !branch.facts.is_finished) else { return true };
        let open = self.states.iter().filter(|state| state.is_open());
        let permits = |state: &&BranchState<P>| {
            let facts = state.proposal.proposer.branch(&branch.name);
            facts.is_some_and(|facts| facts.is_deleted_if_stale)
        };
        let names: BTreeSet<&str> =
            open.filter(permits).map(|state| object_of(&state.proposal.name)).collect();
        own.members.keys().all(|member| names.contains(object_of(member)))
    }

    /// Returns the indices of proposals without a change for a branch or a commit on it.
    ///
    /// They are looked for only if the branch is left alone for a commit.
    pub(super) fn bystanders(
        &self,
        branch: &Branch,
        repository: &Repository,
        journal: &PushJournal,
    ) -> Result<BTreeSet<usize>, SyncError> {
        let mut bystanders = BTreeSet::new();
        let Decision::Leave(LeftReason::SharedWith { .. } | LeftReason::EditedByOthers { .. }) =
            branch.decision
        else {
            return Ok(bystanders);
        };
        for (index, state) in self.states.iter().enumerate().filter(|(_, state)| state.is_open()) {
            let has_change = branch.drafts.iter().any(|(of, _)| *of == index);
            if !has_change && !self.has_commit(branch, state, repository, journal)? {
                bystanders.insert(index);
            }
        }
        Ok(bystanders)
    }

    /// Returns true if a proposal has a commit on a branch.
    ///
    /// Without the journal, that is one which makes only changes of its own. If they cannot be read, it may have one.
    fn has_commit(
        &self,
        branch: &Branch,
        state: &BranchState<P>,
        repository: &Repository,
        journal: &PushJournal,
    ) -> Result<bool, SyncError> {
        let Proposal { name, proposer, .. } = &state.proposal;
        if let Some(own) = branch.tip.and_then(|tip| journal.own_tip(&branch.name, tip)) {
            return Ok(own.members.contains_key(name));
        }
        match &branch.read {
            Some(ReadBranch::Beyond(beyond)) => {
                has_own_commit(repository, beyond, &|change| proposer.owns_change(&branch.name, change))
            }
            _ => Ok(true),
        }
    }

    /// Adds the commits that a branch loses to those of earlier attempts.
    pub(super) fn add_dropped(&mut self, branch: &Branch, journal: &PushJournal) {
        let more = self.dropped(branch, journal);
        let dropped = self.dropped.entry(branch.name.clone()).or_default();
        dropped.retain(|before| more.iter().all(|now| now.name != before.name));
        dropped.extend(more);
    }

    /// Returns the commits that a branch loses if it is made anew or deleted.
    fn dropped(&self, branch: &Branch, journal: &PushJournal) -> Vec<DroppedCommit> {
        let Some(own) = branch.tip.and_then(|tip| journal.own_tip(&branch.name, tip)) else {
            return Vec::new();
        };
        let participants = self.participants(branch);
        let absent = own.members.keys().filter(|name| !participants.contains(name.as_str()));
        let dropped = absent.map(|name| DroppedCommit {
            name: object_of(name).to_owned(),
            reason: match self.absence(branch, name) {
                Absence::Dropped(reason) => reason,
                // Only a person can have it dropped all the same.
                Absence::Awaited(_) => DropReason::HandedBack,
            },
        });
        dropped.collect()
    }

    /// Returns the decision on a branch if files of the base cannot be parsed.
    pub(super) fn of_unparsable(
        &self,
        branch: &Branch,
        repository: &Repository,
        journal: &PushJournal,
    ) -> Result<Decision, SyncError> {
        let mut decision = branch.decision.clone();
        for (index, state) in self.states.iter().enumerate().filter(|(_, state)| state.is_open()) {
            let proposal = &state.proposal;
            if !proposal.proposer.has_unparsable() {
                continue;
            }
            // The end of an abandoned branch does not depend on the base.
            let facts = proposal.proposer.branch(&branch.name);
            if facts.is_none_or(|facts| facts.is_abandoned) {
                continue;
            }
            decision = decision.of_unparsable_base();
            let has_change = branch.drafts.iter().any(|(of, _)| *of == index);
            let is_made_anew = decision == Decision::Rebuild;
            if is_made_anew && !has_change && self.has_commit(branch, state, repository, journal)? {
                decision = decision.of_unparsable_commit(object_of(&proposal.name));
            }
        }
        Ok(decision)
    }
}
