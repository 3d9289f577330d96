//! The error of an update that cannot be proposed.

use tagboat_api::Reason;

use super::branch_plan::BranchPlanError;
use super::conclusion::Stage;
use super::delivery::TextError;
use super::request::RequestError;
use crate::error::ReconcileError;
use crate::message::TemplateError;
use crate::update::diff::DiffError;
use crate::update::{PlanError, ScopeError};

/// The error of an update that cannot be proposed.
#[derive(Debug, thiserror::Error)]
pub enum ProposalError {
    /// The automation's spec cannot be reconciled any more.
    #[error(transparent)]
    Selection(#[from] RequestError),
    /// The automation's own branches cannot be named.
    #[error(transparent)]
    Branches(#[from] BranchPlanError),
    /// There is nothing at `update.path`. These are Flux's words.
    #[error("walking path for files: lstat {}: no such file or directory", path.escape_debug())]
    NoPath {
        /// The path as given.
        path: String,
        /// The path as the plan gives it.
        cause: PlanError,
    },
    /// There is no plan.
    #[error(transparent)]
    Plan(PlanError),
    /// A file cannot be read again to show what changes in it.
    #[error("cannot show the changes")]
    Diff(#[source] DiffError),
    /// The template of the message cannot be parsed or rendered.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The text of a pull request cannot be rendered.
    #[error(transparent)]
    Text(#[from] TextError),
}

impl ProposalError {
    /// Returns the stage at which the run stops.
    pub fn stage(&self) -> Stage {
        match self {
            Self::Selection(error) => stage_of(error),
            Self::Branches(_) => Stage::Source,
            Self::NoPath { .. } | Self::Plan(_) | Self::Diff(_) => Stage::Update,
            Self::Template(_) | Self::Text(_) => Stage::Push,
        }
    }
}

impl From<PlanError> for ProposalError {
    fn from(cause: PlanError) -> Self {
        match &cause {
            PlanError::Scope(ScopeError::NotFound { path }) => Self::NoPath { path: path.clone(), cause },
            _ => Self::Plan(cause),
        }
    }
}

/// Reasons are Flux's (`docs/flux-behaviour.md`, Failures).
///
/// The next commit may add a missing path, repair a link or a file, or have fewer changes, but no commit makes a path lead
/// back into the repository.
impl ReconcileError for ProposalError {
    fn reason(&self) -> Reason {
        match self {
            Self::Selection(error) => error.reason(),
            Self::Branches(error) => error.reason(),
            _ => Reason::UpdateFailed,
        }
    }

    fn is_retryable(&self) -> bool {
        !matches!(
            self,
            Self::Selection(_) | Self::Branches(_) | Self::Plan(PlanError::Scope(ScopeError::Escapes { .. }))
        )
    }
}

/// Flux validates the strategy last.
pub(super) fn stage_of(error: &RequestError) -> Stage {
    match error {
        RequestError::UnsupportedUpdateStrategy { .. } => Stage::Update,
        _ => Stage::Policies,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update::{Interrupt, SkipReason};

    #[test]
    fn only_a_defect_in_the_spec_and_a_path_that_leads_out_stall() {
        let path = || "apps".to_owned();
        let planned = |error: ScopeError| ProposalError::from(PlanError::from(error));
        for (error, stalled) in [
            (RequestError::LargeValues.into(), Some(Reason::InvalidSourceConfiguration)),
            (planned(ScopeError::Escapes { path: path() }), Some(Reason::UpdateFailed)),
            (planned(ScopeError::NotFound { path: path() }), None),
            (planned(ScopeError::Link { path: path(), cause: SkipReason::Loop }), None),
            (PlanError::Interrupted(Interrupt::Cancelled).into(), None),
            (ProposalError::Diff(DiffError::TooLong { limit: 1 }), None),
        ] {
            let reason = (!error.is_retryable()).then(|| error.reason());
            assert_eq!(reason, stalled, "{error}");
        }
    }
}
