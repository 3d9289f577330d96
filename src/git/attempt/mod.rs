//! One attempt at a transaction, from the listing to the push.
//!
//! | module | contents |
//! |---|---|
//! | `context`, `deadline` | mirror, remote and listing; the deadline of one commit |
//! | `proposal_state` | the state of one proposal: its source, commit and result |
//! | `propose`, `push_outcome` | its commit; the record of its push, and the answer after that |
//! | `earlier_push` | the search for a push of an earlier run or attempt whose result is unknown |
//! | `forge_signing` | the signing of commits by a forge, after they were made |
//! | `push_plan` | the push of all proposals, and the references that it does not update |

pub(super) mod context;
pub(super) mod deadline;
mod earlier_push;
pub(super) mod forge_signing;
mod proposal_state;
mod propose;
mod push_outcome;
mod push_plan;

use std::sync::Arc;

use super::attempts::{AttemptOutcome, Attempts};
use super::commit_signer::ForgeSigningError;
use super::error::SyncError;
use super::listing::Listing;
use super::mirror::Mirror;
use super::name::{BranchName, CommitId};
use super::outcome::message_limit;
use super::pack::{NewObjects, NewPacks};
use super::proposal::{Answer, Failure, Proposal, Proposer};
use super::push::PushReply;
use super::push_journal::PushJournal;
use super::remote::{ListingQuery, Remote};
use super::remote_error::RemoteError;
use super::server_deadline::ServerDeadline;
use super::source;
use context::AttemptContext;
use deadline::PlanDeadline;
use proposal_state::ProposalState;
use propose::SharedObjects;
use push_plan::PushPlan;

/// The proposals of a transaction and their states.
pub(super) struct Attempt<P: Proposer> {
    states: Vec<ProposalState<P>>,
    branch: Option<BranchName>,
    is_dry_run: bool,
    /// The packs of the commits that were made.
    packs: NewPacks,
    /// True if it is not the first attempt.
    is_another: bool,
    /// The reason why the forge signs no commit in this transaction.
    forge_failure: Option<Arc<ForgeSigningError>>,
}

impl<P: Proposer> Attempts<P> for Attempt<P> {
    fn make(&mut self, mirror: &mut Mirror, remote: &Remote, journal: &mut PushJournal) -> AttemptOutcome {
        let outcome = self.try_to_make(mirror, remote, journal).err().unwrap_or(AttemptOutcome::Done);
        let packs = std::mem::take(&mut self.packs);
        // Objects of commits that were not pushed, and never will be, would fill the mirror.
        let is_needed = self.states.iter().any(|state| journal.pending.contains_key(&state.proposal.name));
        mirror.end_packs(packs, is_needed);
        outcome
    }

    fn answers(self) -> Vec<Answer<P>> {
        self.states.into_iter().map(ProposalState::into_answer).collect()
    }

    fn fail(mut self, error: SyncError) -> Vec<Answer<P>> {
        let error = Arc::new(error);
        for state in self.open() {
            state.result = Some(Err(Failure::Sync(error.clone())));
        }
        self.answers()
    }

    fn separate(self) -> Result<Vec<Proposal<P>>, Self> {
        if self.states.iter().filter(|state| state.is_open()).count() > 1 {
            Ok(self.states.into_iter().map(|state| state.proposal).collect())
        } else {
            Err(self)
        }
    }
}

impl<P: Proposer> Attempt<P> {
    /// Creates an attempt at proposals for the same branch.
    pub(super) fn new(proposals: Vec<Proposal<P>>, is_dry_run: bool) -> Self {
        let branch = proposals.first().map(|proposal| proposal.target.push.clone());
        let limit = message_limit(proposals.len());
        let states = proposals.into_iter().map(|proposal| ProposalState::new(proposal, limit)).collect();
        Self {
            states,
            branch,
            is_dry_run,
            packs: NewPacks::default(),
            is_another: false,
            forge_failure: None,
        }
    }

    fn try_to_make(
        &mut self,
        mirror: &mut Mirror,
        remote: &Remote,
        journal: &mut PushJournal,
    ) -> Result<(), AttemptOutcome> {
        self.end_cancelled();
        let Some(branch) = self.branch.as_ref().map(BranchName::reference).filter(|_| self.is_open()) else {
            return Ok(());
        };
        // Proposals with an answer count too: it is given only when the last one has one.
        let awaited = self.states.iter().filter(|state| state.may_be_cancelled());
        mirror.cancellations = awaited.map(|state| state.proposal.cancellation.clone()).collect();
        let deadline = &ServerDeadline::after(remote.timeout);
        let listing = self.list_remote(mirror, remote, deadline).map_err(SyncError::from)?;
        self.is_another = true;
        let old = listing.commit(&branch);
        let context = AttemptContext { mirror, remote, listing, old, deadline };
        self.open().for_each(ProposalState::refresh);
        for state in self.open() {
            state.choose_source(&context)?;
            state.skip_if_known(&context, journal);
        }
        let Some(base) = self.base(old) else { return Ok(()) };
        let base = context.fetch_commit(base)?;
        mirror.keep(&journal.retained_with(base)).map_err(SyncError::from)?;
        for state in self.open() {
            state.recover_push(&context, journal)?;
            state.fetch_source(&context);
        }
        let mut proposed = self.propose(&context, base, journal);
        // The images are read again each time, so that another proposal may need its baseline then.
        while proposed.is_ok() && self.fetch_baselines(&context, journal)? {
            proposed = self.propose(&context, base, journal);
        }
        let AttemptContext { listing, .. } = context;
        // The objects are on the disk now, where git reads them too; memory need not hold them as well.
        mirror.release_objects().map_err(SyncError::from)?;
        let context = AttemptContext { mirror, remote, listing, old, deadline };
        let tip = proposed?;
        if self.is_dry_run {
            self.open().for_each(|state| state.settle_dry_run(journal));
            return Ok(());
        }
        let tip =
            if self.is_to_be_signed() { deadline.pause(|| self.sign(&context, base, journal))? } else { tip };
        self.open().for_each(|state| state.hold_if_closed(journal));
        let mut plan = push_plan::plan_push(&self.states, base, tip, journal, &context)?;
        if !plan.request.updates.is_empty() {
            remote.confirm(mirror).map_err(SyncError::from)?;
            for state in self.open() {
                state.record_pending(old, tip, journal);
            }
            store(journal, mirror)?;
            // What a forge signed is pushed again if the result stays unknown.
            mirror.keep(&journal.retained_with(base)).map_err(SyncError::from)?;
            if mirror.is_cancelled() {
                return Err(AttemptOutcome::Repaired);
            }
            // A push may wait for memory, and nothing may begin after a window has closed.
            let may_begin = || !self.states.iter().any(|state| state.has_closed(journal));
            let reply =
                remote.push(mirror, &plan.request, &ServerDeadline::after(remote.timeout), &may_begin);
            if reply.as_ref().is_err_and(RemoteError::is_withheld) {
                // The next attempt makes no commit for it.
                self.forget_push(&context, journal)?;
                return Err(AttemptOutcome::Repaired);
            }
            self.verify_push(&mut plan, reply, &context, journal)?;
        }
        let tip = if self.has_commits() { Some(tip) } else { old };
        for state in self.open() {
            state.resolve_push(&plan, tip, &context, journal);
        }
        store(journal, mirror)?;
        mirror.keep(&journal.retained_with(tip.unwrap_or(base))).map_err(SyncError::from)?;
        Ok(())
    }

    /// Ends the proposals that were cancelled; they need not wait for the others.
    fn end_cancelled(&mut self) {
        let is_over = |state: &&mut ProposalState<P>| state.is_cancelled() && state.may_be_cancelled();
        self.states.iter_mut().filter(is_over).for_each(ProposalState::cancel);
    }

    /// Returns true if a proposal has no answer yet.
    fn is_open(&self) -> bool {
        self.states.iter().any(ProposalState::is_open)
    }

    fn open(&mut self) -> impl Iterator<Item = &mut ProposalState<P>> {
        self.states.iter_mut().filter(|state| state.is_open())
    }

    /// Returns true if commits were made.
    fn has_commits(&self) -> bool {
        self.states.iter().any(|state| state.is_open() && state.commit.is_some())
    }

    /// Lists the remote.
    ///
    /// After a lost race the remote was listed a moment ago, so new objects are fetched at once: the shorter the time
    /// between listing and push, the less likely is another lost race.
    fn list_remote(
        &self,
        mirror: &Mirror,
        remote: &Remote,
        deadline: &ServerDeadline,
    ) -> Result<Listing, RemoteError> {
        let queries = self.queries();
        if let ([ListingQuery::Reference(reference)], true) = (queries.as_slice(), self.is_another)
            && let Some(listing) = remote.fetch_branch(mirror, reference, deadline)
        {
            return Ok(listing);
        }
        remote.list(mirror, &queries, deadline)
    }

    /// Returns the references to list.
    fn queries(&self) -> Vec<ListingQuery> {
        let mut queries = Vec::new();
        for state in &self.states {
            let target = &state.proposal.target;
            let references =
                [Some(target.push.reference()), target.refspec.as_ref().map(|spec| spec.destination.clone())];
            let references = references.into_iter().flatten().map(ListingQuery::Reference);
            for one in references.chain(source::listing_query(&target.checkout)) {
                if !queries.contains(&one) {
                    queries.push(one);
                }
            }
        }
        queries
    }

    /// Returns the object to build on, if there is anything to build.
    fn base(&self, old: Option<CommitId>) -> Option<CommitId> {
        let first = self.states.iter().find(|state| state.is_open())?;
        old.or_else(|| first.source.as_ref().map(|source| source.object))
    }

    /// Makes each proposal's commit on the tree of the one before, and returns the tip.
    fn propose(
        &mut self,
        context: &AttemptContext<'_>,
        base: CommitId,
        journal: &PushJournal,
    ) -> Result<CommitId, SyncError> {
        let memory = self.open().map(|state| state.proposal.proposer.memory()).max().unwrap_or_default();
        let _permit = context.mirror.enter_pool(memory)?;
        let repository = &context.mirror.repository;
        let database = repository.odb()?;
        let has_room = || context.remote.has_room(context.mirror);
        let objects = NewObjects::new(repository, &database)?.limited_by(&has_room);
        let mut index = context.read_index();
        let mut made = SharedObjects { index: &mut index, objects };
        let mut tip = Ok(base);
        for state in self.open() {
            state.refresh();
            tip = tip.and_then(|tip| state.propose(context, tip, journal, &mut made));
        }
        // Otherwise they are not needed any more.
        let is_whole = !self.open().any(|state| state.proposal.proposer.lacks_baseline());
        if tip.is_ok() && !self.is_dry_run && is_whole {
            let mut deadline = PlanDeadline::new(context.mirror, context.remote.timeout);
            let packs = made.objects.finish(&mut |_| deadline.check());
            match packs {
                Ok(packs) => self.packs = packs,
                Err(error) => {
                    let shared = deadline.into_cancelled().or_else(|| context.too_large(&error));
                    tip = Err(shared.unwrap_or_else(|| error.into()));
                }
            }
        }
        context.store_index(&index, &tip);
        tip
    }

    /// Fetches the baselines that proposers need, and returns true if there are some.
    fn fetch_baselines(
        &mut self,
        context: &AttemptContext<'_>,
        journal: &PushJournal,
    ) -> Result<bool, SyncError> {
        self.open().try_fold(false, |any, state| Ok(any | state.fetch_baseline(context, journal)?))
    }

    /// Deletes the records of a push that has not reached the remote and never will.
    fn forget_push(&self, context: &AttemptContext<'_>, journal: &mut PushJournal) -> Result<(), SyncError> {
        // A settled proposal may have a commit of an attempt before, which was not part of this push.
        let pushed = self.states.iter().filter(|state| state.is_open());
        pushed.for_each(|state| state.forget_pending(journal));
        store(journal, context.mirror)
    }

    /// Determines the result of a push.
    /// Unless the reply confirms all updates, the remote is listed again.
    fn verify_push(
        &self,
        plan: &mut PushPlan,
        reply: Result<PushReply, RemoteError>,
        context: &AttemptContext<'_>,
        journal: &mut PushJournal,
    ) -> Result<(), AttemptOutcome> {
        let PushPlan { request, rejected } = plan;
        if reply.as_ref().is_ok_and(|reply| reply.is_all_done(request)) {
            return Ok(());
        }
        let branch = self.branch.as_ref().map(BranchName::reference);
        if let (Some(branch), Ok(reply)) = (&branch, &reply)
            && reply.is_stale(branch)
        {
            // Git has checked the condition and sent nothing, and the next attempt begins with a listing.
            self.forget_push(context, journal)?;
            return Err(AttemptOutcome::LostRace);
        }
        let deadline = ServerDeadline::after(context.remote.timeout);
        let after = context.remote.list(context.mirror, &self.queries(), &deadline).ok();
        // After a broken connection git sends the push again, and its refusal says nothing of the first time.
        if let (Some(branch), Ok(reply), Some(after)) = (&branch, &reply, &after)
            && reply.is_refused(branch)
            && !reply.is_contested(branch)
            && after.commit(branch) == context.old
        {
            self.forget_push(context, journal)?;
        }
        let missing = push_plan::missing(request, reply.as_ref().ok(), after.as_ref());
        let of_branch = branch.filter(|branch| missing.contains(branch));
        if of_branch.is_some() && after.is_some() {
            // It may still arrive, but no one has removed it.
            self.states.iter().filter(|state| state.is_open()).for_each(|state| state.note_missing(journal));
            store(journal, context.mirror)?;
        }
        if let (Some(branch), Some(after)) = (&of_branch, &after)
            && after.commit(branch) != context.old
        {
            return Err(AttemptOutcome::LostRace);
        }
        match (reply, of_branch) {
            _ if missing.is_empty() => Ok(()),
            (Err(error), _) => Err(AttemptOutcome::Failed(error.into())),
            (Ok(reply), Some(branch)) => {
                let message = reply.refusal(&branch);
                Err(AttemptOutcome::Refused(context.refusal(branch, message)))
            }
            (Ok(reply), None) => {
                for reference in missing {
                    let message = reply.refusal(&reference);
                    rejected.insert(reference, message);
                }
                Ok(())
            }
        }
    }
}

fn store(journal: &PushJournal, mirror: &Mirror) -> Result<(), SyncError> {
    journal.store(&mirror.folder).map_err(SyncError::PushJournal)
}
