//! The delivery of a run in its report: status, condition and events.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use tagboat_api::Reason;

use super::super::conclusion::Conclusion;
use super::super::pull_requests::{PullRequestProgress, with_open};
use super::super::report::Report;
use super::{Delivered, ForgeProgress, listed};
use crate::git::BranchOutcome;
use crate::objects::{Event, EventType};
use crate::reconcile::action::Action;
use crate::reconcile::conditions::ConditionStatus::False;
use crate::reconcile::conditions::{ConditionType, ConditionsBuilder, whole_seconds};
use crate::reconcile::run::ReconcileRun;

/// The time to the next run after a branch was left alone for another automation.
pub(super) const AWAITED: Duration = Duration::from_secs(30);

/// The event of a push to a branch.
///
/// The commit keeps it from being announced twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchEvent {
    /// The event.
    pub event: Event,
    /// The commit.
    pub commit: String,
}

impl Delivered {
    /// Returns the event of a push to a branch, in the words of Flux.
    pub(super) fn event(&self, branch: &BranchOutcome) -> Option<BranchEvent> {
        let (commit, name) = (branch.commit?, self.shown(&branch.branch));
        let mut message = format!("pushed commit '{}' to branch '{name}'", commit.short());
        if !branch.message.is_empty() {
            message.push('\n');
            message.push_str(&branch.message);
        }
        let event = Event { type_: EventType::Normal, reason: Reason::Succeeded.to_string(), message };
        Some(BranchEvent { event, commit: commit.to_string() })
    }
}

/// The delivery of a run, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The run ended before the branches were looked at.
    Unknown,
    /// The commits go to the push branch.
    Push,
    /// The automation has branches of its own.
    Branches(Delivered),
}

impl DeliveryOutcome {
    /// Adds the progress of pull requests.
    ///
    /// It comes with the result of git in the run that asked for them: the present run may have found nothing new.
    #[must_use]
    pub fn with_pull_requests(self, known: Option<(PullRequestProgress, &Delivered)>) -> Self {
        let Some((progress, earlier)) = known else { return self };
        let delivered = match self {
            Self::Push => return self,
            Self::Branches(delivered) => delivered,
            Self::Unknown => earlier.without_commits(),
        };
        Self::Branches(Delivered { forge: ForgeProgress::Known(Box::new(progress)), ..delivered })
    }

    /// Returns the progress of the pull requests, if it is known.
    fn progress(&self) -> Option<&PullRequestProgress> {
        match self {
            Self::Branches(Delivered { forge: ForgeProgress::Known(progress), .. }) => Some(progress),
            _ => None,
        }
    }

    /// Returns true if a push is reported.
    pub fn has_pushed(&self) -> bool {
        matches!(self, Self::Branches(delivered) if delivered.pushed().next().is_some())
    }
}

impl Report {
    /// Adds the delivery of a run.
    ///
    /// A delivery that is unknown leaves the condition of an earlier run as it is, unless a branch cannot have its name.
    pub fn with_delivery(
        mut self,
        outcome: &DeliveryOutcome,
        conclusion: &Conclusion,
        run: &ReconcileRun,
        now: Timestamp,
    ) -> Self {
        let mut builder = ConditionsBuilder::new(&self.status.conditions, run.generation);
        let listed = listed(&self.status.conditions);
        if let Some(progress) = outcome.progress() {
            self.pull_request_events = progress.events(&listed);
            self.pull_requests = Some(progress.clone());
        }
        match (outcome, conclusion) {
            (_, Conclusion::Stall(failure)) if failure.reason == Reason::InvalidBranch => {
                let message = with_listed(&failure.message, outcome, &listed);
                builder.set(ConditionType::Delivery, False, Reason::InvalidBranch, &message);
            }
            // The text of a pull request cannot be rendered, so nothing was pushed.
            (_, Conclusion::Failure(failure)) if failure.reason == Reason::InvalidSettings => {
                let message = with_listed(&failure.message, outcome, &listed);
                builder.set(ConditionType::Delivery, False, Reason::InvalidSettings, &message);
            }
            (DeliveryOutcome::Unknown, _) => return self,
            (DeliveryOutcome::Push, _) => builder.remove(ConditionType::Delivery),
            (DeliveryOutcome::Branches(delivered), _) => {
                if delivered.awaits_another() && matches!(conclusion, Conclusion::Success { .. }) {
                    self.action = match self.action {
                        Action::RequeueAfter(interval) => Action::RequeueAfter(interval.min(AWAITED)),
                        _ => Action::RequeueAfter(AWAITED),
                    };
                }
                self.branch_events =
                    delivered.pushed().filter_map(|branch| delivered.event(branch)).collect();
                if let Some(commit) = delivered.pushed().last().and_then(|last| last.commit) {
                    self.status.last_push_commit = Some(commit.to_string());
                    self.status.last_push_time = Some(whole_seconds(now));
                }
                if let Some((status, reason, message)) = delivered.condition(&listed) {
                    builder.set(ConditionType::Delivery, status, reason, &message);
                }
            }
        }
        self.status.conditions = builder.build(&self.status.conditions, now);
        self
    }
}

/// Adds the known list of open pull requests to a message.
///
/// `listed` are those that the condition of an earlier run lists.
fn with_listed(message: &str, outcome: &DeliveryOutcome, listed: &BTreeSet<u64>) -> String {
    match outcome.progress() {
        Some(progress) => progress.with_listed(message),
        None if listed.is_empty() => message.to_owned(),
        None => with_open(message, listed),
    }
}
