//! Branches that a person has refused without a word about their change.
//!
//! The pull request says no more which images it had, so the branch does.

use super::attempt::{Branch, BranchAttempt};
use crate::git::commit_error::CommitError;
use crate::git::error::SyncError;
use crate::git::object;
use crate::git::pack::NewObjects;
use crate::git::proposal::Proposer;
use crate::git::tree::GitTree;
use crate::update::Checkpoint;

impl<P: Proposer> BranchAttempt<P> {
    /// Returns true if a person has refused all wanted values of a branch.
    ///
    /// The refused tip is the present one, and has them. One that lacks a file or a marker of them does not.
    pub(super) fn is_refused_there(
        &self,
        branch: &Branch,
        objects: &NewObjects<'_>,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<bool, SyncError> {
        let Some(tip) = branch.refused_tip() else { return Ok(false) };
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
