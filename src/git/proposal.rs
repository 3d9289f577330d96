//! Proposals for a branch, and their answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::baseline::ProposalTrees;
use super::branches::{
    Absence, Authorship, BranchDraft, BranchFacts, CommitPeople, DropReason, FileChange, PushDelay,
};
use super::checkout::Revision;
use super::commit::CommitDraft;
use super::commit_signer::{ForgeSigning, ForgeSigningError};
use super::error::SyncError;
use super::name::{BranchName, CommitId};
use super::outcome::{Outcome, Target};
use crate::cancel::Cancellation;
use crate::update::{Checkpoint, FileEdit, FileTree, Interrupt, MarkerIndex};

/// Proposes commits on trees.
pub trait Proposer: Send + 'static {
    /// The error of a proposer that cannot propose.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Reads the inputs of the proposal again.
    /// Time has passed since they were read, and a commit follows the latest state.
    ///
    /// # Errors
    ///
    /// Nothing can be proposed any more.
    fn refresh(&mut self) -> Result<Freshness, Self::Error> {
        Ok(Freshness::Unchanged)
    }

    /// The memory in bytes that is reserved while a proposal is made and committed.
    fn memory(&self) -> u64;

    /// Returns true if the proposer observes the revision that is checked out.
    ///
    /// If the commit is made on another one, both are fetched.
    fn observes_source(&self) -> bool {
        false
    }

    /// Observes the revision that is checked out, before a proposal is made.
    ///
    /// `tree` is its tree, unless the proposal is made on it. This is not called if the revision cannot be fetched.
    fn observe_source(
        &mut self,
        _revision: &Revision,
        _tree: Option<&dyn FileTree>,
        _index: &mut MarkerIndex,
        _checkpoint: &mut Checkpoint<'_>,
    ) {
    }

    /// Observes whether a forge signed the commit, or why it did not.
    fn observe_signing(&mut self, _result: Result<(), Arc<ForgeSigningError>>) {}

    /// Proposes a commit on top of a tree, unless it needs no change.
    ///
    /// Does no I/O except through `trees`, and is called again when others replace them. `index` saves it from reading known
    /// contents again. It calls `checkpoint` between files, and returns an error after an
    /// interrupt.
    ///
    /// # Errors
    ///
    /// No commit can be proposed; nothing is pushed for the proposer then.
    fn propose(
        &mut self,
        trees: &ProposalTrees<'_>,
        index: &mut MarkerIndex,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Option<CommitDraft>, Self::Error>;

    /// Returns true if the last proposal needs the missing tree of the baseline.
    fn lacks_baseline(&self) -> bool {
        false
    }

    /// Returns a note about the last proposal, for the baseline of the next run.
    ///
    /// It is kept until the push of the proposal is reported.
    fn note(&self) -> Option<String> {
        None
    }

    /// Returns the delay if nothing may be pushed for this proposer now.
    ///
    /// It is asked before a proposal is used, and right before each push.
    fn closed(&self) -> Option<PushDelay> {
        None
    }

    /// Returns true if the last proposal leaves out changes of files that cannot be parsed.
    fn has_unparsable(&self) -> bool {
        false
    }

    /// Returns true if the last proposal was withheld because nothing may be pushed now.
    fn is_waiting(&self) -> bool {
        false
    }

    /// Returns its own branches, if its target has some, with the facts about each.
    fn branches(&self) -> BTreeMap<BranchName, BranchFacts> {
        BTreeMap::new()
    }

    /// Returns the facts about a branch, if it is one of its own.
    fn branch(&self, branch: &BranchName) -> Option<BranchFacts> {
        self.branches().remove(branch)
    }

    /// Proposes a commit on the base for each of its own branches that needs one.
    ///
    /// # Errors
    ///
    /// No commit can be proposed; no branch is touched for the proposer then.
    fn propose_branches(
        &mut self,
        _trees: &ProposalTrees<'_>,
        _index: &mut MarkerIndex,
        _checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Vec<BranchDraft>, Self::Error> {
        Ok(Vec::new())
    }

    /// Makes the edits of a draft for a tree that others have edited.
    ///
    /// # Errors
    ///
    /// If `checkpoint` returns an error.
    fn edits_in(
        &self,
        draft: &BranchDraft,
        _tree: &dyn FileTree,
        _checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Vec<FileEdit>, Interrupt> {
        Ok(draft.commit.edits.clone())
    }

    /// Returns true if another tree has all values that a draft sets.
    ///
    /// # Errors
    ///
    /// If `checkpoint` returns an error.
    fn has_values(
        &self,
        _draft: &BranchDraft,
        _tree: &dyn FileTree,
        _checkpoint: &mut Checkpoint<'_>,
    ) -> Result<bool, Interrupt> {
        Ok(false)
    }

    /// Decides about the commit of an absent proposer on a shared branch.
    ///
    /// `proposal` is the name of its proposals.
    fn absence(&self, _branch: &BranchName, _proposal: &str) -> Absence {
        Absence::Dropped(DropReason::Gone)
    }

    /// Compares the author and the committer of a commit with those of this proposer's commits.
    fn authorship(&self, _people: CommitPeople<'_>) -> Authorship {
        Authorship::Others
    }

    /// Returns true if this proposer may change a file on a branch in this way.
    fn owns_change(&self, _branch: &BranchName, _change: FileChange<'_>) -> bool {
        false
    }
}

/// Returns the name of the object in the name of its proposals.
pub fn object_of(proposal: &str) -> &str {
    proposal.split_once(' ').map_or(proposal, |(object, _)| object)
}

/// The result of reading again what a proposal depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Nothing has changed.
    Unchanged,
    /// The commit differs from the one proposed before.
    Changed,
}

/// A proposer with the source and the target of its commit.
#[derive(Debug)]
pub struct Proposal<P> {
    /// The name of the object that the proposal is made for.
    ///
    /// It is the key of the records of earlier runs. A space and a uid may follow.
    pub name: String,
    /// The namespace of that object, which is charged for the work.
    pub namespace: String,
    /// The checkout that it starts from, and the branch that it is pushed to.
    pub target: Target,
    /// Earlier results, which may make a run unnecessary.
    pub known: Known,
    /// The forge that signs the commit.
    pub signing: Option<ForgeSigning>,
    /// Cancels it.
    pub cancellation: Cancellation,
    /// The proposer; boxed, because proposals move between queues and tasks.
    pub proposer: Box<P>,
}

/// The results of earlier runs of the same object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// True if nothing has changed on our side since the last run.
    /// If the remote is unchanged too, there is nothing to do.
    pub is_unchanged: bool,
    /// True if the last run read the files, and nothing might be pushed.
    ///
    /// Then there is nothing to do either while the remote is as that run found it.
    pub has_waited: bool,
    /// The revision at which nothing is to be done.
    pub revision: Option<String>,
    /// The revision in the object's status that the last run observed.
    pub observed: Option<String>,
    /// The last pushed commit in the object's status.
    pub pushed: Option<String>,
}

impl Known {
    /// Returns true if the status has this commit as the last one pushed.
    /// In that case, the push is reported already.
    pub(super) fn has_pushed(&self, commit: CommitId) -> bool {
        self.pushed.as_ref() == Some(&commit.to_string())
    }
}

/// The answer to a proposal.
#[derive(Debug)]
pub struct Answer<P: Proposer> {
    /// The name of the object.
    pub name: String,
    /// The proposer, as its last call left it.
    pub proposer: Box<P>,
    /// The outcome, or the failure.
    pub result: Result<Outcome, Failure<P::Error>>,
}

/// The failure of a proposal.
#[derive(Debug)]
pub enum Failure<E> {
    /// The proposer failed.
    Proposer(E),
    /// Git or the remote failed.
    Sync(Arc<SyncError>),
}

impl<E> From<SyncError> for Failure<E> {
    fn from(error: SyncError) -> Self {
        Self::Sync(Arc::new(error))
    }
}
