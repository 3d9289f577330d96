//! Further open pull requests of branches that have one.
//!
//! Some forges, such as Gitea, open two if two processes ask for one at the same time.

use super::super::delivery::{OpenPullRequest, PullRequestAction, decide_second};
use super::action::BranchError;
use super::outcome::{OutcomeReason, PullRequestOutcome, PullRequestVerb};
use super::records::is_open;
use super::round::{Round, RoundWork};
use crate::forge::Forge;

impl<F: Forge> Round<'_, F> {
    /// Closes a pull request of ours whose branch has an older one.
    ///
    /// Branch and older pull request stay. Nothing is reported of one that stays open.
    pub(super) async fn work_on_second(
        &self,
        second: &OpenPullRequest,
        work: &mut RoundWork,
    ) -> Result<Option<PullRequestOutcome>, BranchError> {
        let (base, branch) = (&second.base, &second.head);
        let first = work.snapshot.found(base, branch).open.filter(|first| first.number < second.number);
        let Some(first) = first else { return Ok(None) };
        let sharers = self.sharers(second);
        let known = (&self.owners_on(base), &sharers.readable());
        let decision = decide_second(second, first, known, self.limit)?;
        let of = ((base, branch), sharers.orders.as_slice());
        let (decision, _) = self.held(decision, of, &mut work.outcome).await;
        let PullRequestAction::Close(edit) = &decision.action else { return Ok(None) };
        if !self.mode.is_dry_run() {
            if is_open(&self.forge.edit(second, edit).await?.pull_request) {
                return Ok(None);
            }
            work.snapshot.forget_second(second.number);
        }
        Ok(Some(PullRequestOutcome {
            number: Some(second.number),
            url: second.url.clone(),
            title: second.title.clone(),
            reason: decision.reason.map(OutcomeReason::Decided),
            ..PullRequestOutcome::without(branch, base, PullRequestVerb::Closed)
        }))
    }
}
