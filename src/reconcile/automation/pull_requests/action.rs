//! The actions of a round on a pull request, as they were decided.

use std::time::Instant;

use tagboat_api::settings::MergeTime;

use super::super::delivery::{Decision, OpenPullRequest, PullRequestAction, TextError, without_parts};
use super::merges::AutoMergeFacts;
use super::outcome::{OutcomeReason, PullRequestOutcome, PullRequestVerb};
use super::refused_labels::RefusedLabels;
use super::round::{Round, RoundMode, RoundWork};
use crate::forge::{
    self, Edited, Forge, ForgeError, Merge, MergeAnswer, PullRequest, PullRequestEdit, PullRequestState,
};
use crate::git::BranchName;

/// The end of an action.
pub(super) enum Done {
    /// There is nothing to report.
    Nothing,
    /// A pull request was found in place of the one that was to be opened.
    Found,
    /// The outcome.
    Outcome(Box<PullRequestOutcome>),
}

/// The error of one branch.
#[derive(Debug, thiserror::Error)]
pub(super) enum BranchError {
    #[error(transparent)]
    Forge(#[from] ForgeError),
    #[error(transparent)]
    Text(#[from] TextError),
}

impl<F: Forge> Round<'_, F> {
    /// Carries a decision out.
    pub(super) async fn carry_out(
        &self,
        decision: &Decision,
        (base, branch): (&BranchName, &BranchName),
        work: &mut RoundWork,
    ) -> Result<Done, BranchError> {
        use PullRequestAction::{Close, Edit, Keep, Leave, Nothing, Open, Refresh};
        let action = match &decision.action {
            Nothing => return Ok(Done::Nothing),
            Open(_) => PullRequestVerb::Opened,
            Keep | Edit(_) => PullRequestVerb::Kept,
            Refresh(_) => PullRequestVerb::Refreshed,
            Close(_) => PullRequestVerb::Closed,
            Leave => PullRequestVerb::Left,
        };
        let mut done = PullRequestOutcome::without(branch, base, action);
        done.reason = decision.reason.map(OutcomeReason::Decided);
        (done.number, done.refused_by) = (decision.number, decision.refused_by);
        let found = work.snapshot.found(base, branch);
        let current = found.open.cloned();
        let refused = found.past.into_iter().flatten().find(|one| Some(one.number) == decision.number);
        if let (None, Some(refused)) = (&current, refused) {
            (done.url, done.title) = (refused.url.clone(), refused.title.clone());
        }
        let current = match current {
            Some(open) => Some(self.without_stale_merge(open, decision, work).await?),
            None => None,
        };
        let after = match (&decision.action, current) {
            (Open(new), _) if self.mode.is_dry_run() => {
                let body = new.completed_body.as_ref().unwrap_or(&new.body);
                (done.title, done.body) = (new.title.clone(), Some(body.clone()));
                return Ok(Done::Outcome(Box::new(done)));
            }
            (Open(new), _) => {
                let opened = self.forge.open(new).await?;
                let (is_new, after) = (opened.is_new, opened.pull_request);
                work.snapshot.put(after.clone(), Instant::now());
                if !is_new {
                    return Ok(Done::Found);
                }
                (done.refused, done.is_opened) = (opened.refused, true);
                work.merges.set_without(after.number);
                after
            }
            (Edit(edit) | Refresh(Some(edit)) | Close(edit), Some(current)) if !self.mode.is_dry_run() => {
                let is_text_recent = work.snapshot.is_recent(self.text_age);
                let edit = &PullRequestEdit { is_text_recent, ..PullRequestEdit::clone(edit) };
                let after = self.edit(&current, edit, &mut done, &mut work.labels).await?;
                if let Some(after) = &after {
                    work.snapshot.put(after.clone(), Instant::now());
                    if after.state != PullRequestState::Open && !edit.is_closed {
                        // A person was faster, which is reported.
                        work.snapshot.look_up(self.forge, base, branch).await?;
                    }
                }
                after.unwrap_or(current)
            }
            (Nothing | Keep | Leave | Edit(_) | Refresh(_) | Close(_), Some(current)) => current,
            (_, None) => return Ok(Done::Outcome(Box::new(done))),
        };
        done.is_open = after.state == PullRequestState::Open;
        (done.number, done.url, done.title) = (Some(after.number), after.url.clone(), after.title.clone());
        if let Some(merge) = decision.merge.as_ref().filter(|_| !self.mode.is_dry_run() && done.is_open) {
            self.merge(after, merge, &mut done, work).await?;
        }
        Ok(Done::Outcome(Box::new(done)))
    }

    /// Cancels the auto-merge of a pull request unless it is wanted as it is.
    ///
    /// One in a merge queue is left there.
    async fn without_stale_merge(
        &self,
        open: OpenPullRequest,
        decision: &Decision,
        work: &mut RoundWork,
    ) -> Result<PullRequest, ForgeError> {
        use PullRequestAction::{Edit, Refresh};
        let is_of_ours =
            self.sharers(&open).orders.iter().any(|order| order.settings.merge == MergeTime::WhenReady);
        let facts = AutoMergeFacts {
            number: open.number,
            shown: self.forge.tells_auto_merge().then_some(open.has_auto_merge),
            wanted: decision.merge.as_ref(),
            has_changes: matches!(decision.action, Edit(_) | Refresh(_)),
            is_of_ours,
        };
        let current = PullRequest::clone(&open);
        // A merge that is put off is judged by the round after the report.
        if self.mode.is_dry_run()
            || self.is_put_off(decision)
            || current.is_in_merge_queue
            || !work.merges.is_to_cancel(&facts)
        {
            return Ok(current);
        }
        self.forge.cancel_merge(&current).await?;
        work.merges.set_without(current.number);
        let after = PullRequest { has_auto_merge: false, ..current };
        if open.has_auto_merge {
            work.snapshot.put(after.clone(), Instant::now());
        }
        Ok(after)
    }

    /// Changes a pull request; returns none if nothing is left to change.
    ///
    /// The permission for labels may be missing alone: the rest goes on, and a later round tries again.
    async fn edit(
        &self,
        current: &PullRequest,
        edit: &PullRequestEdit,
        done: &mut PullRequestOutcome,
        labels: &mut RefusedLabels,
    ) -> Result<Option<PullRequest>, ForgeError> {
        let adds_labels = !edit.added_labels.is_empty();
        let reason = match labels.recent(Instant::now()).filter(|_| adds_labels) {
            Some(reason) => reason.to_owned(),
            None => match self.forge.edit(current, edit).await {
                Err(error @ ForgeError::Forbidden { .. }) if adds_labels => {
                    let reason = format!("labels are missing: {error}");
                    labels.set(reason.clone(), Instant::now());
                    reason
                }
                edited => return edited.map(|edited| Some(noted(edited, done))),
            },
        };
        done.refused.push(reason);
        let rest = without_parts(edit, current, self.limit);
        if rest.changes_nothing() {
            return Ok(None);
        }
        self.forge.edit(current, &rest).await.map(|edited| Some(noted(edited, done)))
    }

    async fn merge(
        &self,
        current: PullRequest,
        merge: &Merge,
        done: &mut PullRequestOutcome,
        work: &mut RoundWork,
    ) -> Result<(), BranchError> {
        if current.has_auto_merge && merge.time == forge::MergeTime::WhenReady {
            return Ok(());
        }
        let number = current.number;
        let known = work.merges.answer(number, merge, Instant::now());
        let orders = self.wanted(&done.base, &done.branch).orders;
        let answer = match known {
            Some(answer) => answer,
            None if !self.is_reported(number, &orders, &mut work.outcome) => {
                let Some(refusal) = work.merges.refusal(number) else { return Ok(()) };
                refusal
            }
            None => {
                work.merges.begin(number, merge);
                let answer = self.forge.merge(&current, merge).await?;
                let is_soon = work.merges.add(number, merge.clone(), answer.clone(), Instant::now());
                work.outcome.has_early_merge |= is_soon;
                answer
            }
        };
        match answer {
            MergeAnswer::Merged => {
                (done.action, done.is_open) = (PullRequestVerb::Merged, false);
                work.snapshot.put(PullRequest { state: PullRequestState::Merged, ..current }, Instant::now());
            }
            MergeAnswer::Scheduled => {
                work.snapshot.put(PullRequest { has_auto_merge: true, ..current }, Instant::now());
            }
            MergeAnswer::NothingRequired => {
                let reason = "the forge requires neither a check nor an approval, so it would merge at once";
                done.merge_refusal = Some(reason.to_owned());
            }
            MergeAnswer::NotYet { reason } => {
                let is_new = matches!(done.action, PullRequestVerb::Opened | PullRequestVerb::Refreshed);
                // A single round comes at a later time than the last one.
                let is_lasting = work.merges.is_lasting(number) || self.mode == RoundMode::Single;
                done.merge_refusal = Some(reason).filter(|_| is_lasting && !is_new);
            }
            MergeAnswer::Blocked { reason } | MergeAnswer::Refused { reason } => {
                done.merge_refusal = Some(reason);
            }
        }
        Ok(())
    }
}

/// Returns a changed pull request, and adds the parts that were refused to the outcome.
fn noted(edited: Edited, done: &mut PullRequestOutcome) -> PullRequest {
    done.refused.extend(edited.refused);
    edited.pull_request
}
