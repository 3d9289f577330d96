//! The state of one proposal in an attempt.

use std::collections::BTreeMap;

use super::model::{BranchAction, BranchDraft, BranchOutcome, LeftReason};
use crate::git::attempt::context::AttemptContext;
use crate::git::attempt::deadline::PlanDeadline;
use crate::git::baseline::{BaselineCommit, BaselineFetch};
use crate::git::checkout::Revision;
use crate::git::error::SyncError;
use crate::git::name::{BranchName, CommitId};
use crate::git::outcome::Outcome;
use crate::git::proposal::{Answer, Failure, Freshness, Proposal, Proposer};
use crate::git::push_journal::{LastSeen, PendingBranch, PushJournal};
use crate::git::source;
use crate::git::tree::GitTree;
use crate::update::MarkerIndex;

/// One proposal and its state in an attempt.
pub(super) struct BranchState<P: Proposer> {
    pub(super) proposal: Proposal<P>,
    /// The maximum length of the messages that its outcome keeps, in bytes.
    pub(super) message_limit: usize,
    /// The revision of the base.
    pub(super) base: Option<Revision>,
    /// The object of the base: the commit.
    pub(super) object: Option<CommitId>,
    /// Pushes of earlier runs or attempts that did reach the remote.
    pub(super) arrived: Vec<PendingBranch>,
    /// The baseline.
    baseline: BaselineFetch,
    /// The drafts of this attempt.
    pub(super) drafts: Vec<BranchDraft>,
    /// The last commits that a forge signed, as git stores them.
    pub(super) signed: BTreeMap<BranchName, Vec<u8>>,
    /// The results of this attempt.
    pub(super) outcomes: BTreeMap<BranchName, BranchOutcome>,
    pub(super) result: Option<Result<Outcome, Failure<P::Error>>>,
}

impl<P: Proposer> BranchState<P> {
    pub(super) fn new(proposal: Proposal<P>, message_limit: usize) -> Self {
        Self {
            proposal,
            message_limit,
            base: None,
            object: None,
            arrived: Vec::new(),
            baseline: BaselineFetch::default(),
            drafts: Vec::new(),
            signed: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            result: None,
        }
    }

    /// Returns true while it has no answer.
    pub(super) fn is_open(&self) -> bool {
        self.result.is_none()
    }

    /// Returns true if the proposal may still be cancelled.
    pub(super) fn may_be_cancelled(&self) -> bool {
        match &self.result {
            Some(Err(Failure::Sync(error))) => !matches!(**error, SyncError::Cancelled),
            Some(Ok(Outcome::Branches { branches, .. })) => branches.iter().all(|one| one.commit.is_none()),
            _ => true,
        }
    }

    /// Cancels it if it was cancelled, and has no outcome that must be reported.
    pub(super) fn end_if_cancelled(&mut self) {
        if self.proposal.cancellation.is_cancelled() && self.may_be_cancelled() {
            self.result = Some(Err(SyncError::Cancelled.into()));
        }
    }

    pub(super) fn into_answer(self) -> Answer<P> {
        let result = self.result.expect("an attempt that is done has settled every proposal");
        Answer { name: self.proposal.name, proposer: self.proposal.proposer, result }
    }

    /// Lets the proposer read the inputs of the proposal again.
    pub(super) fn refresh(&mut self) {
        match self.proposal.proposer.refresh() {
            Ok(Freshness::Unchanged) => {}
            Ok(Freshness::Changed) => self.proposal.known.is_unchanged = false,
            Err(error) => self.result = Some(Err(Failure::Proposer(error))),
        }
    }

    /// Finds the base; if there is none, this proposal alone fails.
    pub(super) fn choose_base(&mut self, context: &AttemptContext<'_>) -> Result<(), SyncError> {
        (self.arrived, self.drafts, self.outcomes) = (Vec::new(), Vec::new(), BTreeMap::new());
        let checkout = &self.proposal.target.checkout;
        match source::choose(checkout, &context.listing, context.mirror, context.remote, context.deadline) {
            Ok(source) => (self.base, self.object) = (Some(source.revision), Some(source.object)),
            Err(error) if error.is_of_checkout() => self.result = Some(Err(error.into())),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Searches the remote for pushes of earlier runs whose result is unknown.
    ///
    /// # Errors
    ///
    /// If the remote or the mirror fails.
    pub(super) fn recover_pushes(
        &mut self,
        context: &AttemptContext<'_>,
        journal: &mut PushJournal,
    ) -> Result<(), SyncError> {
        let Proposal { name, known, .. } = &self.proposal;
        let Some(pending) = journal.pending_branches.remove(name) else { return Ok(()) };
        let mut open = Vec::new();
        let is_unreported =
            |push: &PendingBranch| !push.reported_with.is_some_and(|commit| known.has_pushed(commit));
        for push in pending.into_iter().filter(is_unreported) {
            let tip = context.listing.commit(&push.reference);
            if tip == Some(push.new) || context.has_arrived((push.new, push.old), tip)? {
                self.arrived.push(push);
            } else if tip == push.old {
                // It has not arrived yet, but it may: the server may be working on it.
                open.push(push);
            }
        }
        let unreported: Vec<_> = self.arrived.iter().cloned().chain(open).collect();
        if !unreported.is_empty() {
            journal.pending_branches.insert(name.clone(), unreported);
        }
        Ok(())
    }

    /// Returns true if nothing has changed, neither in the inputs nor at the remote.
    pub(super) fn is_unchanged(&self, context: &AttemptContext<'_>, journal: &PushJournal) -> bool {
        let Proposal { name, known, .. } = &self.proposal;
        let is_like_before = || {
            let Some(now) = self.seen(|branch| context.listing.commit(&branch.reference())) else {
                return false;
            };
            journal.seen.get(name).is_some_and(|before| now.is_like(before))
                || (known.has_waited && journal.has_waited_in(name, &now))
        };
        known.is_unchanged && !journal.pending_branches.contains_key(name) && is_like_before()
    }

    /// Plans the update of the base, once for all branches.
    ///
    /// # Errors
    ///
    /// If the mirror has an error, or the run was cancelled, which concerns the other proposals as well.
    pub(super) fn plan(
        &mut self,
        context: &AttemptContext<'_>,
        base: CommitId,
        journal: &PushJournal,
        index: &mut MarkerIndex,
    ) -> Result<(), SyncError> {
        let tree = GitTree::of(&context.mirror.repository, base)?;
        let baseline = self.baseline_commit(journal);
        let mut deadline = PlanDeadline::new(context.mirror, context.remote.timeout);
        let proposer = &mut self.proposal.proposer;
        if let Some(revision) = self.base.as_ref().filter(|_| proposer.observes_source()) {
            proposer.observe_source(revision, None, index, &mut |_| deadline.check());
        }
        let proposed = self.baseline.with_trees(&tree, (baseline.as_ref(), base), context, |trees| {
            proposer.propose_branches(trees, index, &mut |_| deadline.check())
        })?;
        match proposed {
            Ok(drafts) => self.drafts = drafts,
            Err(error) => match deadline.into_cancelled() {
                Some(cancelled) => return Err(cancelled),
                None => self.result = Some(Err(Failure::Proposer(error))),
            },
        }
        Ok(())
    }

    /// Fetches the baseline if the proposer needs it, and returns true if it did.
    ///
    /// If the remote does not answer, this proposal alone fails.
    ///
    /// # Errors
    ///
    /// If the work was ended.
    pub(super) fn fetch_baseline(
        &mut self,
        context: &AttemptContext<'_>,
        journal: &PushJournal,
    ) -> Result<bool, SyncError> {
        let commit = self.baseline_commit(journal).and_then(|baseline| baseline.commit);
        let Some(commit) = commit.filter(|_| self.proposal.proposer.lacks_baseline()) else {
            return Ok(false);
        };
        match self.baseline.fetch(commit, context) {
            Err(error) if error.is_interruption() => return Err(error),
            Err(error) => self.result = Some(Err(error.into())),
            Ok(()) => {}
        }
        Ok(true)
    }

    /// Returns the baseline, which is on the base.
    fn baseline_commit(&self, journal: &PushJournal) -> Option<BaselineCommit> {
        let base = self.base.as_ref()?.reference.as_ref()?;
        let seen = journal.seen.get(&self.proposal.name);
        BaselineCommit::on_checkout(&self.proposal.known, seen, base)
    }

    /// Notes in pending pushes the commit of the status by which their report is recognized.
    ///
    /// It is that of the last branch by name. So the end of a branch does not bring the report of the others back.
    pub(super) fn note_report(&self, pending: &mut [PendingBranch]) {
        let last = self.outcomes.values().filter_map(|outcome| outcome.commit).next_back();
        for push in pending {
            let outcome = push.reference.branch().and_then(|branch| self.outcomes.get(&branch));
            let is_reported = outcome.is_some_and(|outcome| outcome.commit == Some(push.commit));
            push.reported_with = last.filter(|_| is_reported);
        }
    }

    /// Gives the answer, and records the state of the remote.
    ///
    /// `tip` has the tips after the run.
    pub(super) fn settle(
        &mut self,
        tip: impl Fn(&BranchName) -> Option<CommitId>,
        journal: &mut PushJournal,
    ) {
        let seen = self.seen(tip);
        let Some(base) = self.base.take() else { return };
        let outcomes = std::mem::take(&mut self.outcomes);
        // The next run tries again, as a server or a forge may answer then.
        let has_failed = outcomes.values().any(|one| {
            matches!(
                one.action,
                BranchAction::Failed { .. }
                    | BranchAction::Left(LeftReason::SharedWith { .. } | LeftReason::Unreadable { .. })
            )
        });
        let waits = outcomes.values().any(|one| one.waits_for().is_some());
        let name = &self.proposal.name;
        journal.seen.remove(name);
        journal.waiting.remove(name);
        if let Some(seen) = seen.filter(|_| !has_failed) {
            let states = if waits { &mut journal.waiting } else { &mut journal.seen };
            states.insert(name.clone(), seen);
        }
        let branches = outcomes.into_values().collect();
        self.result = Some(Ok(Outcome::Branches { base, branches, is_dry_run: false }));
    }

    /// Gives the answer of a dry run.
    pub(super) fn settle_dry_run(&mut self) {
        let Some(base) = self.base.take() else { return };
        let branches: Vec<_> = std::mem::take(&mut self.outcomes).into_values().collect();
        self.result = Some(Ok(Outcome::Branches { base, branches, is_dry_run: true }));
    }

    fn seen(&self, tip: impl Fn(&BranchName) -> Option<CommitId>) -> Option<LastSeen> {
        let tips = self.proposal.proposer.branches().into_keys();
        let branches = tips.map(|branch| (branch.reference(), tip(&branch))).collect();
        let base = self.base.as_ref()?;
        let own = base.reference.clone().map(|reference| (reference, None));
        Some(LastSeen {
            checkout: base.commit,
            push: None,
            destination: None,
            refspec: None,
            branches,
            own,
            must_read: false,
        })
    }
}
