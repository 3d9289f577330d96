//! The push of one proposal: its record in the journal, and the answer after it.

use super::context::AttemptContext;
use super::proposal_state::{ProposalState, ProposedCommit};
use super::push_plan::PushPlan;
use crate::git::error::SyncError;
use crate::git::name::CommitId;
use crate::git::outcome::{Outcome, Push, excerpt};
use crate::git::proposal::{Proposal, Proposer};
use crate::git::push_journal::{PendingPush, PushJournal};
use crate::git::source::Source;

impl<P: Proposer> ProposalState<P> {
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
}
