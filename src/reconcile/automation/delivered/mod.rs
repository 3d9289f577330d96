//! The branches of a run as it reports them: status, condition `Delivery`, events.

mod report;
#[cfg(test)]
mod tests;
mod undelivered;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use tagboat_api::automation::ImageUpdateAutomationStatus;
use tagboat_api::{Condition, Reason};

pub use self::report::{BranchEvent, DeliveryOutcome};
pub use self::undelivered::{BranchPolicies, Undelivered};
use super::pull_requests::{PullRequestProgress, open_beside_problem, open_in, with_open};
use super::shown_branch::shown_branch;
use crate::error::ReconcileError;
use crate::git::{BranchAction, BranchName, BranchOutcome, LeftReason};
use crate::reconcile::conditions::ConditionStatus::{self, False, True};
use crate::reconcile::conditions::{ConditionType, ConditionsBuilder};
use crate::secrets::Redactor;

/// The maximum number of branches that a message names.
const NAMED: usize = 5;

/// The branches of a run with delivery by branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The branch that gets the commits in the end.
    pub base: String,
    /// The branches and what was done with each, by name.
    pub branches: Vec<BranchOutcome>,
    /// Policies without a usable branch, a sentence each.
    pub invalid: Vec<String>,
    /// The names of these policies.
    pub without_branch: BTreeSet<String>,
    /// The policies of each branch that the automation renders.
    pub policies: BTreeMap<BranchName, BranchPolicies>,
    /// The progress of the pull requests.
    pub forge: ForgeProgress,
    /// The names of branches as messages show them, where they differ from the names.
    pub shown: BTreeMap<BranchName, String>,
}

/// The progress of the pull requests of branches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForgeProgress {
    /// The branches have no pull requests.
    NotAsked,
    /// The forge has not answered yet.
    Awaited,
    /// The forge has answered, or failed.
    Known(Box<PullRequestProgress>),
}

/// The error of branches that could not be pushed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", more(*.others))]
pub struct UndeliveredBranches {
    /// The error of the first of them.
    message: String,
    /// The number of the others.
    others: usize,
}

fn more(others: usize) -> String {
    match others {
        0 => String::new(),
        1 => "; and another branch".to_owned(),
        _ => format!("; and {others} other branches"),
    }
}

/// Always retryable, as every failure of git.
impl ReconcileError for UndeliveredBranches {}

impl Delivered {
    /// Returns the names of branches as messages show them, where they differ from the names.
    pub fn shown_names(branches: &[BranchOutcome], redactor: &Redactor) -> BTreeMap<BranchName, String> {
        let names = branches.iter().map(|one| (one.branch.clone(), shown_branch(&one.branch, redactor)));
        names.filter(|(name, shown)| name.as_str() != shown).collect()
    }

    /// Returns the name of a branch as messages show it.
    fn shown<'s>(&'s self, branch: &'s BranchName) -> &'s str {
        self.shown.get(branch).map_or(branch.as_str(), String::as_str)
    }

    /// Returns the branches with a commit that this run reports.
    pub fn pushed(&self) -> impl Iterator<Item = &BranchOutcome> {
        self.branches.iter().filter(|branch| branch.commit.is_some())
    }

    /// Returns true if a branch waits for an automation that took no part.
    fn awaits_another(&self) -> bool {
        let awaits = |branch: &BranchOutcome| {
            matches!(branch.action, BranchAction::Left(LeftReason::SharedWith { .. }))
        };
        self.branches.iter().any(awaits)
    }

    /// Returns the error of branches that could not be pushed, if there are any.
    pub fn failure(&self) -> Option<UndeliveredBranches> {
        let mut messages = self.branches.iter().filter_map(|branch| match &branch.action {
            BranchAction::Failed { message, .. } => Some(message),
            _ => None,
        });
        let message = messages.next()?.clone();
        Some(UndeliveredBranches { message, others: messages.count() })
    }

    /// Returns the branches without the commits, which a run has reported.
    pub fn without_commits(&self) -> Self {
        let branch =
            |branch: &BranchOutcome| BranchOutcome { commit: None, dropped: Vec::new(), ..branch.clone() };
        Self { branches: self.branches.iter().map(branch).collect(), ..self.clone() }
    }

    /// Returns the condition's status, reason and message.
    ///
    /// There is none while the forge is awaited. `listed` are the open pull requests in the condition of the last report.
    pub fn condition(&self, listed: &BTreeSet<u64>) -> Option<(ConditionStatus, Reason, String)> {
        if let Some((status, reason, message)) = self.problem() {
            let message = message + &self.undelivered_part(true);
            let message = match &self.forge {
                ForgeProgress::Known(progress) => progress.with_listed(&message),
                ForgeProgress::Awaited if !listed.is_empty() => with_open(&message, listed),
                ForgeProgress::Awaited | ForgeProgress::NotAsked => message,
            };
            return Some((status, reason, message));
        }
        match &self.forge {
            ForgeProgress::NotAsked => Some(self.summary()),
            ForgeProgress::Awaited => None,
            ForgeProgress::Known(progress) => {
                let (status, _, _) = progress.condition();
                Some(progress.condition_with(&self.undelivered_part(status == False)))
            }
        }
    }

    /// Returns a status with the condition `Delivery`.
    #[must_use]
    pub fn on(
        &self,
        status: &ImageUpdateAutomationStatus,
        generation: i64,
        now: Timestamp,
    ) -> ImageUpdateAutomationStatus {
        let mut builder = ConditionsBuilder::new(&status.conditions, generation);
        if let Some((status, reason, message)) = self.condition(&listed(&status.conditions)) {
            builder.set(ConditionType::Delivery, status, reason, &message);
        }
        let conditions = builder.build(&status.conditions, now);
        ImageUpdateAutomationStatus { conditions, ..status.clone() }
    }

    /// Returns the problem that git found, if there is one.
    fn problem(&self) -> Option<(ConditionStatus, Reason, String)> {
        let foreign: Vec<(&BranchName, &LeftReason)> = self
            .branches
            .iter()
            .filter_map(|branch| match &branch.action {
                BranchAction::Left(
                    reason @ (LeftReason::EditedByOthers { .. }
                    | LeftReason::SharedWith { .. }
                    | LeftReason::OpenElsewhere { .. }
                    | LeftReason::OwnedByOthers { .. }
                    | LeftReason::UnparsableOf { .. }
                    | LeftReason::Unreadable { .. }),
                ) => Some((&branch.branch, reason)),
                _ => None,
            })
            .collect();
        if let [(branch, reason), others @ ..] = foreign.as_slice() {
            let retry = match reason {
                LeftReason::SharedWith { .. }
                | LeftReason::Unreadable { .. }
                | LeftReason::OpenElsewhere { .. }
                | LeftReason::OwnedByOthers { .. } => "",
                _ => "; the next retry is when the branch, the base or an image changes",
            };
            let branch = self.shown(branch);
            let message = format!("branch '{branch}' {reason}{}{retry}", more(others.len()));
            return Some((False, Reason::EditedByOthers, message));
        }
        let is_failed = |progress: &PullRequestProgress| progress.condition().0 == False;
        if matches!(&self.forge, ForgeProgress::Known(progress) if is_failed(progress)) {
            return None;
        }
        if let [first, others @ ..] = self.invalid.as_slice() {
            let policies = match others.len() {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            return Some((False, Reason::InvalidBranch, format!("{first}{policies}")));
        }
        None
    }

    /// Returns the condition of branches without a problem.
    fn summary(&self) -> (ConditionStatus, Reason, String) {
        let is_there = |branch: &&BranchOutcome| {
            let is_done =
                matches!(branch.action, BranchAction::Left(LeftReason::NothingLeft | LeftReason::Abandoned));
            branch.tip.is_some() && !is_done
        };
        let present: Vec<&str> =
            self.branches.iter().filter(is_there).map(|branch| self.shown(&branch.branch)).collect();
        let message = match present.as_slice() {
            [] => format!("no branch differs from '{}'", self.base),
            [one] => format!("1 branch: {one}"),
            several => {
                let named = several[..several.len().min(NAMED)].join(", ");
                let rest = if several.len() > NAMED { ", …" } else { "" };
                format!("{} branches: {named}{rest}", several.len())
            }
        };
        (True, Reason::Current, message)
    }
}

/// Returns the open pull requests that the condition of an earlier run lists.
///
/// A condition that names a problem has no list if none was known to be open.
pub fn listed(conditions: &[Condition]) -> BTreeSet<u64> {
    let name = ConditionType::Delivery.to_string();
    match conditions.iter().find(|condition| condition.type_ == name) {
        None => BTreeSet::new(),
        Some(condition) if condition.status == "True" => open_in(&condition.message),
        Some(condition) => open_beside_problem(&condition.message),
    }
}
