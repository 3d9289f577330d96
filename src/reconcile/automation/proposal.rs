//! An update as a proposal to git.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use tagboat_api::settings::TemplateLanguage;
use tagboat_api::{ImageRef, Reason};

use super::compare::{CompareRun, View};
use super::conclusion::Stage;
use super::findings::Findings;
use super::places::PlaceScan;
use super::request::{RequestError, UnusableImage};
use super::reselection::Reselection;
use super::transaction::{observed, stage_of};
use crate::cloud::GitLoginEntry;
use crate::error::ReconcileError;
use crate::git::checkout::Revision;
use crate::git::{Author, CommitDraft, CommitTime, Freshness, Proposer, SigningKey};
use crate::message::{DEFAULT_MESSAGE, Template, TemplateError, UpdateData, truncated};
use crate::objects::ObjectName;
use crate::update::diff::{self, DiffError};
use crate::update::{
    Checkpoint, FileTree, MarkerIndex, OwnMarkers, PlanError, Progress, ReportedMarkers, ScopeError,
    UpdatePlan, UpdateRequest, plan,
};

/// The level of detail in the findings of a reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Only the markers whose severity is a warning.
    ///
    /// With all markers, many automations on one large repository would each hold the same long list.
    Warnings,
    /// Every marker.
    Everything,
    /// Every marker, and the changes as a diff.
    Diff,
}

/// Updates a tree and proposes the result as a commit.
#[derive(Debug)]
pub struct UpdateProposal {
    /// The update.
    pub update: UpdateRequest,
    /// The author and committer.
    pub author: Author,
    /// The source of the commit's message.
    pub message: MessageSource,
    /// The time of the commit.
    pub time: CommitTime,
    /// The key that signs the commit.
    pub signer: Option<SigningKey>,
    /// Policies whose images cannot be used.
    pub unusable: Vec<UnusableImage>,
    /// The images that count, by the name of their policy.
    pub policies: BTreeMap<String, ImageRef>,
    /// The cache entry of a provider's login, which a server may refuse.
    pub login: Option<GitLoginEntry>,
    /// Selects the images again after a wait; none if they cannot change meanwhile.
    pub reselection: Option<Reselection>,
    /// The level of detail in the findings.
    pub detail: Detail,
    /// The scan for places, if rollouts are reported.
    pub places: Option<PlaceScan>,
    /// The comparison, if another controller commits and this one does not.
    pub compare: Option<CompareRun>,
    /// The last plan; without detail, only the number of its files.
    pub plan: Option<UpdatePlan>,
    /// The problems that the last plan found.
    pub findings: Option<Findings>,
    /// The changes of the last plan as a unified diff.
    pub diff: Option<String>,
}

impl UpdateProposal {
    /// Returns the selection of markers that a plan reports.
    ///
    /// A comparison with another controller's values needs those of all markers.
    fn reported(&self) -> ReportedMarkers {
        let is_brief = self.detail == Detail::Warnings && self.compare.is_none();
        if is_brief { ReportedMarkers::Warnings } else { ReportedMarkers::All }
    }
}

/// The source of a commit's message, besides the changes.
#[derive(Clone, Debug)]
pub struct MessageSource {
    /// The automation.
    pub automation: ObjectName,
    /// `messageTemplateValues`.
    pub values: BTreeMap<String, String>,
    /// The template, if there is one.
    pub template: Option<String>,
    /// The language of the template.
    pub language: TemplateLanguage,
}

impl MessageSource {
    /// Renders the message of a plan.
    ///
    /// As in Flux, the template is not read before there is something to commit.
    fn render(
        &self,
        update: &UpdateRequest,
        plan: &UpdatePlan,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Vec<u8>, ProposalError> {
        let Some(template) = &self.template else { return Ok(DEFAULT_MESSAGE.into()) };
        let images = update.setters.images().collect();
        let (automation, values, result) = (&self.automation, &self.values, &plan.result);
        let update = UpdateData { automation, values, result, images: &images };
        let template = Template::compile(template, self.language)?;
        let progress = Progress { files: plan.files, edits: plan.result.edits() };
        let (checkpoint, interrupt) = (RefCell::new(checkpoint), Cell::new(None));
        let is_interrupted = || {
            interrupt.set((checkpoint.borrow_mut())(progress).err());
            interrupt.get().is_some()
        };
        let rendered = template.render_update(&update, plan.remaining_bytes, &is_interrupted);
        match interrupt.get() {
            Some(interrupt) => Err(PlanError::Interrupted(interrupt).into()),
            None => Ok(truncated(rendered?)),
        }
    }
}

/// The error of an update that cannot be proposed.
#[derive(Debug, thiserror::Error)]
pub enum ProposalError {
    /// The automation's spec cannot be reconciled any more.
    #[error(transparent)]
    Selection(#[from] RequestError),
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
}

impl ProposalError {
    /// Returns the stage at which the run stops.
    pub fn stage(&self) -> Stage {
        match self {
            Self::Selection(error) => stage_of(error),
            Self::NoPath { .. } | Self::Plan(_) | Self::Diff(_) => Stage::Update,
            Self::Template(_) => Stage::Push,
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
            _ => Reason::UpdateFailed,
        }
    }

    fn is_retryable(&self) -> bool {
        !matches!(self, Self::Selection(_) | Self::Plan(PlanError::Scope(ScopeError::Escapes { .. })))
    }
}

impl Proposer for UpdateProposal {
    type Error = ProposalError;

    fn refresh(&mut self) -> Result<Freshness, ProposalError> {
        let Some(request) = self.reselection.as_mut().map(Reselection::select).transpose()?.flatten() else {
            return Ok(Freshness::Unchanged);
        };
        let policies = observed(&request.update);
        let is_unchanged = policies == self.policies;
        (self.update, self.unusable, self.policies) = (request.update, request.unusable, policies);
        Ok(if is_unchanged { Freshness::Unchanged } else { Freshness::Changed })
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

    fn propose(
        &mut self,
        tree: &dyn FileTree,
        index: &mut MarkerIndex,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Option<CommitDraft>, ProposalError> {
        self.update.reported = self.reported();
        self.update.own_markers = self.places.as_ref().map(PlaceScan::limits);
        self.places.iter_mut().for_each(PlaceScan::reset);
        let planned = plan(tree, &self.update, index, checkpoint);
        if let (Some(places), Err(error)) = (&mut self.places, &planned)
            && error.is_missing_path()
        {
            // No file is left there, so no marker is.
            places.keep(OwnMarkers::default(), tree);
        }
        let mut plan = planned?;
        if self.detail == Detail::Diff {
            self.diff = Some(diff::unified(tree, &plan.edits, checkpoint).map_err(ProposalError::Diff)?);
        }
        let edits = std::mem::take(&mut plan.edits);
        if let Some(places) = &mut self.places {
            places.keep(std::mem::take(&mut plan.own_markers), tree);
        }
        self.findings = Some(Findings::of(&plan, &self.unusable));
        // The plan is kept even if the message fails: it shows what would have changed.
        let plan = self.plan.insert(plan);
        let message = match edits.as_slice() {
            [] => Ok(None),
            _ => self.message.render(&self.update, plan, checkpoint).map(Some),
        };
        let compared = match (&mut self.compare, &message) {
            (Some(compare), Ok(message)) => {
                let message = message.as_deref();
                let view = View { tree, update: &self.update, plan, edits: &edits, message };
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
        let Some(message) = message?.filter(|_| self.compare.is_none()) else { return Ok(None) };
        let (author, time, signer) = (self.author.clone(), self.time, self.signer.clone());
        Ok(Some(CommitDraft { edits, message, author, time, signer }))
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
