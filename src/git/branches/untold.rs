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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use git2::Repository;

    use super::*;
    use crate::git::branches::decision::{Decision, FoundBranch, decide};
    use crate::git::branches::model::{BranchFacts, LeftReason, Refresh};
    use crate::git::name::CommitId;
    use crate::git::push_journal::OwnTip;
    use crate::git::writer::tests::Nothing;

    fn commit(digit: char) -> CommitId {
        digit.to_string().repeat(40).parse().unwrap()
    }

    /// A branch whose wanted change is `wanted`.
    fn branch(tip: Option<CommitId>, facts: BranchFacts) -> Branch {
        Branch {
            name: "images".parse().unwrap(),
            tip,
            facts,
            refresh: Refresh::WhenNeeded,
            drafts: vec![(0, 0)],
            change: "wanted".to_owned(),
            read: None,
            has_lost_base: false,
            has_landed: false,
            decision: Decision::Nothing,
            bystanders: BTreeSet::new(),
            built: None,
        }
    }

    #[test]
    fn a_branch_whose_refused_tip_cannot_be_read_is_refused_if_it_was_deleted_under_its_pull_request() {
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(directory.path()).unwrap();
        let database = repository.odb().unwrap();
        let objects = NewObjects::new(&repository, &database).unwrap();
        let attempt = BranchAttempt::<Nothing>::new(Vec::new(), false);
        let (one, two) = (Some(commit('1')), Some(commit('2')));
        let none = BranchFacts::default();
        // The head of an open pull request, whose branch a person has deleted.
        let deleted = BranchFacts { deleted_tip: one, has_pull_request: true, ..none };
        // The head of a closed one without a last line.
        let closed = BranchFacts { refused_tip: one, ..none };
        let both = BranchFacts { refused_tip: one, ..deleted };
        for (tip, facts, pushed, expected) in [
            (None, deleted, "", true),
            (None, closed, "", false),
            (None, both, "", false),
            // The push journal has the change, so the tip need not be read.
            (None, deleted, "wanted", true),
            (None, closed, "wanted", true),
            (None, closed, "other", false),
            // The branch was made anew since.
            (two, deleted, "", false),
            (two, closed, "wanted", false),
            (None, none, "wanted", false),
        ] {
            let mut journal = PushJournal::default();
            if !pushed.is_empty() {
                let own = OwnTip {
                    tip: commit('1'),
                    base: commit('0'),
                    change: pushed.to_owned(),
                    members: [].into(),
                    verified: None,
                    commits: Vec::new(),
                };
                journal.add_own_tip(&"images".parse().unwrap(), own);
            }
            let branch = branch(tip, facts);
            let is_refused = attempt.is_refused_there(&branch, &objects, &journal, &mut |_| Ok(())).unwrap();
            assert_eq!(is_refused, expected, "{tip:?} {facts:?} {pushed}");
            let facts = BranchFacts { is_refused, ..facts };
            let decision = decide(true, &FoundBranch::Absent, None, facts);
            let left = Decision::Leave(LeftReason::Refused);
            assert_eq!(decision, if is_refused { left } else { Decision::Create });
        }
    }
}
