//! The branches of a run as it reports them: status, condition `Delivery`, events.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use tagboat_api::automation::ImageUpdateAutomationStatus;
use tagboat_api::{Condition, Reason};

use super::conclusion::Conclusion;
use super::pull_requests::{PullRequestProgress, open_beside_problem, open_in, with_open};
use super::report::Report;
use crate::error::ReconcileError;
use crate::git::{BranchAction, BranchName, BranchOutcome, LeftReason};
use crate::objects::{Event, EventType};
use crate::reconcile::action::Action;
use crate::reconcile::conditions::ConditionStatus::{self, False, True};
use crate::reconcile::conditions::{ConditionType, ConditionsBuilder, whole_seconds};
use crate::reconcile::run::ReconcileRun;

/// The maximum number of branches that a message names.
const NAMED: usize = 5;

/// The time to the next run after a branch was left alone for another automation.
const AWAITED: Duration = Duration::from_secs(30);

/// The branches of a run with delivery by branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The branch that gets the commits in the end.
    pub base: String,
    /// The branches and what was done with each, by name.
    pub branches: Vec<BranchOutcome>,
    /// Policies without a usable branch, a sentence each.
    pub invalid: Vec<String>,
    /// The progress of the pull requests.
    pub forge: ForgeProgress,
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
            BranchAction::Failed { message } => Some(message),
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
    /// There is none while the forge is awaited. `listed` are the open pull requests in the condition of the last report, if
    /// it has a list.
    pub fn condition(&self, listed: Option<&BTreeSet<u64>>) -> Option<(ConditionStatus, Reason, String)> {
        if let Some((status, reason, message)) = self.problem() {
            let message = match (&self.forge, listed) {
                (ForgeProgress::Known(progress), _) => with_open(&message, &progress.listed()),
                (ForgeProgress::Awaited, Some(listed)) => with_open(&message, listed),
                (ForgeProgress::Awaited, None) | (ForgeProgress::NotAsked, _) => message,
            };
            return Some((status, reason, message));
        }
        match &self.forge {
            ForgeProgress::NotAsked => Some(self.summary()),
            ForgeProgress::Awaited => None,
            ForgeProgress::Known(progress) => Some(progress.condition()),
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
        if let Some((status, reason, message)) = self.condition(listed(&status.conditions).as_ref()) {
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
            self.branches.iter().filter(is_there).map(|branch| branch.branch.as_str()).collect();
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

/// Returns a summary of a push to a branch, in the words of Flux.
fn summary(branch: &BranchOutcome) -> Option<BranchEvent> {
    let commit = branch.commit?;
    let mut message = format!("pushed commit '{}' to branch '{}'", commit.short(), branch.branch);
    if !branch.message.is_empty() {
        message.push('\n');
        message.push_str(&branch.message);
    }
    let event = Event { type_: EventType::Normal, reason: Reason::Succeeded.to_string(), message };
    Some(BranchEvent { event, commit: commit.to_string() })
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
            self.pull_request_events = progress.events(listed.as_ref());
            self.pull_requests = Some(progress.clone());
        }
        match (outcome, conclusion) {
            (_, Conclusion::Stall(failure)) if failure.reason == Reason::InvalidBranch => {
                let known = outcome.progress().map(PullRequestProgress::listed);
                let open = known.or_else(|| listed.filter(|open| !open.is_empty()));
                let message = match open {
                    Some(open) => with_open(&failure.message, &open),
                    None => failure.message.clone(),
                };
                builder.set(ConditionType::Delivery, False, Reason::InvalidBranch, &message);
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
                self.branch_events = delivered.pushed().filter_map(summary).collect();
                if let Some(commit) = delivered.pushed().last().and_then(|last| last.commit) {
                    self.status.last_push_commit = Some(commit.to_string());
                    self.status.last_push_time = Some(whole_seconds(now));
                }
                if let Some((status, reason, message)) = delivered.condition(listed.as_ref()) {
                    builder.set(ConditionType::Delivery, status, reason, &message);
                }
            }
        }
        self.status.conditions = builder.build(&self.status.conditions, now);
        self
    }
}

/// Returns the open pull requests that the condition of an earlier run lists.
///
/// There may be no list in a condition that names a problem.
pub fn listed(conditions: &[Condition]) -> Option<BTreeSet<u64>> {
    let name = ConditionType::Delivery.to_string();
    match conditions.iter().find(|condition| condition.type_ == name) {
        None => Some(BTreeSet::new()),
        Some(condition) if condition.status == "True" => Some(open_in(&condition.message)),
        Some(condition) => open_beside_problem(&condition.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::chain;
    use crate::git::CommitId;
    use crate::git::checkout::Revision;
    use crate::git::outcome::Outcome;
    use crate::reconcile::automation::conclusion::{RunFailure, Stage};
    use crate::reconcile::automation::report::report;
    use crate::reconcile::automation::report::tests::status;
    use crate::reconcile::run::tests::{run, short};

    fn commit(digit: &str) -> CommitId {
        digit.repeat(40).parse().unwrap()
    }

    fn branch(name: &str, action: BranchAction, own: Option<&str>) -> BranchOutcome {
        BranchOutcome {
            branch: name.parse().unwrap(),
            action,
            tip: Some(commit("1")),
            commit: own.map(commit),
            message: "Update".to_owned(),
            dropped: Vec::new(),
        }
    }

    fn delivered(branches: Vec<BranchOutcome>) -> Delivered {
        let (base, forge) = ("main".to_owned(), ForgeProgress::NotAsked);
        Delivered { base, branches, invalid: Vec::new(), forge }
    }

    fn now() -> Timestamp {
        "2026-01-01T00:00:05Z".parse().unwrap()
    }

    fn reported(branches: Vec<BranchOutcome>) -> Report {
        let reference = Some("refs/heads/main".parse().unwrap());
        let outcome = Outcome::NothingToCommit { source: Revision { reference, commit: commit("9") } };
        let done = Conclusion::Success { outcome, policies: [].into() };
        let outcome = DeliveryOutcome::Branches(delivered(branches));
        let report = report(&run(1), Duration::ZERO, &status(&[]), &done, now());
        report.with_delivery(&outcome, &done, &run(1), now())
    }

    #[test]
    fn the_status_has_the_commit_of_the_last_branch_and_the_revision_of_the_base() {
        use BranchAction::{Created, Kept, Rebuilt};
        let report = reported(vec![
            branch("a", Created, Some("2")),
            branch("b", Rebuilt, Some("3")),
            branch("c", Kept, None),
        ]);
        assert_eq!(report.status.last_push_commit, Some(commit("3").to_string()));
        assert_eq!(report.status.observed_source_revision, Some(format!("main@sha1:{}", commit("9"))));
        let events: Vec<(&str, &str)> = report
            .branch_events
            .iter()
            .map(|one| (one.event.message.as_str(), one.commit.as_str()))
            .collect();
        let [two, three] = ["2", "3"].map(|digit| commit(digit).to_string());
        assert_eq!(
            events,
            [
                ("pushed commit '2222222' to branch 'a'\nUpdate", two.as_str()),
                ("pushed commit '3333333' to branch 'b'\nUpdate", three.as_str()),
            ]
        );
        let kept = reported(vec![branch("c", Kept, None)]);
        assert_eq!((kept.status.last_push_commit, kept.branch_events), (None, vec![]));
    }

    #[test]
    fn the_condition_names_branches_or_the_commit_of_others() {
        use BranchAction::{Created, Kept, Left};
        let edited = || Left(LeftReason::EditedByOthers { commit: commit("4") });
        let left = |name: &str| branch(name, Left(LeftReason::NothingLeft), None);
        for (branches, expected) in [
            (vec![], "True Current no branch differs from 'main'"),
            (vec![left("a")], "True Current no branch differs from 'main'"),
            (vec![branch("a", Kept, None), left("b")], "True Current 1 branch: a"),
            (
                ["a", "b", "c", "d", "e", "f"].map(|name| branch(name, Created, None)).into(),
                "True Current 6 branches: a, b, c, d, e, …",
            ),
            (
                vec![branch("a", Kept, None), branch("b", edited(), None)],
                "False EditedByOthers branch 'b' has commit 4444444 of others and is left alone; the next retry is when the \
                 branch, the base or an image changes",
            ),
            (
                vec![branch("a", edited(), None), branch("b", edited(), None)],
                "False EditedByOthers branch 'a' has commit 4444444 of others and is left alone; and another branch; the \
                 next retry is when the branch, the base or an image changes",
            ),
        ] {
            let report = reported(branches);
            let conditions = short(&report.status.conditions);
            let found = conditions.iter().find_map(|one| one.strip_prefix("Delivery="));
            assert_eq!(found, Some(expected));
            let done = Conclusion::Success { outcome: Outcome::NothingNew, policies: [].into() };
            let after = |report: Report, outcome| report.with_delivery(outcome, &done, &run(1), now());
            let unknown = after(report.clone(), &DeliveryOutcome::Unknown).status.conditions;
            assert_eq!(short(&unknown), conditions);
            let without = after(report, &DeliveryOutcome::Push).status.conditions;
            assert!(!short(&without).iter().any(|one| one.starts_with("Delivery")));
        }
    }

    /// A process that was killed afterwards did not report what it had opened.
    #[test]
    fn a_stall_by_the_name_of_a_branch_reports_pull_requests_and_lists_them() {
        let stall = Conclusion::Stall(RunFailure {
            stage: Stage::Source,
            reason: Reason::InvalidBranch,
            message: "no branch".to_owned(),
            hint: None,
            pushed: None,
        });
        let shown = |outcome: &DeliveryOutcome| {
            let report = report(&run(1), Duration::ZERO, &status(&[]), &stall, now());
            let report = report.with_delivery(outcome, &stall, &run(1), now());
            let conditions = short(&report.status.conditions);
            let found = conditions.iter().find_map(|one| one.strip_prefix("Delivery=")).unwrap().to_owned();
            (found, report.pull_requests.is_some())
        };
        let known = (PullRequestProgress::default(), &delivered(Vec::new()));
        let known = DeliveryOutcome::Unknown.with_pull_requests(Some(known));
        for (outcome, message, is_reported) in
            [(DeliveryOutcome::Unknown, "no branch", false), (known, "no branch; 0 open", true)]
        {
            assert_eq!(shown(&outcome), (format!("False InvalidBranch {message}"), is_reported));
        }
    }

    #[test]
    fn a_branch_that_waits_for_another_automation_names_it_and_is_tried_again_soon() {
        let shared = LeftReason::SharedWith { name: "shop/two".to_owned() };
        let report = reported(vec![branch("a", BranchAction::Left(shared), None)]);
        let name = ConditionType::Delivery.to_string();
        let found = report.status.conditions.iter().find(|condition| condition.type_ == name).unwrap();
        let expected = "branch 'a' is left alone, because it has a commit of automation shop/two, which took no part in this \
            run or failed, or has a policy without an image; a run in which all automations of the branch succeed makes it anew";
        assert_eq!((found.reason.as_str(), found.message.as_str()), ("EditedByOthers", expected));
        assert_eq!(report.action, Action::RequeueAfter(AWAITED));
        let kept = reported(vec![branch("a", BranchAction::Kept, None)]);
        assert_ne!(kept.action, report.action);
    }

    #[test]
    fn a_problem_of_git_keeps_the_list_of_open_pull_requests() {
        let edited = BranchAction::Left(LeftReason::EditedByOthers { commit: commit("4") });
        let problem = delivered(vec![branch("a", edited, None)]);
        let message = |forge, listed: Option<&[u64]>| {
            let listed = listed.map(|listed| listed.iter().copied().collect());
            Delivered { forge, ..problem.clone() }.condition(listed.as_ref()).unwrap().2
        };
        let plain = message(ForgeProgress::NotAsked, Some(&[]));
        assert!(plain.ends_with(" or an image changes"), "{plain}");
        for (forge, listed, end) in [
            (ForgeProgress::Awaited, Some(&[12, 14][..]), "; 2 open: #12, #14"),
            (ForgeProgress::Awaited, Some(&[]), "; 0 open"),
            (ForgeProgress::Awaited, None, ""),
            (ForgeProgress::Known(Box::default()), Some(&[12]), "; 0 open"),
        ] {
            assert_eq!(message(forge, listed), format!("{plain}{end}"));
        }
        let known = reported(vec![branch("a", BranchAction::Kept, None)]).status.conditions.remove(0);
        let of = |status: &str, message: &str| Condition {
            type_: "Delivery".to_owned(),
            status: status.to_owned(),
            message: message.to_owned(),
            ..known.clone()
        };
        let found = |conditions: &[Condition]| listed(conditions).map(|open| open.into_iter().collect());
        assert_eq!(found(&[]), Some(vec![]));
        assert_eq!(found(&[of("True", "1 open: #7; refused by a person: #9")]), Some(vec![7]));
        assert_eq!(found(&[of("False", &format!("{plain}; 1 open: #7"))]), Some(vec![7]));
        assert_eq!(found(&[of("False", &plain)]), None);
    }

    #[test]
    fn a_failure_names_the_first_branch_and_counts_the_others() {
        let failed =
            |name: &str| branch(name, BranchAction::Failed { message: format!("{name} was refused") }, None);
        let kept = || branch("z", BranchAction::Kept, None);
        for (branches, expected) in [
            (vec![kept()], None),
            (vec![failed("a"), kept()], Some("a was refused")),
            (vec![failed("a"), failed("b")], Some("a was refused; and another branch")),
            (vec![failed("a"), failed("b"), failed("c")], Some("a was refused; and 2 other branches")),
        ] {
            let failure = delivered(branches).failure();
            assert_eq!(failure.as_ref().map(|failure| chain(failure)).as_deref(), expected);
        }
    }
}
