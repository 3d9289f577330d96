//! The state of one proposal in an attempt.

use std::collections::BTreeMap;

use super::context::AttemptContext;
use super::deadline::PlanDeadline;
use super::earlier_push::{EarlierPush, find_earlier};
use super::push_plan::PushPlan;
use crate::git::baseline::{BaselineCommit, BaselineFetch};
use crate::git::checkout::Revision;
use crate::git::commit::write_commit;
use crate::git::commit_time::CommitTime;
use crate::git::error::SyncError;
use crate::git::name::CommitId;
use crate::git::outcome::{Outcome, Push, excerpt};
use crate::git::pack::NewObjects;
use crate::git::proposal::{Answer, Failure, Freshness, Proposal, Proposer};
use crate::git::push_journal::{LastSeen, PendingPush, PushJournal};
use crate::git::signature::SigningKey;
use crate::git::source::{self, Source};
use crate::git::tree::GitTree;
use crate::update::{FileTree, MarkerIndex};

/// One proposal and its state in an attempt.
pub(super) struct ProposalState<P: Proposer> {
    pub(super) proposal: Proposal<P>,
    /// The maximum length of the message that its outcome keeps, in bytes.
    message_limit: usize,
    /// The commit that is checked out for it.
    pub(super) source: Option<Source>,
    /// The source, if it is observed and the commit is made on another one.
    observed_source: Option<CommitId>,
    /// A push of an earlier run or attempt that did reach the remote.
    earlier: Option<Push>,
    /// The baseline that this push made.
    pushed_baseline: Option<BaselineCommit>,
    baseline: BaselineFetch,
    /// Its commit of this attempt.
    pub(super) commit: Option<ProposedCommit>,
    /// The last commit that a forge signed for it, as git stores it.
    pub(super) signed: Option<Vec<u8>>,
    /// True if nothing may be pushed for it in this attempt.
    pub(super) is_held: bool,
    pub(super) result: Option<Result<Outcome, Failure<P::Error>>>,
}

/// The marker index and the new objects, which the proposals of an attempt share.
pub(super) struct SharedObjects<'i, 'o> {
    /// The marker index of the mirror.
    pub(super) index: &'i mut MarkerIndex,
    /// The objects that are made.
    pub(super) objects: NewObjects<'o>,
}

/// A commit that was made for a proposal.
pub(super) struct ProposedCommit {
    pub(super) id: CommitId,
    /// The message, as far as an outcome keeps it.
    message: String,
    pub(super) time: CommitTime,
    /// The key that signed it.
    pub(super) signer: Option<SigningKey>,
    /// True if a forge signed it.
    pub(super) is_signed_by_forge: bool,
}

impl<P: Proposer> ProposalState<P> {
    pub(super) fn new(proposal: Proposal<P>, message_limit: usize) -> Self {
        Self {
            proposal,
            message_limit,
            source: None,
            observed_source: None,
            earlier: None,
            pushed_baseline: None,
            baseline: BaselineFetch::default(),
            commit: None,
            signed: None,
            is_held: false,
            result: None,
        }
    }

    /// Returns true while it has no answer.
    pub(super) fn is_open(&self) -> bool {
        self.result.is_none()
    }

    /// Returns true if it was cancelled.
    pub(super) fn is_cancelled(&self) -> bool {
        self.proposal.cancellation.is_cancelled()
    }

    /// Returns true if the proposal may still be cancelled.
    /// A push that was made for it is reported in any case.
    pub(super) fn may_be_cancelled(&self) -> bool {
        match &self.result {
            Some(Ok(outcome)) => !matches!(outcome, Outcome::Pushed(_)),
            Some(Err(Failure::Sync(error))) => !matches!(**error, SyncError::Cancelled),
            Some(Err(Failure::Proposer(_))) | None => true,
        }
    }

    /// Cancels it: it gets no commit and no outcome.
    pub(super) fn cancel(&mut self) {
        self.result = Some(Err(SyncError::Cancelled.into()));
    }

    pub(super) fn into_answer(self) -> Answer<P> {
        let result = self.result.expect("an attempt that is done has settled every proposal");
        Answer { name: self.proposal.name, proposer: self.proposal.proposer, result }
    }

    /// Finds the commit to check out; if there is none, this proposal alone fails.
    ///
    /// # Errors
    ///
    /// If the mirror or the remote has an error, which concerns the other proposals as well.
    pub(super) fn choose_source(&mut self, context: &AttemptContext<'_>) -> Result<(), SyncError> {
        let checkout = &self.proposal.target.checkout;
        self.source = None;
        match source::choose(checkout, &context.listing, context.mirror, context.remote, context.deadline) {
            Ok(source) => self.source = Some(source),
            Err(error) if error.is_of_checkout() => self.result = Some(Err(error.into())),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Lets the proposer read the inputs of the proposal again.
    /// If it cannot propose any more, this proposal alone fails.
    pub(super) fn refresh(&mut self) {
        match self.proposal.proposer.refresh() {
            Ok(Freshness::Unchanged) => {}
            Ok(Freshness::Changed) => self.proposal.known.is_unchanged = false,
            Err(error) => self.result = Some(Err(Failure::Proposer(error))),
        }
    }

    /// Settles it if nothing has changed, neither in the inputs nor at the remote.
    pub(super) fn skip_if_known(&mut self, context: &AttemptContext<'_>, journal: &PushJournal) {
        let (Proposal { name, target, known, .. }, Some(source)) = (&self.proposal, &self.source) else {
            return;
        };
        let is_reported = |pending: &PendingPush| {
            pending.is_branch_done && !pending.is_refspec_pending() && known.has_pushed(pending.commit)
        };
        if !known.is_unchanged {
            return;
        }
        let now = self.seen(source.revision.commit, context.old, context);
        if known.has_waited && journal.has_waited_in(name, &now) {
            self.result = Some(Ok(Outcome::NothingNew));
            return;
        }
        if !journal.pending.get(name).is_none_or(is_reported) {
            return;
        }
        // The status suffices if the branch that is checked out is the push branch.
        let is_in_status = target.refspec.is_none()
            && target.checkout.branch().as_ref() == Some(&target.push)
            && known.revision.as_ref() == Some(&source.revision.to_string());
        if journal.seen.get(name).is_some_and(|before| now.is_like(before)) || is_in_status {
            self.result = Some(Ok(Outcome::NothingNew));
        }
    }

    /// Searches the remote for the push of an earlier run whose result is unknown.
    pub(super) fn recover_push(
        &mut self,
        context: &AttemptContext<'_>,
        journal: &mut PushJournal,
    ) -> Result<(), SyncError> {
        let Proposal { name, target, known, .. } = &self.proposal;
        let Some(newest) = journal.pending.get(name) else { return Ok(()) };
        let mut pending = match find_earlier(newest, &target.push.reference(), context)? {
            EarlierPush::Arrived(push) => *push,
            EarlierPush::Awaited => {
                self.pushed_baseline = newest.done_before().and_then(BaselineCommit::of_push);
                return Ok(());
            }
            EarlierPush::Lost => {
                journal.pending.remove(name);
                return Ok(());
            }
        };
        let refspec = target.refspec.as_ref().map(ToString::to_string);
        let destination = target.refspec.as_ref().and_then(|spec| context.listing.commit(&spec.destination));
        if pending.refspec != refspec || destination == Some(pending.new) {
            pending.refspec = None;
        }
        if known.has_pushed(pending.commit) && pending.refspec.is_none() {
            // The status has it.
            journal.pending.remove(name);
            return Ok(());
        }
        self.pushed_baseline = BaselineCommit::of_push(&pending);
        self.earlier = Some(Push {
            source: Revision { reference: pending.source.0.clone(), commit: pending.source.1 },
            branch: target.push.clone(),
            commit: pending.commit,
            refspec,
            message: pending.message.clone(),
            found: None,
        });
        journal.pending.insert(name.clone(), pending);
        Ok(())
    }

    /// Fetches the source for a proposer that observes it.
    ///
    /// It is here already if the commit is made on it. Errors do not matter: the proposal can be made without it.
    pub(super) fn fetch_source(&mut self, context: &AttemptContext<'_>) {
        if let Some(source) = self.source.as_ref().filter(|_| self.has_other_source(context)) {
            self.observed_source = context.fetch_commit(source.object).ok();
        }
    }

    /// Returns true for an observed source on which the commit is not made.
    fn has_other_source(&self, context: &AttemptContext<'_>) -> bool {
        let Proposal { target, proposer, .. } = &self.proposal;
        let is_other_branch = target.checkout.branch().as_ref() != Some(&target.push);
        let source = self.source.as_ref().map(|source| source.revision.commit);
        proposer.observes_source() && is_other_branch && context.old.is_some() && context.old != source
    }

    /// Lets the proposer observe the source.
    fn observe_source(
        &mut self,
        context: &AttemptContext<'_>,
        made: &mut SharedObjects<'_, '_>,
    ) -> Result<(), SyncError> {
        let has_other_source = self.has_other_source(context);
        let Some(source) = self.source.as_ref().filter(|_| self.proposal.proposer.observes_source()) else {
            return Ok(());
        };
        let SharedObjects { index, objects } = made;
        let tree = match (has_other_source, self.observed_source) {
            (true, None) => return Ok(()),
            (true, Some(commit)) => Some(GitTree::of(objects.repository(), commit)?),
            (false, _) => None,
        };
        let files = tree.as_ref().map(|tree| tree as &dyn FileTree);
        let mut deadline = PlanDeadline::new(context.mirror, context.remote.timeout);
        self.proposal.proposer.observe_source(&source.revision, files, index, &mut |_| deadline.check());
        if tree.is_some_and(|tree| tree.is_damaged()) { Err(SyncError::Damaged) } else { Ok(()) }
    }

    /// Makes the proposal's commit on `tip`, if one is needed, and returns the new tip.
    /// This has a `spec.timeout` of its own.
    ///
    /// # Errors
    ///
    /// If the mirror has an error, or the run was cancelled, which concerns the other proposals as well.
    pub(super) fn propose(
        &mut self,
        context: &AttemptContext<'_>,
        tip: CommitId,
        journal: &PushJournal,
        made: &mut SharedObjects<'_, '_>,
    ) -> Result<CommitId, SyncError> {
        self.commit = None;
        if !self.is_open() {
            return Ok(tip);
        }
        self.observe_source(context, made)?;
        let mut deadline = PlanDeadline::new(context.mirror, context.remote.timeout);
        let SharedObjects { index, objects } = made;
        let tree = GitTree::of(objects.repository(), tip)?;
        let baseline = self.baseline_commit(context, journal);
        let tip_before = context.old.unwrap_or(tip);
        let proposer = &mut self.proposal.proposer;
        let proposed =
            self.baseline.with_trees(&tree, (baseline.as_ref(), tip_before), context, |trees| {
                proposer.propose(trees, index, &mut |_| deadline.check())
            })?;
        let mut draft = match proposed {
            Ok(Some(draft)) => draft,
            Ok(None) => return Ok(tip),
            Err(error) => {
                if let Some(cancelled) = deadline.into_cancelled() {
                    return Err(cancelled);
                }
                self.result = Some(Err(Failure::Proposer(error)));
                return Ok(tip);
            }
        };
        // A push on the same tip may still arrive: the same change at the same time is the same commit, so nothing is
        // lost if both arrive. With a key that was made since then the commit differs.
        let pending = journal.pending.get(&self.proposal.name);
        let signer = draft.signer.as_ref();
        if let Some(pending) = pending.filter(|pending| pending.old == context.old)
            && signer.is_none_or(|signer| signer.existed_at(pending.time))
        {
            draft.time = pending.time;
        }
        objects.begin_commit();
        let mut written = write_commit(objects, tip, &draft, &mut |_| deadline.check());
        // A commit that was fetched without its history cannot be pushed; it was pushed before, and removed.
        while let Ok(Some(id)) = &written
            && context.mirror.is_cut_off(*id)
        {
            objects.discard_commit();
            objects.begin_commit();
            draft.time.seconds += 1;
            written = write_commit(objects, tip, &draft, &mut |_| deadline.check());
        }
        match written {
            Ok(Some(id)) => {
                let message = excerpt(&String::from_utf8_lossy(&draft.message), self.message_limit);
                let (time, signer) = (draft.time, draft.signer);
                self.commit = Some(ProposedCommit { id, message, time, signer, is_signed_by_forge: false });
                let replaced = draft.edits.iter().filter_map(|edit| edit.entry.content);
                replaced.for_each(|content| index.remove(&content));
                Ok(id)
            }
            Ok(None) => Ok(tip),
            Err(error) => match deadline.into_cancelled().or_else(|| context.too_large(&error)) {
                Some(shared) => Err(shared),
                None if error.is_of_proposal() => {
                    objects.discard_commit();
                    self.result = Some(Err(SyncError::from(error).into()));
                    Ok(tip)
                }
                None => Err(error.into()),
            },
        }
    }

    /// Returns the baseline: that of an unreported push, or else of the last run.
    fn baseline_commit(&self, context: &AttemptContext<'_>, journal: &PushJournal) -> Option<BaselineCommit> {
        let Proposal { name, target, known, .. } = &self.proposal;
        let of_last_run =
            || BaselineCommit::on_push_branch((target, known), journal.seen.get(name), context.old);
        self.pushed_baseline.clone().or_else(of_last_run)
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
        if !self.is_open() || !self.proposal.proposer.lacks_baseline() {
            return Ok(false);
        }
        let commit = self.baseline_commit(context, journal).and_then(|baseline| baseline.commit);
        let Some(commit) = commit else { return Ok(false) };
        match self.baseline.fetch(commit, context) {
            Err(error) if error.is_interruption() => return Err(error),
            Err(error) => self.result = Some(Err(error.into())),
            Ok(()) => {}
        }
        Ok(true)
    }

    /// Holds it back if nothing may be pushed for it now.
    pub(super) fn hold_if_closed(&mut self, journal: &PushJournal) {
        let Proposal { proposer, name, .. } = &self.proposal;
        let is_held = proposer.is_waiting() || (journal.owes_refspec(name) && proposer.closed().is_some());
        self.is_held = self.commit.is_none() && is_held;
    }

    /// Returns true if its commit or refspec may not be pushed any more.
    pub(super) fn has_closed(&self, journal: &PushJournal) -> bool {
        let Proposal { proposer, name, .. } = &self.proposal;
        let is_pushed = self.commit.is_some() || (!self.is_held && journal.owes_refspec(name));
        self.is_open() && is_pushed && proposer.closed().is_some()
    }

    /// Records the push in the journal before it is made.
    /// So the push is known after a crash.
    pub(super) fn record_pending(&self, old: Option<CommitId>, tip: CommitId, journal: &mut PushJournal) {
        let (Some(commit), Some(source)) = (&self.commit, &self.source) else { return };
        let Proposal { name, target, .. } = &self.proposal;
        let pending = PendingPush {
            reference: target.push.reference(),
            source: (source.revision.reference.clone(), source.revision.commit),
            old,
            new: tip,
            commit: commit.id,
            message: excerpt(&commit.message, PendingPush::MAX_MESSAGE),
            time: commit.time,
            refspec: target.refspec.as_ref().map(ToString::to_string),
            is_branch_done: false,
            is_signed_by_forge: commit.is_signed_by_forge,
            note: self.proposal.proposer.note(),
            is_repeated: false,
            was_missing: false,
            earlier: None,
        };
        journal.record(name, pending);
    }

    /// Records that the branch was listed without the push.
    pub(super) fn note_missing(&self, journal: &mut PushJournal) {
        let pending = journal.pending.get_mut(&self.proposal.name).filter(|_| self.commit.is_some());
        pending.into_iter().for_each(|push| push.was_missing = true);
    }

    /// Deletes the record of a push that has not arrived and never will.
    ///
    /// An earlier push may still arrive.
    pub(super) fn forget_pending(&self, journal: &mut PushJournal) {
        if self.commit.is_some() {
            journal.withdraw(&self.proposal.name);
        }
    }

    /// Sets the answer to the proposal after a push, if there was one.
    /// It also records the state of the remote, with `tip` on the push branch.
    pub(super) fn resolve_push(
        &mut self,
        plan: &PushPlan,
        tip: Option<CommitId>,
        context: &AttemptContext<'_>,
        journal: &mut PushJournal,
    ) {
        let Some(source) = self.source.take() else { return };
        let PushPlan { request, rejected } = plan;
        if self.is_held {
            // The next run must not take the files for unchanged. An earlier push is reported by the run that does not wait:
            // until then its record is the baseline.
            journal.seen.get_mut(&self.proposal.name).into_iter().for_each(|seen| seen.must_read = true);
            let now = self.seen(source.revision.commit, context.old, context);
            journal.waiting.insert(self.proposal.name.clone(), now);
            self.result = Some(Ok(Outcome::Waiting { source: source.revision }));
            return;
        }
        let Proposal { name, target, .. } = &self.proposal;
        let refspec = target.refspec.as_ref();
        let refusal = refspec.and_then(|refspec| Some((refspec, rejected.get(&refspec.destination)?)));
        if let Some((refspec, message)) = refusal {
            // The branch is done, and the refspec is still to be pushed.
            if let Some(pending) = journal.pending.get_mut(name).filter(|_| self.commit.is_some()) {
                pending.is_branch_done = true;
            }
            let refused = context.refusal(refspec.destination.clone(), message.clone());
            let pushed = self.commit.as_ref().map(|made| (made.id, Some(made.message.clone())));
            let pushed = pushed.or_else(|| self.earlier.as_ref().map(|earlier| (earlier.commit, None)));
            let error = match pushed {
                Some((commit, message)) => {
                    let (branch, refspec) = (target.push.clone(), refspec.to_string());
                    SyncError::RefspecRefused { commit, branch, message, refspec, cause: Box::new(refused) }
                }
                None => refused,
            };
            self.result = Some(Err(error.into()));
            return;
        }
        // The note stays until the status has the push: its report may still be lost. The note of a push that was not
        // found stays as well, because that push may still arrive.
        let is_there = self.commit.is_some() || self.earlier.is_some();
        if let Some(pending) = journal.pending.get_mut(name).filter(|_| is_there) {
            pending.is_branch_done = true;
            pending.refspec = None;
            pending.earlier = None;
        }
        let is_same_branch = target.checkout.branch().as_ref() == Some(&target.push);
        let checkout = tip.filter(|_| is_same_branch).unwrap_or(source.revision.commit);
        let mut now = self.seen(checkout, tip, context);
        now.destination =
            refspec.and_then(|refspec| request.commit_for(&refspec.destination)).or(now.destination);
        let (name, branch) = (name.clone(), target.push.clone());
        let is_made_good = refspec.is_some_and(|refspec| request.commit_for(&refspec.destination).is_some());
        let refspec = refspec.map(ToString::to_string);
        self.result = Some(Ok(match (self.commit.take(), self.earlier.take()) {
            (Some(ProposedCommit { id: commit, message, .. }), _) => Outcome::Pushed(Push {
                source: source.revision,
                branch,
                commit,
                refspec,
                message,
                found: None,
            }),
            (None, Some(earlier)) if is_made_good => Outcome::Pushed(earlier),
            (None, Some(earlier)) => Outcome::Pushed(Push { found: Some(source.revision), ..earlier }),
            (None, None) => Outcome::NothingToCommit { source: source.revision },
        }));
        // A reference that is not listed keeps the value that was pushed: some servers never list it.
        if let Some(before) = journal.seen.get(&name).filter(|before| before.refspec == now.refspec) {
            now.destination = now.destination.or(before.destination);
        }
        journal.waiting.remove(&name);
        journal.seen.insert(name, now);
    }

    /// Gives the answer of a dry run.
    pub(super) fn settle_dry_run(&mut self, journal: &PushJournal) {
        self.hold_if_closed(journal);
        let Some(Source { revision: source, .. }) = self.source.take() else { return };
        let Proposal { name, target, .. } = &self.proposal;
        let owed = target.refspec.as_ref().filter(|_| journal.owes_refspec(name)).map(ToString::to_string);
        self.result = Some(Ok(match (self.commit.take(), owed) {
            _ if self.is_held => Outcome::Waiting { source },
            (Some(_), _) => Outcome::DryRun { source, refspec: None },
            (None, Some(refspec)) => Outcome::DryRun { source, refspec: Some(refspec) },
            (None, None) => Outcome::NothingToCommit { source },
        }));
    }

    fn seen(&self, checkout: CommitId, push: Option<CommitId>, context: &AttemptContext<'_>) -> LastSeen {
        let refspec = self.proposal.target.refspec.as_ref();
        let destination = refspec.and_then(|refspec| context.listing.commit(&refspec.destination));
        let refspec = refspec.map(ToString::to_string);
        let Proposal { target, known, .. } = &self.proposal;
        let own = self.commit.as_ref().map(|commit| commit.id);
        let own = own.or_else(|| self.earlier.as_ref().map(|earlier| earlier.commit));
        let own = own.or_else(|| known.pushed.as_ref()?.parse().ok());
        let own = Some((target.push.reference(), own));
        let (branches, must_read) = (BTreeMap::new(), false);
        LastSeen { checkout, push, destination, refspec, branches, own, must_read }
    }
}
