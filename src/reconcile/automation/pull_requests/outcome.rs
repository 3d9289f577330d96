//! The outcome for the pull request of one branch.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::delivery::PullRequestReason;
use super::super::shown_branch::shown_branch;
use super::super::waiting::Closed;
use crate::forge::{ForgeError, PullRequest};
use crate::git::{BranchName, CommitId};
use crate::secrets::Redactor;

/// The reason for leaving a pull request of other automations alone.
///
/// It says what people can do.
pub(super) const OWNED_BY_OTHERS: &str = "it belongs to other automations, or to this one under another name or path: remove the \
                                          last line of its body to hand it over, or close it to refuse its images";

/// The outcome for the pull request of one branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequestOutcome {
    /// The branch.
    pub branch: BranchName,
    /// The branch into which it is merged.
    pub base: BranchName,
    /// The number; none if there is no pull request.
    pub number: Option<u64>,
    /// The address of its page; empty if there is none.
    pub url: String,
    /// The title; empty if there is none.
    pub title: String,
    /// The body of a pull request that a dry run would open.
    pub body: Option<String>,
    /// The tip of the branch, if it is known.
    pub commit: Option<CommitId>,
    /// The action.
    pub action: PullRequestVerb,
    /// The reason, if the action is not the usual one.
    pub reason: Option<OutcomeReason>,
    /// The pull request by which a person has refused the images, beside an open one.
    pub refused_by: Option<u64>,
    /// True if the pull request is open after the action.
    pub is_open: bool,
    /// True if this round opened it; it may have been merged since.
    pub is_opened: bool,
    /// Sentences about parts that the forge refused, such as an unknown reviewer.
    pub refused: Vec<String>,
    /// The reason for which the forge does not merge it, though it should.
    pub merge_refusal: Option<String>,
    /// The branch and the base as messages show them.
    pub(super) shown: (String, String),
}

/// The action on a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "PullRequestActionKind")]
pub enum PullRequestVerb {
    /// It was opened.
    Opened,
    /// Its branch was rebuilt.
    Refreshed,
    /// It stays open.
    Kept,
    /// It was closed.
    Closed,
    /// It was merged.
    Merged,
    /// It was left alone, or there is none.
    Left,
}

impl PullRequestVerb {
    /// Returns the name of the action in results and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Refreshed => "refreshed",
            Self::Kept => "kept",
            Self::Closed => "closed",
            Self::Merged => "merged",
            Self::Left => "left",
        }
    }

    /// Returns the action in a sentence of a dry run.
    fn conditional(self) -> &'static str {
        match self {
            Self::Opened => "would open",
            Self::Refreshed => "would refresh",
            Self::Kept => "would keep",
            Self::Closed => "would close",
            Self::Merged => "would merge",
            Self::Left => "would leave",
        }
    }
}

/// The reason of an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutcomeReason {
    /// The decision has it.
    Decided(PullRequestReason),
    /// The forge failed.
    ForgeFailed(ForgeError),
    /// The forge failed before the end of the round, whose failure has the error.
    NotReached,
    /// There is no text for it.
    NoText(String),
    /// A change waits.
    Waiting(WithheldChange),
}

/// A change at the forge that may not be made yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithheldChange {
    /// The rule that delays it.
    pub rule: Closed,
    /// True if it would open or merge the pull request, so that images wait.
    pub delays_images: bool,
}

impl PullRequestOutcome {
    /// Makes the outcome of a branch without a pull request.
    pub(super) fn without(branch: &BranchName, base: &BranchName, action: PullRequestVerb) -> Self {
        Self {
            branch: branch.clone(),
            base: base.clone(),
            number: None,
            url: String::new(),
            title: String::new(),
            body: None,
            commit: None,
            action,
            reason: None,
            refused_by: None,
            is_open: false,
            is_opened: false,
            refused: Vec::new(),
            merge_refusal: None,
            shown: shown(branch, base, &Redactor::default()),
        }
    }

    /// Makes the outcome of an open pull request that was left as it is.
    pub(super) fn kept(open: &PullRequest) -> Self {
        Self {
            number: Some(open.number),
            url: open.url.clone(),
            title: open.title.clone(),
            is_open: true,
            ..Self::without(&open.head, &open.base, PullRequestVerb::Kept)
        }
    }

    /// Makes the outcome of a branch that the round did not reach.
    ///
    /// `open` is its open pull request.
    pub(super) fn not_reached(
        (base, branch): (&BranchName, &BranchName),
        open: Option<&PullRequest>,
    ) -> Self {
        let without = || Self::without(branch, base, PullRequestVerb::Left);
        Self {
            action: PullRequestVerb::Left,
            reason: Some(OutcomeReason::NotReached),
            ..open.map_or_else(without, Self::kept)
        }
    }

    /// Redacts the texts that show what the forge says.
    ///
    /// A listing has them as the forge does, because they are compared and written back.
    pub(super) fn redact(&mut self, redactor: &Redactor) {
        let texts = [&mut self.title, &mut self.url].into_iter();
        let texts = texts.chain(&mut self.refused).chain(&mut self.merge_refusal);
        texts.for_each(|text| *text = redactor.redact(text));
        self.shown = shown(&self.branch, &self.base, redactor);
    }

    /// Returns the name of the branch as messages show it.
    pub(super) fn shown_branch(&self) -> &str {
        &self.shown.0
    }

    /// Returns the outcome without the action, which is reported already.
    pub(super) fn settled(&self) -> Self {
        let is_kept = self.is_open && !self.has_failed();
        let action = if is_kept { PullRequestVerb::Kept } else { PullRequestVerb::Left };
        Self { action, is_opened: false, ..self.clone() }
    }

    /// Returns the number of the pull request by which a person has refused the images.
    pub(super) fn refusal(&self) -> Option<u64> {
        let is_refused = self.reason == Some(OutcomeReason::Decided(PullRequestReason::ClosedByPerson));
        self.refused_by.or(self.number.filter(|_| !self.is_open)).filter(|_| is_refused)
    }

    /// Returns true if the forge failed, or the pull request has no text.
    pub fn has_failed(&self) -> bool {
        matches!(
            self.reason,
            Some(OutcomeReason::ForgeFailed(_) | OutcomeReason::NotReached | OutcomeReason::NoText(_))
        )
    }

    /// Returns the outcome with the change that waits, if there is one.
    pub(super) fn with_withheld(self, withheld: Option<WithheldChange>) -> Self {
        Self { reason: withheld.map(OutcomeReason::Waiting).or(self.reason), ..self }
    }

    /// Returns the change that waits, if there is one.
    pub(super) fn withheld(&self) -> Option<&WithheldChange> {
        match &self.reason {
            Some(OutcomeReason::Waiting(withheld)) => Some(withheld),
            _ => None,
        }
    }

    /// Returns the sentence about a merge that the forge refuses, if it does.
    pub(super) fn unmerged(&self) -> Option<String> {
        let refusal = self.merge_refusal.as_ref()?;
        Some(format!("pull request #{} is not merged: {refusal}", self.number.unwrap_or_default()))
    }

    /// Returns sentences about wishes that the forge refused, such as a merge or a reviewer.
    pub fn warnings(&self) -> Vec<String> {
        let number = self.number.unwrap_or_default();
        let refused = self.refused.iter().map(|sentence| format!("pull request #{number}: {sentence}"));
        self.unmerged().into_iter().chain(refused).collect()
    }

    /// Returns the action as a sentence.
    ///
    /// `is_dry_run` is true if the action was not carried out.
    pub fn sentence(&self, is_dry_run: bool) -> String {
        let verb = if is_dry_run { self.action.conditional() } else { self.action.name() };
        let mut sentence = format!("{verb} pull request");
        if let Some(number) = self.number {
            sentence.push_str(&format!(" #{number}"));
        }
        if !self.url.is_empty() {
            sentence.push_str(&format!(" {}", self.url));
        }
        sentence.push_str(&format!(" '{}' -> '{}'", self.shown.0, self.shown.1));
        if let Some(why) = self.explanation() {
            sentence.push_str(&format!(": {why}"));
        }
        sentence
    }

    /// Returns the reason in words.
    fn explanation(&self) -> Option<String> {
        Some(match self.reason.as_ref()? {
            OutcomeReason::Decided(reason) => match (reason, self.refused_by) {
                (PullRequestReason::ClosedByPerson, Some(number)) => {
                    return Some(format!("a person has refused the images by pull request #{number}"));
                }
                (PullRequestReason::ClosedByPerson, None) => "a person has refused it",
                (PullRequestReason::EditedByOthers, _) => "it has commits of others",
                (PullRequestReason::OwnedByOthers, _) => OWNED_BY_OTHERS,
                (PullRequestReason::OtherBase, _) => "it merges the branch into another base",
                (PullRequestReason::InMergeQueue, _) => "it is in a merge queue",
                (PullRequestReason::Superseded, _) => "another branch supersedes it",
                (PullRequestReason::Duplicate, _) => "another pull request of the branch supersedes it",
                (PullRequestReason::NothingLeft, _) => "nothing is left to change on the base",
            }
            .to_owned(),
            OutcomeReason::ForgeFailed(error) => error.to_string(),
            OutcomeReason::NotReached => "the forge failed".to_owned(),
            OutcomeReason::NoText(error) => error.clone(),
            OutcomeReason::Waiting(WithheldChange { rule: Closed { by, until, .. }, .. }) => {
                format!("a change waits: {by}; {}", end_of(*until))
            }
        })
    }
}

/// Returns a branch and its base as messages show them.
fn shown(branch: &BranchName, base: &BranchName, redactor: &Redactor) -> (String, String) {
    (shown_branch(branch, redactor), shown_branch(base, redactor))
}

/// Returns the end of a wait as a phrase.
pub(super) fn end_of(until: Option<Timestamp>) -> String {
    until.map_or_else(|| "no end is known".to_owned(), |until| format!("until {until}"))
}
