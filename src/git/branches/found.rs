//! Finds out what is on the branches of an attempt.

use std::cell::OnceCell;

use super::apps::OwnApp;
use super::attempt::BranchAttempt;
use super::beyond::{BaseHistory, OwnCommit, ReadBranch, unknown_origin};
use super::branch::Branch;
use super::decision::FoundBranch;
use super::landed::may_have_landed;
use super::model::{Absence, Authorship, BranchDraft, BranchFacts, CommitPeople, FileChange, Refresh};
use super::ownership::{foreign_commit, with_people};
use super::shared::{Wanted, compare};
use super::stack::stack;
use crate::git::attempt::context::AttemptContext;
use crate::git::commit_error::CommitError;
use crate::git::error::SyncError;
use crate::git::name::{BranchName, CommitId, RefName};
use crate::git::object;
use crate::git::pack::NewObjects;
use crate::git::proposal::Proposer;
use crate::git::push_journal::{OwnTip, PushJournal};
use crate::update::{Checkpoint, FileTree};

impl<P: Proposer> BranchAttempt<P> {
    /// Reads the commits of branches whose tips the journal does not know.
    ///
    /// Of the others, the commit on which they were made is looked for in the base. Those that may be stale are compared with the
    /// base. All tips are fetched at once.
    pub(super) fn read_unknown(
        &self,
        branches: &mut [Branch],
        context: &AttemptContext<'_>,
        (base, reference): (CommitId, RefName),
        journal: &mut PushJournal,
    ) -> Result<(), SyncError> {
        let mut history = BaseHistory::new(context, base, reference);
        for branch in branches.iter_mut() {
            let Some(own) = branch.tip.and_then(|tip| journal.own_tip(&branch.name, tip)) else { continue };
            if own.base == base || branch.drafts.is_empty() || branch.refresh == Refresh::Always {
                continue;
            }
            let (tip, before) = (own.tip, [own.verified.unwrap_or(own.base), own.base]);
            if history.has(before[0])? || history.has(before[1])? {
                journal.verify_own_tip(&branch.name, tip, base);
            } else {
                branch.has_lost_base = true;
            }
        }
        self.fetch_deleted(branches, context, journal)?;
        let present = branches.iter().filter(|branch| branch.tip.is_some());
        let refused: Vec<CommitId> = present.filter_map(Branch::refused_tip).collect();
        let mut unknown: Vec<(&mut Branch, CommitId, Option<CommitId>)> = Vec::new();
        for branch in branches {
            let BranchFacts { is_finished, has_pull_request, is_deleted_if_stale, .. } = branch.facts;
            let is_settled = branch.facts.is_refused_at(branch.tip) && !has_pull_request;
            let is_of_interest = !is_settled
                && (!branch.drafts.is_empty() || is_finished || has_pull_request || is_deleted_if_stale);
            let Some(tip) = branch.tip.filter(|_| is_of_interest) else { continue };
            let known = journal.own_tip(&branch.name, tip).map(|own| own.base);
            if known.is_none()
                && !branch.may_be_stale()
                && self.is_as_before(&branch.name)
                && let Some(commit) = journal.unreadable.rests(&branch.name.reference(), tip, base)
            {
                branch.read = Some(ReadBranch::Unknown(commit));
                continue;
            }
            // One that we pushed on the present base was not merged since.
            if known.is_none_or(|under| branch.may_be_stale() && under != base) {
                unknown.push((branch, tip, known));
            }
        }
        let tips = unknown.iter().map(|(_, tip, _)| *tip).chain(refused);
        let mut missing: Vec<CommitId> = tips.filter(|tip| !context.mirror.has(*tip)).collect();
        missing.sort_unstable();
        missing.dedup();
        if !missing.is_empty() {
            context.remote.fetch(context.mirror, &missing, context.deadline)?;
        }
        // All proposals of an attempt have the forge's login of one GitRepository.
        let signer = self.states.iter().find_map(|state| Some(&*state.proposal.signing.as_ref()?.signer));
        let app = OwnApp { mirror: context.mirror, journal, signer, known: OnceCell::new() };
        let mut unreadable = Vec::new();
        for (branch, tip, known) in unknown {
            let mut under = known;
            if known.is_none() {
                let is_author = |people: CommitPeople<'_>| {
                    let claims = self.owners(&branch.name).map(|owner| owner.authorship(people));
                    match claims.max().unwrap_or(Authorship::Others) {
                        Authorship::Own => Ok(true),
                        Authorship::OfApp => app.is_author(people),
                        Authorship::Others => Ok(false),
                    }
                };
                let is_ours = |commit| with_people(&context.mirror.repository, commit, is_author)?;
                let read = history.read(tip, &is_ours)?;
                under = match &read {
                    ReadBranch::Beyond(beyond) => Some(beyond.under),
                    ReadBranch::Foreign(_) | ReadBranch::Unreadable(_) | ReadBranch::Unknown(_) => {
                        journal.last_base(&branch.name)
                    }
                };
                let odd = if let ReadBranch::Unknown(commit) = &read { Some(*commit) } else { None };
                unreadable.push((branch.name.reference(), tip, odd));
                branch.read = Some(read);
            }
            if let Some(under) = under.filter(|_| branch.may_be_stale()) {
                branch.has_landed = may_have_landed(context, under, tip, base)?;
            }
        }
        for (reference, tip, odd) in unreadable {
            journal.unreadable.read(reference, (tip, base), odd);
        }
        Ok(())
    }

    /// Returns true if no proposer of a branch has something new.
    ///
    /// A person who asks for a run counts as new.
    fn is_as_before(&self, branch: &BranchName) -> bool {
        let open = self.states.iter().filter(|state| state.is_open());
        let mut owners = open.filter(|state| state.proposal.proposer.branch(branch).is_some());
        owners.all(|state| state.proposal.known.is_unchanged)
    }

    /// Compares a branch with the wanted one.
    pub(super) fn find(
        &self,
        branch: &Branch,
        objects: &mut NewObjects<'_>,
        base: CommitId,
        journal: &mut PushJournal,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<FoundBranch, SyncError> {
        let Some(tip) = branch.tip else { return Ok(FoundBranch::Absent) };
        if branch.has_landed {
            return Ok(FoundBranch::Landed);
        }
        let is_fresh = |below: CommitId| branch.refresh == Refresh::WhenNeeded || below == base;
        if let Some(own) = journal.own_tip(&branch.name, tip) {
            let wanted = Wanted {
                change: &branch.change,
                members: &self.members(branch),
                participants: &self.participants(branch),
                is_fresh: is_fresh(own.base) && !branch.has_lost_base,
            };
            let awaited = |name: &str| match self.absence(branch, name) {
                Absence::Awaited(name) => Some(name),
                Absence::Dropped(_) => None,
            };
            return Ok(compare(own, &wanted, &awaited));
        }
        let beyond = match &branch.read {
            None => return Ok(FoundBranch::Ours),
            Some(ReadBranch::Foreign(commit)) => return Ok(FoundBranch::Others(*commit)),
            Some(ReadBranch::Unreadable(message)) => return Ok(FoundBranch::Unreadable(message.clone())),
            Some(ReadBranch::Unknown(commit)) => return Ok(FoundBranch::Unreadable(unknown_origin(*commit))),
            Some(ReadBranch::Beyond(beyond)) => beyond,
        };
        let repository = objects.repository();
        let tree =
            |commit| -> Result<_, SyncError> { Ok(object::find_commit(repository, commit)?.tree_id()) };
        let drafts = self.drafts(branch);
        let is_same = if drafts.is_empty() || !is_fresh(beyond.under) {
            false
        } else {
            let edits_in = |draft: &BranchDraft, tree: &dyn FileTree, checkpoint: &mut Checkpoint<'_>| {
                self.edits_in(draft, branch, tree, checkpoint)
            };
            match stack(objects, tree(beyond.under)?, &drafts, &edits_in, checkpoint) {
                Ok(trees) => trees.last().copied() == Some(tree(tip)?),
                Err(
                    error @ (CommitError::Objects(_) | CommitError::Interrupted(_) | CommitError::NoSpace),
                ) => {
                    return Err(error.into());
                }
                // The base has another content of a file.
                Err(_) => false,
            }
        };
        let owns = |change: FileChange<'_>| {
            self.owners(&branch.name).any(|owner| owner.owns_change(&branch.name, change))
        };
        Ok(match foreign_commit(repository, beyond, &owns)? {
            None if is_same => {
                let (base, change, members) = (beyond.under, branch.change.clone(), self.members(branch));
                let commits = beyond.commits.iter().rev().map(OwnCommit::commit).collect();
                let own = OwnTip { tip, base, change, members, verified: None, commits };
                journal.add_own_tip(&branch.name, own);
                FoundBranch::Same
            }
            Some(_) if is_same => FoundBranch::Same,
            None => match self.awaited(branch, beyond, repository)? {
                Some(name) => FoundBranch::Shared(name),
                None => FoundBranch::Ours,
            },
            Some(commit) => FoundBranch::Others(commit),
        })
    }
}
