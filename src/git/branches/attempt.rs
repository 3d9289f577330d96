//! One attempt at the branches of proposals, from the listing to the commits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::beyond::ReadBranch;
use super::decision::{Decision, decide};
use super::model::{
    BranchAction, BranchDraft, BranchFacts, BranchOutcome, ClosedProposal, DroppedCommit, LeftReason, Refresh,
};
use super::stack::stack;
use super::state::BranchState;
use crate::error::chain;
use crate::git::attempt::AttemptOutcome;
use crate::git::attempt::context::AttemptContext;
use crate::git::attempt::deadline::PlanDeadline;
use crate::git::commit::write_commit_of;
use crate::git::commit_error::CommitError;
use crate::git::commit_signer::ForgeSigningError;
use crate::git::error::SyncError;
use crate::git::mirror::Mirror;
use crate::git::name::{BranchName, CommitId};
use crate::git::object;
use crate::git::outcome::{Outcome, message_limit};
use crate::git::pack::{NewObjects, NewPacks};
use crate::git::proposal::{Answer, Failure, Proposal, Proposer};
use crate::git::push_journal::PushJournal;
use crate::git::remote::{ListingQuery, Remote};
use crate::git::server_deadline::ServerDeadline;
use crate::git::source;
use crate::update::{Checkpoint, FileEdit, FileTree, Interrupt};

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
    bystanders: BTreeSet<usize>,
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
    fn find_known_commits(&mut self, journal: &PushJournal) {
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
        self.facts.refused_tip.filter(|tip| is_last(tip) && !self.drafts.is_empty())
    }

    /// Returns true if nothing is wanted of it, and no forge tells its end.
    pub(super) fn may_be_stale(&self) -> bool {
        self.drafts.is_empty() && self.facts.is_deleted_if_stale
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

    /// Returns the answers, once all proposals have one.
    pub(in crate::git) fn answers(self) -> Vec<Answer<P>> {
        self.states.into_iter().map(BranchState::into_answer).collect()
    }

    /// Returns the answers after an error that concerns all proposals without one.
    pub(in crate::git) fn fail(mut self, error: SyncError) -> Vec<Answer<P>> {
        let error = Arc::new(error);
        for state in self.open() {
            state.result = Some(Err(Failure::Sync(error.clone())));
        }
        self.answers()
    }

    /// Makes the attempt.
    pub(in crate::git) fn make(
        &mut self,
        mirror: &mut Mirror,
        remote: &Remote,
        journal: &mut PushJournal,
    ) -> AttemptOutcome {
        let outcome = self.try_to_make(mirror, remote, journal).err().unwrap_or(AttemptOutcome::Done);
        let packs = std::mem::take(&mut self.packs);
        let is_needed = self.states.iter().any(|state| {
            let pending = journal.pending_branches.get(&state.proposal.name);
            pending.is_some_and(|pending| pending.iter().any(|push| push.is_signed_by_forge))
        });
        // What a forge signed may be pushed again. Of other branches, the next run needs only the ids in the journal.
        if is_needed {
            packs.keep();
        } else if packs.remove() {
            // A mirror that cannot be opened fails the next attempt.
            let _ = mirror.release_objects();
        }
        outcome
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
    fn closed<'s>(&'s self, branch: &'s Branch) -> impl Iterator<Item = ClosedProposal> {
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

    /// Decides on each branch, and makes the commits of those that are pushed.
    fn decide_and_commit(
        &mut self,
        branches: &mut [Branch],
        context: &AttemptContext<'_>,
        base: CommitId,
        journal: &mut PushJournal,
    ) -> Result<(), SyncError> {
        let memory = self.open().map(|state| state.proposal.proposer.memory()).max().unwrap_or_default();
        let _permit = context.mirror.enter_pool(memory)?;
        let repository = &context.mirror.repository;
        let database = repository.odb()?;
        let has_room = || context.remote.has_room(context.mirror);
        let mut objects = NewObjects::new(repository, &database)?.limited_by(&has_room);
        let mut failures: BTreeMap<BranchName, String> = BTreeMap::new();
        for branch in &mut *branches {
            let mut deadline = PlanDeadline::new(context.mirror, context.remote.timeout);
            let found = self.find(branch, &mut objects, base, journal, &mut |_| deadline.check());
            let found = match found {
                Ok(found) => found,
                Err(error) => return Err(deadline.into_cancelled().unwrap_or(error)),
            };
            if self.is_refused_there(branch, &objects, journal, &mut |_| deadline.check())? {
                branch.facts.is_refused = true;
            }
            branch.decision = decide(!branch.drafts.is_empty(), &found, branch.tip, branch.facts);
            if branch.decision == Decision::Delete && !self.may_delete(branch, journal) {
                branch.decision = Decision::Leave(LeftReason::NothingLeft);
            }
            branch.decision = self.of_unparsable(branch, repository, journal)?;
            branch.bystanders = self.bystanders(branch, repository, journal)?;
            if matches!(branch.decision, Decision::Rebuild | Decision::Delete) {
                self.add_dropped(branch, journal);
            }
            let is_push = match branch.decision {
                Decision::Create | Decision::Rebuild | Decision::Delete => true,
                // The forge will permit a push, and the wait counts from now on.
                Decision::Leave(LeftReason::AwaitingForge) => !branch.drafts.is_empty(),
                _ => false,
            };
            if is_push {
                let closed: Vec<_> = self.closed(branch).collect();
                if !closed.is_empty() {
                    branch.decision = Decision::Leave(LeftReason::Waiting { closed });
                }
            }
            if let Some(failure) = self.failed.get(&branch.name) {
                failures.insert(branch.name.clone(), failure.clone());
                continue;
            }
            if self.is_dry_run || !matches!(branch.decision, Decision::Create | Decision::Rebuild) {
                continue;
            }
            self.set_times(branch, journal);
            let mut deadline = PlanDeadline::new(context.mirror, context.remote.timeout);
            objects.begin_commit();
            match self.build(branch, &mut objects, base, &mut |_| deadline.check()) {
                Ok(built) => branch.built = Some(built),
                Err(error) => match deadline.into_cancelled().or_else(|| context.too_large(&error)) {
                    Some(shared) => return Err(shared),
                    None if error.is_of_proposal() => {
                        objects.discard_commit();
                        failures.insert(branch.name.clone(), chain(&SyncError::from(error)));
                    }
                    None => return Err(error.into()),
                },
            }
        }
        if branches.iter().any(|branch| branch.built.is_some()) {
            let mut deadline = PlanDeadline::new(context.mirror, context.remote.timeout);
            match objects.finish(&mut |_| deadline.check()) {
                Ok(packs) => self.packs = packs,
                Err(error) => {
                    let shared = deadline.into_cancelled().or_else(|| context.too_large(&error));
                    return Err(shared.unwrap_or_else(|| error.into()));
                }
            }
        }
        for branch in &*branches {
            self.set_outcomes(branch, failures.get(&branch.name));
        }
        Ok(())
    }

    /// Makes the edits of a draft for a tree with other commits of its branch.
    pub(super) fn edits_in(
        &self,
        draft: &BranchDraft,
        branch: &Branch,
        tree: &dyn FileTree,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Vec<FileEdit>, Interrupt> {
        let owner = branch.drafts.iter().find(|(index, number)| {
            std::ptr::eq(&raw const self.states[*index].drafts[*number], std::ptr::from_ref(draft))
        });
        match owner {
            Some((index, _)) => self.states[*index].proposal.proposer.edits_in(draft, tree, checkpoint),
            None => Ok(Vec::new()),
        }
    }

    /// Gives drafts the times of pushes that may still arrive.
    ///
    /// The same change at the same time is the same commit, so nothing is lost if both arrive.
    fn set_times(&mut self, branch: &Branch, journal: &PushJournal) {
        let reference = branch.name.reference();
        for (index, number) in &branch.drafts {
            let state = &mut self.states[*index];
            let pending = journal.pending_branches.get(&state.proposal.name).map(Vec::as_slice);
            let pending = pending
                .unwrap_or_default()
                .iter()
                .rfind(|pending| (&pending.reference, pending.old) == (&reference, branch.tip));
            let commit = &mut state.drafts[*number].commit;
            if let Some(pending) = pending
                && commit.signer.as_ref().is_none_or(|signer| signer.existed_at(pending.time))
            {
                commit.time = pending.time;
            }
        }
    }

    /// Makes the commits of a branch on the base.
    fn build(
        &self,
        branch: &Branch,
        objects: &mut NewObjects<'_>,
        base: CommitId,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Built, CommitError> {
        let drafts = self.drafts(branch);
        let mut tree = object::find_commit(objects.repository(), base)?.tree_id();
        let edits_in = |draft: &BranchDraft, tree: &dyn FileTree, checkpoint: &mut Checkpoint<'_>| {
            self.edits_in(draft, branch, tree, checkpoint)
        };
        let trees = stack(objects, tree, &drafts, &edits_in, checkpoint)?;
        let mut built = Built { tip: base, commits: Vec::new() };
        for ((draft, (index, number)), next) in drafts.iter().zip(&branch.drafts).zip(trees) {
            if next != tree {
                built.tip = write_commit_of(objects, next, built.tip, &draft.commit, checkpoint)?;
                let (proposal, draft) = (*index, *number);
                let (id, is_signed_by_forge, is_there) = (built.tip, false, false);
                built.commits.push(BuiltCommit { proposal, draft, id, is_signed_by_forge, is_there });
            }
            tree = next;
        }
        Ok(built)
    }

    /// Sets the outcomes of a branch before a push.
    fn set_outcomes(&mut self, branch: &Branch, failure: Option<&String>) {
        let is_deleted = self.deleted.contains(&branch.name);
        let action = |decision: Decision| match (decision, failure) {
            (_, Some(message)) => Some(BranchAction::Failed { message: message.clone() }),
            (Decision::Nothing, None) => is_deleted.then_some(BranchAction::Deleted),
            (Decision::Create, None) => Some(BranchAction::Created),
            (Decision::Rebuild, None) => Some(BranchAction::Rebuilt),
            (Decision::Keep, None) => Some(BranchAction::Kept),
            (Decision::Leave(reason), None) => Some(BranchAction::Left(reason)),
            (Decision::Delete, None) => Some(BranchAction::Deleted),
        };
        let reference = branch.name.reference();
        let dropped = self.dropped.get(&branch.name).cloned().unwrap_or_default();
        for (index, state) in self.states.iter_mut().enumerate().filter(|(_, state)| state.is_open()) {
            let Some(facts) = state.proposal.proposer.branch(&branch.name) else { continue };
            let decision = match branch.bystanders.contains(&index) {
                true => branch.decision.clone().of_bystander(facts),
                false => branch.decision.clone(),
            };
            let Some(action) = action(decision) else { continue };
            let mut outcome = BranchOutcome {
                branch: branch.name.clone(),
                action,
                tip: branch.tip,
                commit: None,
                message: String::new(),
                dropped: Vec::new(),
            };
            // A push of an earlier run is reported by this one.
            if let Some(push) = state.arrived.iter().find(|push| push.reference == reference) {
                (outcome.commit, outcome.message) = (Some(push.commit), push.message.clone());
                if outcome.action == BranchAction::Kept {
                    outcome.action =
                        if push.old.is_none() { BranchAction::Created } else { BranchAction::Rebuilt };
                }
            }
            if matches!(outcome.action, BranchAction::Rebuilt | BranchAction::Deleted) {
                outcome.dropped.clone_from(&dropped);
            }
            state.outcomes.insert(branch.name.clone(), outcome);
        }
    }
}
