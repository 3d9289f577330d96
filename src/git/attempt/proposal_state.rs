//! The state of one proposal in an attempt.

use std::collections::BTreeMap;

use super::context::AttemptContext;
use super::earlier_push::{EarlierPush, find_earlier};
use crate::git::baseline::{BaselineCommit, BaselineFetch};
use crate::git::checkout::Revision;
use crate::git::commit_time::CommitTime;
use crate::git::error::SyncError;
use crate::git::name::CommitId;
use crate::git::outcome::{Outcome, Push};
use crate::git::proposal::{Answer, Failure, Freshness, Proposal, Proposer};
use crate::git::push_journal::{LastSeen, PendingPush, PushJournal};
use crate::git::signature::SigningKey;
use crate::git::source::{self, Source};

/// One proposal and its state in an attempt.
pub(super) struct ProposalState<P: Proposer> {
    pub(super) proposal: Proposal<P>,
    /// The maximum length of the message that its outcome keeps, in bytes.
    pub(super) message_limit: usize,
    /// The commit that is checked out for it.
    pub(super) source: Option<Source>,
    /// The source, if it is observed and the commit is made on another one.
    pub(super) observed_source: Option<CommitId>,
    /// A push of an earlier run or attempt that did reach the remote.
    pub(super) earlier: Option<Push>,
    /// The baseline that this push made.
    pub(super) pushed_baseline: Option<BaselineCommit>,
    pub(super) baseline: BaselineFetch,
    /// Its commit of this attempt.
    pub(super) commit: Option<ProposedCommit>,
    /// The last commit that a forge signed for it, as git stores it.
    pub(super) signed: Option<Vec<u8>>,
    /// True if nothing may be pushed for it in this attempt.
    pub(super) is_held: bool,
    pub(super) result: Option<Result<Outcome, Failure<P::Error>>>,
}

/// A commit that was made for a proposal.
pub(super) struct ProposedCommit {
    pub(super) id: CommitId,
    /// The message, as far as an outcome keeps it.
    pub(super) message: String,
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

    /// Returns the state of the remote that the next run compares.
    pub(super) fn seen(
        &self,
        checkout: CommitId,
        push: Option<CommitId>,
        context: &AttemptContext<'_>,
    ) -> LastSeen {
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
