//! Branches with open pull requests that no automation renders any more.

use std::collections::BTreeSet;

use super::super::delivery::{
    OpenPullRequest, OtherBranch, PullRequestAction, UnwantedPullRequest, decide_unwanted,
};
use super::action::{BranchError, Done};
use super::outcome::{PullRequestOutcome, PullRequestVerb};
use super::round::{Round, RoundOutcome, RoundWork};
use super::snapshot::Snapshot;
use super::wanted::judged;
use crate::forge::{Forge, PullRequest, PullRequestState};
use crate::git::BranchName;

impl<F: Forge> Round<'_, F> {
    /// Returns the branches with open pull requests of these automations that none of them renders.
    pub(super) fn unwanted(
        &self,
        base: &BranchName,
        rendered: &BTreeSet<BranchName>,
        snapshot: &Snapshot,
    ) -> Vec<BranchName> {
        let own = snapshot.branches_of_any(base, &self.owners_on(base));
        own.into_iter().filter(|branch| !rendered.contains(branch)).collect()
    }

    /// Returns the branches whose pull requests a dry run takes for open and current.
    pub(super) fn would_deliver(&self, base: &BranchName, outcome: &RoundOutcome) -> BTreeSet<BranchName> {
        let is_delivered = |one: &&PullRequestOutcome| {
            let is_current = matches!(
                one.action,
                PullRequestVerb::Opened | PullRequestVerb::Refreshed | PullRequestVerb::Kept
            );
            self.mode.is_dry_run() && one.base == *base && is_current
        };
        outcome.branches.values().filter(is_delivered).map(|one| one.branch.clone()).collect()
    }

    /// Works on a branch that no automation renders.
    ///
    /// `would_deliver` are the branches whose pull requests a dry run takes for open and current.
    pub(super) async fn work_on_unwanted(
        &self,
        (base, branch): (&BranchName, &BranchName),
        would_deliver: &BTreeSet<BranchName>,
        work: &mut RoundWork,
    ) -> Result<Option<PullRequestOutcome>, BranchError> {
        let open = work.snapshot.open.get(&(base.clone(), branch.clone()));
        let Some(open) = open.cloned() else { return Ok(None) };
        let sharers = self.sharers(&open);
        if let Some(labelled) = work.snapshot.handed_back((base, branch), &self.owners_on(base))
            && self.may_take_back((base, branch), &sharers.orders, &mut work.outcome).await
        {
            work.snapshot.take_back(self.forge, &labelled, self.mode.is_dry_run()).await?;
        }
        // Git looks at the branch in the next run; until then, commits of others may be on it.
        let Some(state) = sharers.state(branch) else { return Ok(None) };
        let wanted = sharers.changes();
        let others: Vec<OtherBranch<'_>> = wanted
            .iter()
            .map(|(branch, images)| {
                let memory = work.snapshot.found(base, branch).open.and_then(OpenPullRequest::memory);
                let told = memory.map(|memory| &memory.images);
                let told = if would_deliver.contains(branch) { Some(images) } else { told };
                OtherBranch { branch, images, told }
            })
            .collect();
        let decision = decide_unwanted(&UnwantedPullRequest {
            pull_request: &open,
            branch: state,
            judged: judged(&sharers.orders, branch),
            owners: &self.owners_on(base),
            readable: &sharers.readable(),
            others: &others,
            limit: self.limit,
        })?;
        let of = ((base, branch), sharers.orders.as_slice());
        let (decision, withheld) = self.held(decision, of, &mut work.outcome).await;
        match self.carry_out(&decision, (base, branch), work).await? {
            Done::Outcome(done) => {
                let done = done.with_withheld(withheld);
                if let PullRequestAction::Close(edit) = decision.action
                    && !self.mode.is_dry_run()
                    && !done.is_open
                {
                    let state = PullRequestState::Closed;
                    let mut closed = PullRequest { state, ..PullRequest::clone(&open) };
                    edit.body.into_iter().for_each(|body| closed.body = body);
                    work.snapshot.close_unwanted(&closed);
                }
                Ok(Some(done))
            }
            Done::Nothing | Done::Found => Ok(None),
        }
    }
}
