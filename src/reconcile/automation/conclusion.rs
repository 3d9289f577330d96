//! The conclusion of a run, before it is reported.

use std::collections::BTreeMap;

use tagboat_api::{ImageRef, Reason};

use crate::error::{ReconcileError, chain};
use crate::git::outcome::Outcome;
use crate::git::{BranchName, CommitId, SyncError};
use crate::rollout::before::{CHECKOUT_FAILED, PUSH_FAILED};

/// The stages of a run, in their order (`docs/flux-behaviour.md`, A reconcile).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The policies are listed and selected.
    Policies,
    /// The source is configured.
    Source,
    /// The source is read.
    Checkout,
    /// The files are updated.
    Update,
    /// The commit is made and pushed.
    Push,
}

impl Stage {
    const ALL: [Self; 5] = [Self::Policies, Self::Source, Self::Checkout, Self::Update, Self::Push];

    /// Returns the stages that have passed when a run stops at this one.
    pub fn before(self) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |stage| *stage < self)
    }

    /// Returns the reasons of Ready that no longer hold once the stage has passed.
    pub fn settles(self) -> &'static [Reason] {
        match self {
            Self::Policies => &[Reason::InvalidPolicySelector],
            Self::Source => &[
                Reason::AccessDenied,
                Reason::InvalidSourceConfiguration,
                Reason::SourceManagerFailed,
                Reason::FeatureGateDisabled,
            ],
            Self::Checkout | Self::Push => &[Reason::GitOperationFailed],
            Self::Update => &[Reason::InvalidUpdateStrategy, Reason::UpdateFailed],
        }
    }

    /// Returns the reason of a failure that is retried, and the beginning of its message.
    fn failure(self) -> (Reason, &'static str) {
        match self {
            Self::Policies => (Reason::Failed, "failed to list policies"),
            Self::Source => (Reason::SourceManagerFailed, "failed configuring source manager"),
            Self::Checkout => (Reason::GitOperationFailed, CHECKOUT_FAILED),
            Self::Update => (Reason::UpdateFailed, "failed to apply policies"),
            Self::Push => (Reason::GitOperationFailed, PUSH_FAILED),
        }
    }
}

/// The conclusion of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// All stages passed.
    Success {
        /// The outcome in git.
        outcome: Outcome,
        /// The images that were set, by the name of their policy.
        policies: BTreeMap<String, ImageRef>,
    },
    /// The run stopped, and only a change of an object helps.
    Stall(RunFailure),
    /// The run stopped, and is retried.
    Failure(RunFailure),
}

/// The failure of a run, before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFailure {
    /// The stage that did not pass.
    pub stage: Stage,
    /// The reason in one word.
    pub reason: Reason,
    /// The reason in a sentence.
    pub message: String,
    /// Advice for a person, in logs and on terminals; a status has the message alone.
    pub hint: Option<String>,
    /// The commit that was pushed before the run stopped.
    pub pushed: Option<PushedCommit>,
}

/// A commit that a run has pushed before it stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedCommit {
    /// The commit.
    pub commit: CommitId,
    /// The branch that has it.
    pub branch: BranchName,
    /// Its message; a very long one is cut.
    pub message: String,
}

impl PushedCommit {
    /// Returns the commit that was pushed before an error.
    pub fn before(error: &SyncError) -> Option<Self> {
        let SyncError::RefspecRefused { commit, branch, message: Some(message), .. } = error else {
            return None;
        };
        Some(Self { commit: *commit, branch: branch.clone(), message: message.clone() })
    }
}

impl RunFailure {
    /// Returns the message and the hint.
    pub fn full_message(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {hint}", self.message),
            None => self.message.clone(),
        }
    }
}

impl Conclusion {
    /// Creates the conclusion of a run that a defect of ours ended.
    ///
    /// The defect was reported on standard error.
    pub fn internal_error() -> Self {
        let message = "failed to update source: internal error of tagboat; please report it with the output on \
                       standard error";
        let reason = Reason::GitOperationFailed;
        Self::Failure(RunFailure {
            stage: Stage::Push,
            reason,
            message: message.to_owned(),
            hint: None,
            pushed: None,
        })
    }

    /// Makes the conclusion of a run that was cancelled before its transaction began.
    pub fn cancelled() -> Self {
        Self::stopped(Stage::Checkout, &SyncError::Cancelled)
    }

    /// Makes the conclusion of a run that an error stopped at a stage.
    ///
    /// An error that stalls keeps its own reason. One that is retried gets that of the stage, as in Flux
    /// (`docs/flux-behaviour.md`, Failures).
    pub fn stopped(stage: Stage, error: &(impl ReconcileError + 'static)) -> Self {
        if error.is_retryable() {
            let (reason, message) = stage.failure();
            Self::Failure(RunFailure {
                stage,
                reason,
                message: format!("{message}: {}", chain(error)),
                hint: None,
                pushed: None,
            })
        } else {
            Self::Stall(RunFailure {
                stage,
                reason: error.reason(),
                message: chain(error),
                hint: None,
                pushed: None,
            })
        }
    }

    /// Replaces the reason, if the run stopped.
    #[must_use]
    pub fn with_reason(mut self, reason: Reason) -> Self {
        if let Self::Stall(failure) | Self::Failure(failure) = &mut self {
            failure.reason = reason;
        }
        self
    }

    /// Adds a hint, if there is one and the run stopped.
    #[must_use]
    pub fn with_hint(mut self, hint: Option<&str>) -> Self {
        if let Self::Stall(failure) | Self::Failure(failure) = &mut self {
            failure.hint = hint.map(str::to_owned);
        }
        self
    }

    /// Adds the commit that was pushed before the run stopped, if there is one.
    #[must_use]
    pub fn with_pushed(mut self, pushed: Option<PushedCommit>) -> Self {
        if let Self::Stall(failure) | Self::Failure(failure) = &mut self {
            failure.pushed = pushed;
        }
        self
    }

    /// Returns the commit that was pushed before the run stopped, if there is one.
    pub fn pushed(&self) -> Option<&PushedCommit> {
        match self {
            Self::Success { .. } => None,
            Self::Stall(failure) | Self::Failure(failure) => failure.pushed.as_ref(),
        }
    }

    /// Returns the message with its hint, if the run stopped and there is a hint.
    pub fn hinted(&self) -> Option<String> {
        match self {
            Self::Stall(failure) | Self::Failure(failure) if failure.hint.is_some() => {
                Some(failure.full_message())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("it went wrong")]
    struct Wrong {
        is_retryable: bool,
        #[source]
        cause: std::fmt::Error,
    }

    impl ReconcileError for Wrong {
        fn reason(&self) -> Reason {
            Reason::RemovedTemplateField
        }

        fn is_retryable(&self) -> bool {
            self.is_retryable
        }
    }

    #[test]
    fn a_failure_is_called_by_its_stage_and_a_stall_by_its_error() {
        const CAUSE: &str = "it went wrong: an error occurred when formatting an argument";
        for (stage, reason, message) in [
            (Stage::Policies, Reason::Failed, "failed to list policies: "),
            (Stage::Source, Reason::SourceManagerFailed, "failed configuring source manager: "),
            (Stage::Checkout, Reason::GitOperationFailed, "failed to checkout source: "),
            (Stage::Update, Reason::UpdateFailed, "failed to apply policies: "),
            (Stage::Push, Reason::GitOperationFailed, "failed to update source: "),
        ] {
            let failure = Conclusion::stopped(stage, &Wrong { is_retryable: true, cause: std::fmt::Error });
            assert_eq!(
                failure,
                Conclusion::Failure(RunFailure {
                    stage,
                    reason,
                    message: format!("{message}{CAUSE}"),
                    hint: None,
                    pushed: None,
                })
            );
            let stall = Conclusion::stopped(stage, &Wrong { is_retryable: false, cause: std::fmt::Error });
            let reason = Reason::RemovedTemplateField;
            assert_eq!(
                stall,
                Conclusion::Stall(RunFailure {
                    stage,
                    reason,
                    message: CAUSE.to_owned(),
                    hint: None,
                    pushed: None
                })
            );
        }
    }

    #[test]
    fn earlier_stages_are_listed_before_a_stage() {
        let before: Vec<Stage> = Stage::Update.before().collect();
        assert_eq!(before, [Stage::Policies, Stage::Source, Stage::Checkout]);
        assert_eq!(Stage::Policies.before().count(), 0);
    }
}
