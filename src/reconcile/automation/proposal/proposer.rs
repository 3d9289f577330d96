//! The update as the writer uses it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::branch_plan::BranchPlan;
use super::super::compare::View;
use super::super::delivery;
use super::super::findings::SigningResult;
use super::super::proposal_error::ProposalError;
use super::super::pull_requests::{BranchContent, PullRequestRun};
use super::super::reselection::Reselection;
use super::super::transaction::{observed, wanted};
use super::{Detail, UpdateProposal};
use crate::error::chain;
use crate::git::checkout::Revision;
use crate::git::{
    Absence, Authorship, BranchDraft, BranchFacts, BranchName, CommitDraft, CommitPeople, FileChange,
    ForgeSigningError, Freshness, ProposalTrees, Proposer, PushDelay,
};
use crate::update::{
    Checkpoint, FileEdit, FileTree, Interrupt, MarkerIndex, PlanError, Progress, TreePath, divide, edits_in,
    have_values,
};

/// Renders the text of a branch's pull request.
///
/// Without a text there is no pull request, so the branch is not pushed either.
fn check_text(
    run: &PullRequestRun,
    (branch, content): (&BranchName, &BranchContent),
    progress: Progress,
    checkpoint: &mut Checkpoint<'_>,
) -> Result<(), ProposalError> {
    let (checkpoint, interrupt) = (RefCell::new(checkpoint), Cell::new(None));
    let is_interrupted = || {
        interrupt.set((checkpoint.borrow_mut())(progress).err());
        interrupt.get().is_some()
    };
    let checked = run.check_text(branch, content, &is_interrupted);
    match interrupt.get() {
        Some(interrupt) => Err(PlanError::Interrupted(interrupt).into()),
        None => Ok(checked?),
    }
}

impl Proposer for UpdateProposal {
    type Error = ProposalError;

    fn refresh(&mut self) -> Result<Freshness, ProposalError> {
        let Some(request) = self.reselection.as_mut().map(Reselection::select).transpose()?.flatten() else {
            return Ok(self.wait.refresh(&self.policies));
        };
        if let (Some(branches), Some(reselection)) = (&mut self.branches, &self.reselection) {
            branches.select(&request, reselection.policies())?;
        }
        let (policies, wanted) = (observed(&request.update), wanted(&request.update));
        let is_unchanged = (&policies, &wanted) == (&self.policies, &self.wanted);
        self.wait.set_groups(request.groups);
        (self.update, self.unusable) = (request.update, request.unusable);
        (self.policies, self.wanted) = (policies, wanted);
        let as_before = self.wait.refresh(&self.policies);
        Ok(if is_unchanged { as_before } else { Freshness::Changed })
    }

    fn memory(&self) -> u64 {
        u64::try_from(self.reported().max_bytes()).unwrap_or(u64::MAX)
    }

    fn observes_source(&self) -> bool {
        self.places.is_some()
    }

    fn observe_source(
        &mut self,
        revision: &Revision,
        tree: Option<&dyn FileTree>,
        index: &mut MarkerIndex,
        checkpoint: &mut Checkpoint<'_>,
    ) {
        if let Some(places) = &mut self.places {
            places.observe_source(revision, tree, &self.update, index, checkpoint);
        }
    }

    fn observe_signing(&mut self, result: Result<(), Arc<ForgeSigningError>>) {
        self.signing = match result {
            Ok(()) => SigningResult::Signed,
            Err(error) => SigningResult::Unsigned(chain(&*error)),
        };
    }

    fn propose(
        &mut self,
        trees: &ProposalTrees<'_>,
        index: &mut MarkerIndex,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Option<CommitDraft>, ProposalError> {
        let (mut plan, edits) = self.plan_update(trees, index, checkpoint)?;
        self.wait.begin();
        if self.reverts.lacks_baseline {
            return Ok(None);
        }
        self.wait.wait_for_groups(&plan.waiting);
        let change = || self.message.change(&self.update, &plan.result);
        let is_held = !(edits.is_empty() && plan.waiting.is_empty()) && self.wait.hold(change);
        if is_held {
            plan.withhold(|_| true);
        }
        // The plan is kept even if the message fails: it shows what would have changed.
        let plan = self.plan.insert(plan);
        let message = match edits.as_slice() {
            [] => Ok(None),
            _ => self.message.render(&self.update, (plan, &plan.result), checkpoint).map(Some),
        };
        let compared = match (&mut self.compare, &message) {
            (Some(compare), Ok(message)) => {
                let message = message.as_deref();
                let view = View { tree: trees.tree, update: &self.update, plan, edits: &edits, message };
                // The places of the markers are copied, and their values are kept.
                plan.check_memory_for_markers()
                    .map_err(ProposalError::from)
                    .and_then(|()| compare.compare(&view, checkpoint).map_err(ProposalError::Diff))
            }
            _ => Ok(()),
        };
        if self.detail == Detail::Warnings {
            // No memory is reserved any more when the commit is pushed.
            plan.drop_details();
        }
        compared?;
        // A message that cannot be made is an error before the wait ends, too.
        let is_proposed = !is_held && self.compare.is_none();
        let Some(message) = message?.filter(|_| is_proposed) else { return Ok(None) };
        Ok(Some(self.draft(edits, message)))
    }

    fn lacks_baseline(&self) -> bool {
        self.reverts.lacks_baseline
    }

    fn note(&self) -> Option<String> {
        self.reverts.note(&self.policies)
    }

    fn closed(&self) -> Option<PushDelay> {
        self.wait.closed()
    }

    fn has_unparsable(&self) -> bool {
        self.has_unparsable
    }

    fn is_waiting(&self) -> bool {
        self.wait.is_waiting()
    }

    fn branches(&self) -> BTreeMap<BranchName, BranchFacts> {
        self.branches.as_ref().map(BranchPlan::branches).unwrap_or_default()
    }

    fn branch(&self, branch: &BranchName) -> Option<BranchFacts> {
        self.branches.as_ref()?.branch(branch)
    }

    fn propose_branches(
        &mut self,
        trees: &ProposalTrees<'_>,
        index: &mut MarkerIndex,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Vec<BranchDraft>, ProposalError> {
        let (mut plan, edits) = self.plan_update(trees, index, checkpoint)?;
        self.wait.begin();
        if self.reverts.lacks_baseline {
            return Ok(Vec::new());
        }
        self.wait.wait_for_groups(&self.waiting_on_branches(&plan));
        let bundles = self.branches.as_ref().map(|plan| plan.bundles().clone()).unwrap_or_default();
        let groups: Vec<_> = bundles.values().cloned().collect();
        plan.edits = edits;
        let parts = divide(&plan, trees.tree, &self.update, &groups, checkpoint)?;
        plan.edits = Vec::new();
        // The plan is kept even if a message fails: it shows what would have changed.
        let plan = self.plan.insert(plan);
        let (mut drafts, mut contents, mut setters) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        for (branch, part) in bundles.into_keys().zip(parts).filter(|(_, part)| !part.edits.is_empty()) {
            let message = self.message.render(&self.update, (plan, &part.result), checkpoint)?;
            if let Some(run) = &self.pull_requests {
                let content = self.message.content(&self.update, &part.result, &message);
                let progress = Progress { files: plan.files, edits: part.result.edits() };
                check_text(run, (&branch, &content), progress, checkpoint)?;
                contents.insert(branch.clone(), content);
            }
            self.wait.add_branch(branch.clone(), self.message.change(&self.update, &part.result));
            setters.insert(branch.clone(), part.setters());
            drafts.push((branch, part.edits, message));
        }
        if let Some(branches) = &mut self.branches {
            let images = contents.iter().map(|(branch, content)| (branch.clone(), content.images()));
            branches.set_images(images.collect());
            branches.set_setters(setters);
        }
        self.pull_requests.iter_mut().for_each(|run| run.set_contents(std::mem::take(&mut contents)));
        if self.detail == Detail::Warnings {
            // No memory is reserved any more when the commits are pushed.
            plan.drop_details();
        }
        let draft = |(branch, edits, message)| BranchDraft { branch, commit: self.draft(edits, message) };
        Ok(drafts.into_iter().map(draft).collect())
    }

    fn edits_in(
        &self,
        draft: &BranchDraft,
        tree: &dyn FileTree,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Vec<FileEdit>, Interrupt> {
        let Some(bundle) = self.branches.as_ref().and_then(|plan| plan.bundle(&draft.branch)) else {
            return Ok(Vec::new());
        };
        let (setters, limits) = (self.update.setters.restricted_to(bundle), &self.update.limits);
        edits_in(tree, &draft.commit.edits, &setters, (&self.update.held, limits), checkpoint)
    }

    fn has_values(
        &self,
        draft: &BranchDraft,
        tree: &dyn FileTree,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<bool, Interrupt> {
        let plan = self.branches.as_ref();
        let known = plan.and_then(|plan| Some((plan.bundle(&draft.branch)?, plan.setters(&draft.branch)?)));
        let Some((bundle, changed)) = known else { return Ok(false) };
        let (setters, limits) = (self.update.setters.restricted_to(bundle), &self.update.limits);
        let values = (draft.commit.edits.as_slice(), changed);
        have_values(tree, values, &setters, (&self.update.held, limits), checkpoint)
    }

    fn absence(&self, branch: &BranchName, proposal: &str) -> Absence {
        self.siblings.absence(&self.message.automation, branch, proposal)
    }

    fn authorship(&self, people: CommitPeople<'_>) -> Authorship {
        let own = self.author.clone();
        let scope = delivery::OwnershipScope { people: vec![(own.clone(), own)], ..Default::default() };
        if scope.has_people(people) {
            Authorship::Own
        } else if self.signing != SigningResult::NotWanted && people.are_of_app() {
            Authorship::OfApp
        } else {
            Authorship::Others
        }
    }

    fn owns_change(&self, branch: &BranchName, change: FileChange<'_>) -> bool {
        let path = TreePath::from_bytes(change.path);
        self.branches.as_ref().is_some_and(|plan| {
            plan.ownership(branch, &self.author).owns_change(&path, change.old, change.new)
        })
    }
}
