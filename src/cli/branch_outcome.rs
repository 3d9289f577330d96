//! The JSON of an automation's own branches and their pull requests.

use schemars::JsonSchema;
use serde::Serialize;

use crate::git::{BranchAction, BranchOutcome, DropReason, DroppedCommit, LeftReason};
use crate::reconcile::automation::delivery::PullRequestReason;
use crate::reconcile::automation::pull_requests::{OutcomeReason, PullRequestOutcome, PullRequestVerb};

/// One of the automation's own branches.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Branch {
    /// The name.
    branch: String,
    /// The branch on which it is made.
    base: String,
    /// The action on it.
    action: BranchActionKind,
    /// The reason for leaving it alone; absent if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<LeftReasonKind>,
    /// The id of the tip after the run; absent if there is no such branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    tip: Option<String>,
    /// The id of the automation's commit that was pushed; absent if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    /// The action as a sentence.
    pub(super) message: String,
    /// The commits of other automations that it has lost; absent if there are none.
    ///
    /// In a dry run, it would lose them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(super) dropped: Vec<Dropped>,
}

/// The commit of another automation that a branch has lost.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Dropped {
    /// The automation, as `namespace/name`.
    automation: String,
    /// The reason.
    reason: DropReasonKind,
    /// Both as a sentence.
    pub(super) message: String,
}

/// The reason for making a branch anew without the commit of an automation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum DropReasonKind {
    /// It is suspended.
    Suspended,
    /// It was deleted, or has another GitRepository.
    Deleted,
    /// It does not make the branch any more.
    OtherBranch,
    /// It has failed before, and does not succeed.
    Failed,
    /// A person has handed the branch back.
    HandedBack,
}

/// The action on a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum BranchActionKind {
    /// It was created; in a dry run, it would be.
    Created,
    /// It was made anew on the base; in a dry run, it would be.
    Rebuilt,
    /// It is as it should be.
    Kept,
    /// It was left alone.
    Left,
    /// It could not be pushed.
    Failed,
    /// It was deleted; in a dry run, it would be.
    Deleted,
}

/// The reason for leaving a branch alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LeftReasonKind {
    /// It has commits of others.
    EditedByOthers,
    /// Its commits cannot be read, or a marked file of the base cannot be parsed.
    Unreadable,
    /// A person has refused the change.
    ClosedByAPerson,
    /// The forge has not answered about its pull request.
    AwaitingForge,
    /// It is in a merge queue.
    InMergeQueue,
    /// Nothing is left to change on the base.
    NothingLeft,
    /// No policy is delivered on it any more.
    Abandoned,
    /// It may not be pushed yet; `waiting` says why.
    Waiting,
}

/// The pull request of one of the automation's own branches.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PullRequest {
    /// The branch that has the commits.
    branch: String,
    /// The branch into which they are merged.
    base: String,
    /// The number; null if there is no pull request.
    number: Option<u64>,
    /// The address of its page; empty if there is none.
    url: String,
    /// The title.
    pub(super) title: String,
    /// The id of the branch's tip; null if it is unknown.
    commit: Option<String>,
    /// The action as a sentence.
    pub(super) message: String,
    /// The action on it; in a dry run, the one that would be taken.
    action: PullRequestVerb,
    /// The reason, if the action is not the usual one; else null.
    reason: Option<PullRequestReasonKind>,
    /// The body that a dry run would give it; absent in other runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<String>,
    /// Sentences about wishes that the forge refused; absent if there are none.
    ///
    /// Such wishes are a merge and a reviewer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    warnings: Vec<String>,
}

/// The reason of an action on a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PullRequestReasonKind {
    /// A person has refused the change.
    ClosedByAPerson,
    /// It has commits of others.
    EditedByOthers,
    /// It is in a merge queue.
    InMergeQueue,
    /// Another branch, or another pull request of the branch, supersedes it.
    Superseded,
    /// Nothing is left to change on the base.
    NothingLeft,
    /// The forge failed.
    ForgeFailed,
    /// A change may not be made yet.
    Waiting,
}

impl Branch {
    /// Returns its name.
    pub(super) fn name(&self) -> &str {
        &self.branch
    }

    /// Creates the branch of an outcome.
    pub(super) fn of(outcome: &BranchOutcome, base: &str, is_dry_run: bool) -> Self {
        let name = &outcome.branch;
        let commit = outcome.commit.map(|commit| commit.to_string());
        let pushed = || match outcome.commit {
            Some(commit) => format!("pushed commit '{}' to branch '{name}'", commit.short()),
            None if is_dry_run => format!("would push branch '{name}'"),
            // The others are those of other automations.
            None => format!("pushed branch '{name}' without a new commit of this automation"),
        };
        let (action, message) = match &outcome.action {
            BranchAction::Created => (BranchActionKind::Created, pushed()),
            BranchAction::Rebuilt => (BranchActionKind::Rebuilt, pushed()),
            BranchAction::Kept => (BranchActionKind::Kept, format!("branch '{name}' is up-to-date")),
            BranchAction::Left(reason) => (BranchActionKind::Left, format!("branch '{name}' {reason}")),
            BranchAction::Failed { message, is_deletion } => {
                let verb = if *is_deletion { "deleted" } else { "pushed" };
                (BranchActionKind::Failed, format!("branch '{name}' was not {verb}: {message}"))
            }
            BranchAction::Deleted if is_dry_run => {
                (BranchActionKind::Deleted, format!("would delete branch '{name}'"))
            }
            BranchAction::Deleted => (BranchActionKind::Deleted, format!("deleted branch '{name}'")),
        };
        let reason = match &outcome.action {
            BranchAction::Left(reason) => Some(match reason {
                LeftReason::EditedByOthers { .. }
                | LeftReason::SharedWith { .. }
                | LeftReason::OpenElsewhere { .. }
                | LeftReason::OwnedByOthers { .. } => LeftReasonKind::EditedByOthers,
                LeftReason::Unreadable { .. }
                | LeftReason::UnparsableBase
                | LeftReason::UnparsableOf { .. } => LeftReasonKind::Unreadable,
                LeftReason::Refused => LeftReasonKind::ClosedByAPerson,
                LeftReason::AwaitingForge => LeftReasonKind::AwaitingForge,
                LeftReason::InMergeQueue => LeftReasonKind::InMergeQueue,
                LeftReason::Waiting { .. } => LeftReasonKind::Waiting,
                LeftReason::NothingLeft => LeftReasonKind::NothingLeft,
                LeftReason::Abandoned => LeftReasonKind::Abandoned,
            }),
            _ => None,
        };
        let tip = outcome.tip.map(|tip| tip.to_string());
        let dropped = outcome.dropped.iter().zip(outcome.dropped_sentences(is_dry_run));
        let dropped = dropped.map(|(dropped, message)| Dropped::of(dropped, message)).collect();
        Self {
            branch: name.to_string(),
            base: base.to_owned(),
            action,
            reason,
            tip,
            commit,
            message,
            dropped,
        }
    }
}

impl Dropped {
    fn of(dropped: &DroppedCommit, message: String) -> Self {
        let reason = match dropped.reason {
            DropReason::Suspended => DropReasonKind::Suspended,
            DropReason::Gone => DropReasonKind::Deleted,
            DropReason::OtherBranch => DropReasonKind::OtherBranch,
            DropReason::Failed => DropReasonKind::Failed,
            DropReason::HandedBack => DropReasonKind::HandedBack,
        };
        Self { automation: dropped.name.clone(), reason, message }
    }
}

impl PullRequest {
    /// Creates the pull request of an outcome.
    pub(super) fn of(outcome: &PullRequestOutcome, is_dry_run: bool) -> Self {
        let reason = outcome.reason.as_ref().map(|reason| match reason {
            OutcomeReason::Decided(reason) => match reason {
                PullRequestReason::ClosedByPerson => PullRequestReasonKind::ClosedByAPerson,
                PullRequestReason::EditedByOthers
                | PullRequestReason::OwnedByOthers
                | PullRequestReason::OtherBase => PullRequestReasonKind::EditedByOthers,
                PullRequestReason::InMergeQueue => PullRequestReasonKind::InMergeQueue,
                PullRequestReason::Superseded | PullRequestReason::Duplicate => {
                    PullRequestReasonKind::Superseded
                }
                PullRequestReason::NothingLeft => PullRequestReasonKind::NothingLeft,
            },
            OutcomeReason::ForgeFailed(_) | OutcomeReason::NotReached | OutcomeReason::NoText(_) => {
                PullRequestReasonKind::ForgeFailed
            }
            OutcomeReason::Waiting(_) => PullRequestReasonKind::Waiting,
        });
        Self {
            branch: outcome.branch.to_string(),
            base: outcome.base.to_string(),
            number: outcome.number,
            url: outcome.url.clone(),
            title: outcome.title.clone(),
            commit: outcome.commit.map(|commit| commit.to_string()),
            message: outcome.sentence(is_dry_run),
            action: outcome.action,
            reason,
            body: outcome.body.clone(),
            warnings: outcome.warnings(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A refused deletion was called a refused push.
    #[test]
    fn a_failure_is_called_by_its_action() {
        for (is_deletion, verb) in [(false, "pushed"), (true, "deleted")] {
            let outcome = BranchOutcome {
                branch: "tagboat/web".parse().unwrap(),
                action: BranchAction::Failed { message: "no".to_owned(), is_deletion },
                tip: None,
                commit: None,
                message: String::new(),
                dropped: Vec::new(),
            };
            let message = Branch::of(&outcome, "main", false).message;
            assert_eq!(message, format!("branch 'tagboat/web' was not {verb}: no"));
        }
    }
}
