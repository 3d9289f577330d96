//! A branch in one attempt.

use std::collections::BTreeSet;

use super::beyond::ReadBranch;
use super::decision::Decision;
use super::model::{BranchFacts, Refresh};
use crate::git::name::{BranchName, CommitId};
use crate::git::push_journal::PushJournal;

/// A branch and its drafts in one attempt.
pub(super) struct Branch {
    pub(super) name: BranchName,
    /// The tip in the listing.
    pub(super) tip: Option<CommitId>,
    pub(super) facts: BranchFacts,
    pub(super) refresh: Refresh,
    /// The drafts, by the indices of the proposal and of its draft.
    pub(super) drafts: Vec<(usize, usize)>,
    /// The hash of the edits of all drafts.
    pub(super) change: String,
    /// The commits beyond the base, where the journal does not know the tip.
    pub(super) read: Option<ReadBranch>,
    /// True if the base has lost the commit on which the branch was made.
    pub(super) has_lost_base: bool,
    /// True if nothing is wanted, and the base has or may have its change.
    pub(super) has_landed: bool,
    pub(super) decision: Decision,
    /// The proposals with neither a change for it nor a commit on it, by index.
    pub(super) bystanders: BTreeSet<usize>,
    /// The commits that were made.
    pub(super) built: Option<Built>,
}

/// The commits that were made for a branch.
pub(super) struct Built {
    pub(super) tip: CommitId,
    /// The commit of each proposal, the lowest first.
    pub(super) commits: Vec<BuiltCommit>,
}

/// A commit that was made for a branch.
#[derive(Clone, Copy)]
pub(super) struct BuiltCommit {
    /// The index of the proposal.
    pub(super) proposal: usize,
    /// The index of the draft in the proposal.
    pub(super) draft: usize,
    /// The commit.
    pub(super) id: CommitId,
    /// True if a forge signed it.
    pub(super) is_signed_by_forge: bool,
    /// True if the branch has it already.
    ///
    /// A commit that is made anew in the same second is the same.
    pub(super) is_there: bool,
}

impl Branch {
    /// Finds out which of the commits that were made are on the branch already.
    pub(super) fn find_known_commits(&mut self, journal: &PushJournal) {
        let own = self.tip.and_then(|tip| journal.own_tip(&self.name, tip));
        for commit in self.built.iter_mut().flat_map(|built| &mut built.commits) {
            commit.is_there = own.is_some_and(|own| own.commits.contains(&commit.id));
        }
    }

    /// Returns the tip if a person has refused the wanted branch with it.
    ///
    /// The branch still has it, or was deleted.
    pub(super) fn refused_tip(&self) -> Option<CommitId> {
        let is_last = |tip: &CommitId| self.tip.is_none_or(|now| now == *tip);
        let deleted = self.facts.deleted_tip.filter(|_| self.tip.is_none());
        self.facts.refused_tip.or(deleted).filter(|tip| is_last(tip) && !self.drafts.is_empty())
    }

    /// Returns true if nothing is wanted of it, and no forge tells its end.
    pub(super) fn may_be_stale(&self) -> bool {
        self.drafts.is_empty() && self.facts.is_deleted_if_stale
    }
}
