//! One attempt at the branches of proposals, from the listing to the commits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::branch::Branch;
use super::decision::Decision;
use super::model::{BranchDraft, BranchFacts, ClosedProposal, DroppedCommit, Refresh};
use super::state::BranchState;
use crate::git::attempt::context::AttemptContext;
use crate::git::attempts::{AttemptOutcome, Attempts};
use crate::git::commit_signer::ForgeSigningError;
use crate::git::error::SyncError;
use crate::git::mirror::Mirror;
use crate::git::name::{BranchName, CommitId};
use crate::git::outcome::{Outcome, message_limit};
use crate::git::pack::NewPacks;
use crate::git::proposal::{Answer, Failure, Proposal, Proposer};
use crate::git::push_journal::PushJournal;
use crate::git::remote::{ListingQuery, Remote};
use crate::git::server_deadline::ServerDeadline;
use crate::git::source;

/// The proposals of a transaction with branches of their own.
pub(in crate::git) struct BranchAttempt<P: Proposer> {
    pub(super) states: Vec<BranchState<P>>,
    pub(super) is_dry_run: bool,
    /// The packs of the commits that were made.
    pub(super) packs: NewPacks,
    /// The reason why the forge signs no commit in this transaction.
    pub(super) forge_failure: Option<Arc<ForgeSigningError>>,
    /// The failures of branches in earlier attempts, after which others were still to be made.
    pub(super) failed: BTreeMap<BranchName, String>,
    /// The commits that branches lose, in earlier attempts too.
    pub(super) dropped: BTreeMap<BranchName, Vec<DroppedCommit>>,
    /// The branches that were deleted, in earlier attempts too.
    pub(super) deleted: BTreeSet<BranchName>,
}

/// A refused branch does not stop the others, so proposals are never separated.
impl<P: Proposer> Attempts<P> for BranchAttempt<P> {
    fn make(&mut self, mirror: &mut Mirror, remote: &Remote, journal: &mut PushJournal) -> AttemptOutcome {
        let outcome = self.try_to_make(mirror, remote, journal).err().unwrap_or(AttemptOutcome::Done);
        let packs = std::mem::take(&mut self.packs);
        let is_needed = self.states.iter().any(|state| {
            let pending = journal.pending_branches.get(&state.proposal.name);
            pending.is_some_and(|pending| pending.iter().any(|push| push.is_signed_by_forge))
        });
        // What a forge signed may be pushed again. Of other branches, the next run needs only the ids in the journal.
        mirror.end_packs(packs, is_needed);
        outcome
    }

    fn answers(self) -> Vec<Answer<P>> {
        self.states.into_iter().map(BranchState::into_answer).collect()
    }

    fn fail(mut self, error: SyncError) -> Vec<Answer<P>> {
        let error = Arc::new(error);
        for state in self.open() {
            state.result = Some(Err(Failure::Sync(error.clone())));
        }
        self.answers()
    }

    fn separate(self) -> Result<Vec<Proposal<P>>, Self> {
        Err(self)
    }
}

impl<P: Proposer> BranchAttempt<P> {
    /// Creates an attempt at proposals with the same base.
    pub(in crate::git) fn new(proposals: Vec<Proposal<P>>, is_dry_run: bool) -> Self {
        let limit = message_limit(proposals.len());
        let states = proposals.into_iter().map(|proposal| BranchState::new(proposal, limit)).collect();
        Self {
            states,
            is_dry_run,
            packs: NewPacks::default(),
            forge_failure: None,
            failed: BTreeMap::new(),
            dropped: BTreeMap::new(),
            deleted: BTreeSet::new(),
        }
    }

    /// Returns the proposals without an answer.
    pub(super) fn open(&mut self) -> impl Iterator<Item = &mut BranchState<P>> {
        self.states.iter_mut().filter(|state| state.is_open())
    }

    fn try_to_make(
        &mut self,
        mirror: &mut Mirror,
        remote: &Remote,
        journal: &mut PushJournal,
    ) -> Result<(), AttemptOutcome> {
        self.open().for_each(BranchState::end_if_cancelled);
        let awaited = self.states.iter().filter(|state| state.may_be_cancelled());
        mirror.cancellations = awaited.map(|state| state.proposal.cancellation.clone()).collect();
        self.open().for_each(BranchState::refresh);
        let names = self.names();
        let Some(first) = self.open().next() else { return Ok(()) };
        let checkout = source::listing_query(&first.proposal.target.checkout);
        let branches = names.iter().map(|name| ListingQuery::Reference(name.reference()));
        let queries: Vec<_> = checkout.into_iter().chain(branches).collect();
        let deadline = &ServerDeadline::after(remote.timeout);
        let listing = remote.list(mirror, &queries, deadline).map_err(SyncError::from)?;
        let context = AttemptContext { mirror, remote, listing, old: None, deadline };
        for state in self.open() {
            state.choose_base(&context)?;
        }
        for state in self.open() {
            state.recover_pushes(&context, journal)?;
        }
        self.skip_unchanged(&context, journal);
        let source =
            self.open().find_map(|state| Some((state.object?, state.base.as_ref()?.reference.clone()?)));
        let Some((object, reference)) = source else { return Ok(()) };
        let base = context.fetch_commit(object)?;
        mirror.keep(&journal.retained_with(base)).map_err(SyncError::from)?;
        self.plan(&context, base, &names, journal)?;
        while self.fetch_baselines(&context, journal)? {
            self.plan(&context, base, &names, journal)?;
        }
        let mut branches = self.branches(&names, &context);
        self.read_unknown(&mut branches, &context, (base, reference), journal)?;
        let decided = self.decide_and_commit(&mut branches, &context, base, journal);
        let AttemptContext { listing, .. } = context;
        // The objects are on the disk now, where git reads them.
        mirror.release_objects().map_err(SyncError::from)?;
        let context = AttemptContext { mirror, remote, listing, old: None, deadline };
        decided?;
        let later = self.put_off(&mut branches);
        self.sign(&mut branches, &context, base, journal)?;
        branches.iter_mut().for_each(|branch| branch.find_known_commits(journal));
        self.push(&branches, &later, (&context, base), journal)
    }

    /// Fetches the baselines that proposers need, and returns true if there are some.
    fn fetch_baselines(
        &mut self,
        context: &AttemptContext<'_>,
        journal: &PushJournal,
    ) -> Result<bool, SyncError> {
        self.open().try_fold(false, |any, state| Ok(any | state.fetch_baseline(context, journal)?))
    }

    /// Returns the branches of the proposals without an answer.
    fn names(&mut self) -> BTreeSet<BranchName> {
        self.open().flat_map(|state| state.proposal.proposer.branches().into_keys()).collect()
    }

    /// Settles the proposals for which nothing has changed.
    ///
    /// One that shares a branch with another for which something has is not settled: the branch has commits of both.
    fn skip_unchanged(&mut self, context: &AttemptContext<'_>, journal: &PushJournal) {
        let (mut unchanged, mut busy): (Vec<usize>, BTreeSet<BranchName>) = (Vec::new(), BTreeSet::new());
        for (index, state) in self.states.iter().enumerate().filter(|(_, state)| state.is_open()) {
            if state.is_unchanged(context, journal) {
                unchanged.push(index);
            } else {
                busy.extend(state.proposal.proposer.branches().into_keys());
            }
        }
        loop {
            let own = |index: &usize| self.states[*index].proposal.proposer.branches();
            let is_idle = |index: &usize| own(index).keys().all(|branch| !busy.contains(branch));
            let (idle, more): (Vec<usize>, Vec<usize>) = unchanged.iter().partition(|index| is_idle(index));
            let more: Vec<BranchName> = more.iter().flat_map(|index| own(index).into_keys()).collect();
            if more.is_empty() {
                unchanged = idle;
                break;
            }
            unchanged = idle;
            busy.extend(more);
        }
        for index in unchanged {
            self.states[index].result = Some(Ok(Outcome::NothingNew));
        }
    }

    /// Plans the update of each proposal.
    fn plan(
        &mut self,
        context: &AttemptContext<'_>,
        base: CommitId,
        names: &BTreeSet<BranchName>,
        journal: &PushJournal,
    ) -> Result<(), AttemptOutcome> {
        let memory = self.open().map(|state| state.proposal.proposer.memory()).max().unwrap_or_default();
        let _permit = context.mirror.enter_pool(memory)?;
        // Images are read again after the waits. The branches of new ones are not in the listing.
        self.open().for_each(BranchState::refresh);
        if !self.names().is_subset(names) {
            return Err(AttemptOutcome::LostRace);
        }
        let mut index = context.read_index();
        let planned = self.open().try_for_each(|state| state.plan(context, base, journal, &mut index));
        context.store_index(&index, &planned);
        Ok(planned?)
    }

    /// Returns the branches with their drafts.
    ///
    /// They are in the order of their names. The drafts that a forge signs come first, each kind in the order of the
    /// proposals' names.
    fn branches(&self, names: &BTreeSet<BranchName>, context: &AttemptContext<'_>) -> Vec<Branch> {
        let mut order: Vec<usize> =
            (0..self.states.len()).filter(|index| self.states[*index].is_open()).collect();
        // A forge signs no commit on top of one that it does not have.
        let place = |index: &usize| {
            let Proposal { signing, name, .. } = &self.states[*index].proposal;
            (signing.as_ref().map_or(2, |signing| u8::from(!signing.is_required)), name)
        };
        order.sort_by(|one, other| place(one).cmp(&place(other)));
        let branch = |name: &BranchName| {
            let (mut facts, mut refresh) = (Vec::new(), Refresh::WhenNeeded);
            let (mut drafts, mut hash) = (Vec::new(), Sha256::new());
            for index in &order {
                let Proposal { proposer, target, .. } = &self.states[*index].proposal;
                let Some(own_facts) = proposer.branch(name) else { continue };
                if target.own_branches == Some(Refresh::Always) {
                    refresh = Refresh::Always;
                }
                let before = drafts.len();
                for (number, draft) in self.states[*index].drafts.iter().enumerate() {
                    if draft.branch == *name {
                        draft.commit.edits.iter().for_each(|edit| edit.add_to(&mut hash));
                        drafts.push((*index, number));
                    }
                }
                facts.push((drafts.len() > before, own_facts));
            }
            (!facts.is_empty()).then(|| Branch {
                name: name.clone(),
                tip: context.listing.commit(&name.reference()),
                facts: BranchFacts::united(&facts),
                refresh,
                drafts,
                change: format!("{:x}", hash.finalize()),
                read: None,
                has_lost_base: false,
                has_landed: false,
                decision: Decision::Nothing,
                bystanders: BTreeSet::new(),
                built: None,
            })
        };
        names.iter().filter_map(branch).collect()
    }

    /// Returns the hashes of the edits on a branch, by the name of the proposal.
    pub(super) fn members(&self, branch: &Branch) -> BTreeMap<String, String> {
        let member = |(index, number): &(usize, usize)| {
            let mut hash = Sha256::new();
            self.states[*index].drafts[*number].commit.edits.iter().for_each(|edit| edit.add_to(&mut hash));
            (self.states[*index].proposal.name.clone(), format!("{:x}", hash.finalize()))
        };
        branch.drafts.iter().map(member).collect()
    }

    pub(super) fn drafts(&self, branch: &Branch) -> Vec<&BranchDraft> {
        branch.drafts.iter().map(|(index, number)| &self.states[*index].drafts[*number]).collect()
    }

    /// Returns the proposers that have a branch.
    pub(super) fn owners<'s>(&'s self, branch: &'s BranchName) -> impl Iterator<Item = &'s P> {
        let proposers =
            self.states.iter().filter(|state| state.is_open()).map(|state| state.proposal.proposer.as_ref());
        proposers.filter(move |proposer| proposer.branch(branch).is_some())
    }

    /// Returns true if nothing may be pushed now for a proposal that changes a branch.
    pub(super) fn is_held(&self, branch: &Branch) -> bool {
        self.closed(branch).next().is_some()
    }

    /// Returns the proposals that change a branch and may not push now.
    ///
    /// A branch without a change counts for all of its proposals.
    pub(super) fn closed<'s>(&'s self, branch: &'s Branch) -> impl Iterator<Item = ClosedProposal> {
        let changes = |index: usize, proposer: &P| match branch.drafts.as_slice() {
            [] => proposer.branch(&branch.name).is_some(),
            drafts => drafts.iter().any(|(of, _)| *of == index),
        };
        let open = self.states.iter().enumerate().filter(|(_, state)| state.is_open());
        open.map(|(index, state)| (index, &state.proposal)).filter_map(move |(index, proposal)| {
            let delay = changes(index, &proposal.proposer).then(|| proposal.proposer.closed())??;
            Some(ClosedProposal { name: proposal.name.clone(), delay })
        })
    }
}
