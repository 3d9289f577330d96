//! Branches that a person has refused without a word about their change.
//!
//! The pull request says no more which images it had, so the branch does. Of a deleted one, the push journal has the change, or the
//! server its last tip, which forges keep as the head of the pull request.

use super::attempt::BranchAttempt;
use super::branch::Branch;
use crate::git::attempt::context::AttemptContext;
use crate::git::commit_error::CommitError;
use crate::git::error::SyncError;
use crate::git::object;
use crate::git::pack::NewObjects;
use crate::git::proposal::Proposer;
use crate::git::push_journal::PushJournal;
use crate::git::tree::GitTree;
use crate::update::Checkpoint;

/// The maximum number of deleted branches whose refused tips are fetched for one attempt.
const MAX_DELETED: usize = 25;

impl Branch {
    /// Returns true if a person has refused the wanted change, by the push journal.
    fn is_refused_change(&self, journal: &PushJournal) -> bool {
        let own = self.refused_tip().and_then(|tip| journal.own_tip(&self.name, tip));
        own.is_some_and(|own| own.change == self.change)
    }
}

impl<P: Proposer> BranchAttempt<P> {
    /// Fetches the refused tips of deleted branches, unless the journal has the wanted change.
    ///
    /// A server that does not serve one leaves it unknown what was refused.
    ///
    /// # Errors
    ///
    /// If the server does not answer.
    pub(super) fn fetch_deleted(
        &self,
        branches: &[Branch],
        context: &AttemptContext<'_>,
        journal: &PushJournal,
    ) -> Result<(), SyncError> {
        let deleted = branches.iter().filter(|branch| branch.tip.is_none());
        let unknown = deleted.filter(|branch| !branch.is_refused_change(journal));
        let tips = unknown.filter_map(Branch::refused_tip).filter(|tip| !context.mirror.has(*tip));
        for tip in tips.take(MAX_DELETED) {
            context.is_at_server(tip)?;
        }
        Ok(())
    }

    /// Returns true if a person has refused all wanted values of a branch.
    ///
    /// The refused tip is the present one or that of a deleted branch, and has them. One that lacks a file or a marker of them does not.
    pub(super) fn is_refused_there(
        &self,
        branch: &Branch,
        objects: &NewObjects<'_>,
        journal: &PushJournal,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<bool, SyncError> {
        let Some(tip) = branch.refused_tip() else { return Ok(false) };
        if branch.is_refused_change(journal) {
            return Ok(true);
        }
        if !object::has_commit(objects.repository(), tip) {
            // A branch that was deleted under its open pull request is refused, unless its tip shows another change.
            return Ok(branch.facts.refused_tip.is_none());
        }
        let root = object::find_commit(objects.repository(), tip)?.tree_id();
        let tree = GitTree::of_tree(objects.repository(), root)?;
        for (index, number) in &branch.drafts {
            let state = &self.states[*index];
            let has_values = state.proposal.proposer.has_values(&state.drafts[*number], &tree, checkpoint);
            if !has_values.map_err(CommitError::from)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
