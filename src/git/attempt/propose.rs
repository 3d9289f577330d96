//! The commit of one proposal, with the source and the baseline that its proposer reads.

use super::context::AttemptContext;
use super::deadline::PlanDeadline;
use super::proposal_state::{ProposalState, ProposedCommit};
use crate::git::baseline::BaselineCommit;
use crate::git::commit::write_commit;
use crate::git::error::SyncError;
use crate::git::name::CommitId;
use crate::git::outcome::excerpt;
use crate::git::pack::NewObjects;
use crate::git::proposal::{Failure, Proposal, Proposer};
use crate::git::push_journal::PushJournal;
use crate::git::tree::GitTree;
use crate::update::{FileTree, MarkerIndex};

/// The marker index and the new objects, which the proposals of an attempt share.
pub(super) struct SharedObjects<'i, 'o> {
    /// The marker index of the mirror.
    pub(super) index: &'i mut MarkerIndex,
    /// The objects that are made.
    pub(super) objects: NewObjects<'o>,
}

impl<P: Proposer> ProposalState<P> {
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
}
