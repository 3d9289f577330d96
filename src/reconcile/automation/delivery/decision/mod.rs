//! Decides on the pull request of a branch, after git has dealt with the branch.
//!
//! All decisions follow from the state of the forge and of the branch. So the next run completes one that was killed, and a
//! lost state changes nothing.

use std::collections::BTreeSet;
use std::time::Instant;

use tagboat_api::settings::MergeTime;

use super::body::{closed_body, completed};
use super::found::{FoundPullRequests, refusal, untold_refusal};
use super::known::{OpenPullRequest, PastPullRequest};
use super::memory::{ClosedReason, ImageHash, Memory, OwnerHash, PolicyHash};
use super::options::PullRequestOptions;
use super::text::{Content, PullRequestText, TextError};
use crate::forge::{self, Merge, NewPullRequest, PullRequest, PullRequestEdit, SeparateParts};
use crate::git::{BranchName, CommitId};

/// The pull request that is wanted for a branch.
#[derive(Clone, Copy, Debug)]
pub struct WantedPullRequest<'a> {
    /// The branch.
    pub branch: &'a BranchName,
    /// The base.
    pub base: &'a BranchName,
    /// The automations that share the branch, as its text names them.
    pub owners: &'a BTreeSet<OwnerHash>,
    /// All automations of the repository and base that are reconciled.
    pub known: &'a BTreeSet<OwnerHash>,
    /// The tip at which git looked at the branch, if it exists.
    pub judged: Option<CommitId>,
    /// The time at which the run of git began, before it read the base.
    pub made_at: Instant,
    /// The policies whose values differ on the base, with their images.
    ///
    /// There are none if nothing is left to change.
    pub images: &'a BTreeSet<ImageHash>,
    /// The readable policies of these automations.
    ///
    /// It is known of them whether the base needs a change.
    pub readable: &'a BTreeSet<PolicyHash>,
    /// The settings of all automations that render the branch.
    pub options: &'a PullRequestOptions,
    /// The settings of those that have joined the open pull request.
    pub joined: &'a PullRequestOptions,
    /// The text, if there is something to change.
    pub text: Option<&'a PullRequestText>,
    /// The parts that the forge adds after opening a pull request.
    pub separate: SeparateParts,
    /// The limit of the forge for a body.
    pub limit: Option<usize>,
}

/// The state of a branch after git has dealt with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchState {
    /// It has the wanted change.
    Current {
        /// Its tip.
        tip: CommitId,
        /// True if this run created or rebuilt it.
        is_new: bool,
    },
    /// It exists, and was left as it is.
    Left(LeftBranch),
    /// It does not exist.
    Absent,
    /// The remote did not update it.
    Failed,
}

/// The reason for which a branch was left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftBranch {
    /// It has commits of others, or it is unknown whether it has.
    EditedByOthers,
    /// Another automation without a part in the run has a commit or the pull request.
    Shared,
    /// An open pull request merges it into another base.
    OpenElsewhere,
    /// A person has refused the change.
    Refused,
    /// It is in a merge queue.
    InMergeQueue,
    /// Nothing is left to change on the base.
    NothingLeft,
}

/// The decision on a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The action.
    pub action: PullRequestAction,
    /// The request to merge, after the action.
    pub merge: Option<Merge>,
    /// The reason, if the action is not the usual one.
    pub reason: Option<PullRequestReason>,
    /// The number of the open pull request, or of the one that was refused.
    pub number: Option<u64>,
    /// The pull request by which a person has refused the images, beside an open one.
    pub refused_by: Option<u64>,
    /// True if the new text hides from another process that the branch was rebuilt.
    pub hides_refresh: bool,
}

/// The action on a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PullRequestAction {
    /// There is none, and none is wanted.
    Nothing,
    /// It is opened.
    Open(Box<NewPullRequest>),
    /// It stays open, and its content is current.
    Keep,
    /// It stays open, and gets new text or labels.
    Edit(Box<PullRequestEdit>),
    /// Its branch was rebuilt, and its text stays or gets this change.
    Refresh(Option<Box<PullRequestEdit>>),
    /// It is closed; its branch is deleted afterwards.
    Close(Box<PullRequestEdit>),
    /// It is left as it is.
    Leave,
}

/// The reason of an action, as results name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullRequestReason {
    /// A person has closed the pull request, or deleted its branch.
    ClosedByPerson,
    /// The branch has commits of others.
    EditedByOthers,
    /// The pull request belongs to other automations.
    OwnedByOthers,
    /// The pull request merges the branch into another base.
    OtherBase,
    /// It is in a merge queue.
    InMergeQueue,
    /// Another branch supersedes it.
    Superseded,
    /// Another pull request of the branch supersedes it.
    Duplicate,
    /// Nothing is left to change on the base.
    NothingLeft,
}

impl Decision {
    fn of(action: PullRequestAction, number: Option<u64>) -> Self {
        Self { action, merge: None, reason: None, number, refused_by: None, hides_refresh: false }
    }

    fn leave(reason: Option<PullRequestReason>, number: u64) -> Self {
        Self { reason, ..Self::of(PullRequestAction::Leave, Some(number)) }
    }

    fn close(edit: PullRequestEdit, reason: PullRequestReason, number: u64) -> Self {
        Self { reason: Some(reason), ..Self::of(PullRequestAction::Close(Box::new(edit)), Some(number)) }
    }
}

/// Decides on the pull request of a branch.
///
/// # Errors
///
/// If the content has no room in a body.
pub fn decide(
    wanted: &WantedPullRequest<'_>,
    branch: BranchState,
    found: FoundPullRequests<'_>,
) -> Result<Decision, TextError> {
    match found.open {
        Some(open) => {
            let decision = wanted.of_open(branch, open)?;
            let is_refused = decision.reason == Some(PullRequestReason::ClosedByPerson);
            let past = found.past.filter(|_| is_refused).unwrap_or_default();
            let refused_by = refusal(wanted.images, past).map(|refused| refused.number);
            Ok(Decision { refused_by, ..decision })
        }
        None => wanted.without_open(branch, found),
    }
}

impl WantedPullRequest<'_> {
    fn without_open(&self, branch: BranchState, found: FoundPullRequests<'_>) -> Result<Decision, TextError> {
        let nothing = Decision::of(PullRequestAction::Nothing, None);
        let (Some(text), false) = (self.text, self.images.is_empty()) else { return Ok(nothing) };
        let past = found.past.unwrap_or_default();
        if let Some(refused) = refusal(self.images, past).or_else(|| self.refused_at(branch, past)) {
            let reason = Some(PullRequestReason::ClosedByPerson);
            return Ok(Decision { reason, ..Decision::of(PullRequestAction::Leave, Some(refused.number)) });
        }
        let tip = match branch {
            BranchState::Current { tip, .. } => tip,
            BranchState::Left(LeftBranch::EditedByOthers) => {
                let reason = Some(PullRequestReason::EditedByOthers);
                return Ok(Decision { reason, ..Decision::of(PullRequestAction::Leave, None) });
            }
            BranchState::Left(_) | BranchState::Absent | BranchState::Failed => return Ok(nothing),
        };
        if found.have_ended_since(self.made_at) {
            // The base may have the values by now. Git looks first.
            return Ok(nothing);
        }
        // A process that is killed before it has added the rest leaves a mark.
        let is_incomplete = self.options.has_separate(self.separate);
        let texts = text.opened(self.content(), is_incomplete)?;
        let completed = is_incomplete.then(|| text.opened(self.content(), false)).transpose()?;
        let new = NewPullRequest {
            head: self.branch.clone(),
            base: self.base.clone(),
            title: texts.title,
            body: texts.body,
            is_draft: self.options.is_draft,
            labels: self.options.labels.clone(),
            reviewers: self.options.reviewers.clone(),
            assignees: self.options.assignees.clone(),
            completed_body: completed.map(|texts| texts.body),
        };
        let merge = self.merge(tip);
        Ok(Decision { merge, ..Decision::of(PullRequestAction::Open(Box::new(new)), None) })
    }

    /// Returns the pull request by which a person has refused the tip of a branch.
    fn refused_at<'p>(
        &self,
        branch: BranchState,
        past: &'p [PastPullRequest],
    ) -> Option<&'p PastPullRequest> {
        untold_refusal(past).filter(|closed| match branch {
            BranchState::Current { tip, is_new: false } => closed.head_commit == Some(tip),
            // Git has found the wanted images at its head. A deleted branch has no tip any more.
            BranchState::Left(LeftBranch::Refused) => {
                closed.head_commit.is_some() && self.judged.is_none_or(|tip| closed.head_commit == Some(tip))
            }
            _ => false,
        })
    }

    fn of_open(&self, branch: BranchState, open: &OpenPullRequest) -> Result<Decision, TextError> {
        let memory = open.memory();
        let leave = |reason| Ok(Decision::leave(Some(reason), open.number));
        if memory.is_some_and(|memory| memory.is_of_others(self.known)) {
            return leave(PullRequestReason::OwnedByOthers);
        }
        if open.is_in_merge_queue {
            return leave(PullRequestReason::InMergeQueue);
        }
        let (tip, is_new) = match branch {
            BranchState::Left(LeftBranch::EditedByOthers) => return leave(PullRequestReason::EditedByOthers),
            BranchState::Left(LeftBranch::InMergeQueue) => return leave(PullRequestReason::InMergeQueue),
            BranchState::Left(LeftBranch::Refused) => return leave(PullRequestReason::ClosedByPerson),
            BranchState::Left(LeftBranch::Shared | LeftBranch::OpenElsewhere) | BranchState::Failed => {
                return Ok(Decision::leave(None, open.number));
            }
            // Another proposer, whose automation has no pull requests or no order yet, has a change for it.
            BranchState::Current { .. } if self.images.is_empty() => {
                return Ok(Decision::leave(None, open.number));
            }
            BranchState::Left(LeftBranch::NothingLeft) | BranchState::Absent => (None, false),
            BranchState::Current { tip, is_new } => (Some(tip), is_new),
        };
        let (Some(text), Some(tip)) = (self.text.filter(|_| !self.images.is_empty()), tip) else {
            return match memory {
                Some(memory)
                    if self.images.is_empty()
                        && may_close(memory, self.known, self.readable)
                        && has_judged(open, self.judged) =>
                {
                    let reason = ClosedReason::NothingLeft;
                    let closing = closing(open, memory, reason, &[], self.limit)?;
                    let edit = PullRequestEdit { judged: self.judged, ..closing };
                    Ok(Decision::close(edit, PullRequestReason::NothingLeft, open.number))
                }
                Some(memory) if !are_readable(memory, self.readable) => {
                    Ok(Decision::leave(None, open.number))
                }
                _ if self.images.is_empty() => leave(PullRequestReason::NothingLeft),
                _ => Ok(Decision::leave(None, open.number)),
            };
        };
        let edit = self.edit(open, text, is_new)?;
        let is_unchanged = edit == PullRequestEdit::default();
        // A process that was killed after the push has not reported the new images. Where the text of people leaves no room
        // for them, no edit can record them.
        let is_told =
            edit.body.is_none() || memory.is_none_or(|memory| self.images.is_subset(&memory.images));
        let action = match (is_new || !is_told, is_unchanged) {
            (true, _) => PullRequestAction::Refresh((!is_unchanged).then(|| Box::new(edit))),
            (false, true) => PullRequestAction::Keep,
            (false, false) => PullRequestAction::Edit(Box::new(edit)),
        };
        // A person may have made it a draft.
        let is_shared_with_unknown = memory.is_some_and(|memory| !memory.owners.is_subset(self.known));
        // Nor is it merged while an automation is unknown, which may want more caution.
        let may_merge = !open.is_draft && !is_shared_with_unknown;
        let merge = if may_merge { self.merge(tip) } else { None };
        Ok(Decision { merge, hides_refresh: !is_told, ..Decision::of(action, Some(open.number)) })
    }

    /// Returns the changes of an open pull request with a current branch.
    ///
    /// Text is compared only if the content has changed: a template may render to another text each time.
    fn edit(
        &self,
        open: &OpenPullRequest,
        text: &PullRequestText,
        is_new: bool,
    ) -> Result<PullRequestEdit, TextError> {
        let memory = open.memory();
        // Other automations of the pull request may be unknown yet, as after a restart.
        let is_same = |memory: &Memory| {
            self.owners.is_subset(&memory.owners)
                && self.images.is_subset(&memory.images)
                && memory.closed.is_none()
        };
        let mut edit = match memory {
            Some(memory) if is_same(memory) && !is_new => PullRequestEdit {
                body: memory.is_incomplete.then(|| completed(&open.body, self.limit)).flatten(),
                ..PullRequestEdit::default()
            },
            _ => text.refreshed(open, self.content())?,
        };
        let is_incomplete = memory.is_some_and(|memory| memory.is_incomplete);
        if is_incomplete {
            edit.added_reviewers.clone_from(&self.options.reviewers);
            edit.added_assignees.clone_from(&self.options.assignees);
        } else {
            edit.added_reviewers.clone_from(&self.joined.reviewers);
            edit.added_assignees.clone_from(&self.joined.assignees);
        }
        // Labels that people removed stay away, unless another automation has joined.
        if is_incomplete || memory.is_none_or(|memory| !self.owners.is_subset(&memory.owners)) {
            let missing = self.options.labels.iter().filter(|label| !open.labels.contains(label));
            edit.added_labels = missing.cloned().collect();
        }
        Ok(edit)
    }

    fn merge(&self, head_commit: CommitId) -> Option<Merge> {
        let time = match self.options.merge {
            MergeTime::ByHand => return None,
            MergeTime::WhenReady => forge::MergeTime::WhenReady,
            MergeTime::Immediately => forge::MergeTime::Immediately,
        };
        (!self.options.is_draft).then_some(Merge { time, method: self.options.merge_method, head_commit })
    }

    fn content(&self) -> Content<'_> {
        Content { owners: self.owners, images: self.images, limit: self.limit }
    }
}

/// An open pull request whose branch no automation renders any more.
#[derive(Clone, Copy, Debug)]
pub struct UnwantedPullRequest<'a> {
    /// The pull request.
    pub pull_request: &'a OpenPullRequest,
    /// The state of its branch.
    pub branch: BranchState,
    /// The tip at which git looked at the branch, if it exists.
    pub judged: Option<CommitId>,
    /// The automations of the repository and base that are reconciled.
    pub owners: &'a BTreeSet<OwnerHash>,
    /// The readable policies of these automations.
    ///
    /// It is known of them whether the base needs a change.
    pub readable: &'a BTreeSet<PolicyHash>,
    /// The branches that are wanted and have something to change.
    pub others: &'a [OtherBranch<'a>],
    /// The limit of the forge for a body.
    pub limit: Option<usize>,
}

/// A wanted branch that may supersede another one.
#[derive(Clone, Copy, Debug)]
pub struct OtherBranch<'a> {
    /// The branch.
    pub branch: &'a BranchName,
    /// The policies whose values it changes.
    pub images: &'a BTreeSet<ImageHash>,
    /// The images of its open pull request, by the last line; none without one.
    pub told: Option<&'a BTreeSet<ImageHash>>,
}

impl OtherBranch<'_> {
    /// Returns the images that it has of some policies.
    fn images_of<'b>(&'b self, policies: &BTreeSet<&PolicyHash>) -> impl Iterator<Item = &'b ImageHash> {
        self.images.iter().filter(move |image| policies.contains(image.policy()))
    }

    /// Returns true if its open pull request has the images of some policies.
    ///
    /// One that is left alone, because of commits of others or as one of others, may lack them.
    fn has_delivered(&self, policies: &BTreeSet<&PolicyHash>) -> bool {
        self.told.is_some_and(|told| self.images_of(policies).all(|image| told.contains(image)))
    }
}

/// Decides on a pull request whose branch no automation renders any more.
///
/// It is closed if open pull requests of other branches have the images of its policies, or if none of its policies has
/// anything left to change.
///
/// # Errors
///
/// If the content has no room in a body.
pub fn decide_unwanted(unwanted: &UnwantedPullRequest<'_>) -> Result<Decision, TextError> {
    let open = unwanted.pull_request;
    let Some(memory) = open.memory().filter(|memory| !memory.is_of_others(unwanted.owners)) else {
        return Ok(Decision::of(PullRequestAction::Nothing, None));
    };
    if open.is_in_merge_queue {
        return Ok(Decision::leave(Some(PullRequestReason::InMergeQueue), open.number));
    }
    if unwanted.branch == BranchState::Left(LeftBranch::EditedByOthers) {
        return Ok(Decision::leave(Some(PullRequestReason::EditedByOthers), open.number));
    }
    // One with a wanted change is that of an automation without pull requests, or without an order yet.
    let is_in_use = matches!(
        unwanted.branch,
        BranchState::Current { .. } | BranchState::Left(LeftBranch::Shared | LeftBranch::OpenElsewhere)
    );
    if is_in_use
        || !may_close(memory, unwanted.owners, unwanted.readable)
        || !has_judged(open, unwanted.judged)
    {
        return Ok(Decision::leave(None, open.number));
    }
    let policies = memory.policies();
    let has_one = |other: &&OtherBranch<'_>| other.images_of(&policies).next().is_some();
    let others: Vec<&OtherBranch<'_>> = unwanted.others.iter().filter(has_one).collect();
    if !others.iter().all(|other| other.has_delivered(&policies)) {
        return Ok(Decision::leave(None, open.number));
    }
    let (closed, reason) = match others.as_slice() {
        [] => (ClosedReason::NothingLeft, PullRequestReason::NothingLeft),
        _ => (ClosedReason::Superseded, PullRequestReason::Superseded),
    };
    let names: Vec<&str> = others.iter().map(|other| other.branch.as_str()).collect();
    let closing = closing(open, memory, closed, &names, unwanted.limit)?;
    let edit = PullRequestEdit { judged: unwanted.judged, ..closing };
    Ok(Decision::close(edit, reason, open.number))
}

/// Decides on another open pull request of a branch.
///
/// Some forges open two if two processes ask at the same time. The second one is closed if it is ours; `owners` are the
/// automations that are reconciled, and `readable` their readable policies.
///
/// # Errors
///
/// If the content has no room in a body.
pub fn decide_second(
    second: &OpenPullRequest,
    first: &OpenPullRequest,
    (owners, readable): (&BTreeSet<OwnerHash>, &BTreeSet<PolicyHash>),
    limit: Option<usize>,
) -> Result<Decision, TextError> {
    let is_of_others = first.memory().is_some_and(|memory| memory.is_of_others(owners));
    let memory = second.memory();
    let memory = memory
        .filter(|memory| !is_of_others && !second.is_in_merge_queue && may_close(memory, owners, readable));
    let Some(memory) = memory else { return Ok(Decision::of(PullRequestAction::Nothing, None)) };
    let edit = closing(second, memory, ClosedReason::Duplicate, &[&first.url], limit)?;
    Ok(Decision::close(edit, PullRequestReason::Duplicate, second.number))
}

/// Returns true if a pull request is ours, and its policies are readable.
///
/// One that we closed before and that is open again was reopened by a person, and stays open.
fn may_close(memory: &Memory, owners: &BTreeSet<OwnerHash>, readable: &BTreeSet<PolicyHash>) -> bool {
    memory.closed.is_none() && memory.owners.is_subset(owners) && are_readable(memory, readable)
}

/// Returns true if all policies of a pull request are readable.
fn are_readable(memory: &Memory, readable: &BTreeSet<PolicyHash>) -> bool {
    memory.policies().iter().all(|policy| readable.contains(*policy))
}

/// Returns true if git has looked at the tip that the forge lists.
///
/// Otherwise a later commit of others may be on it.
fn has_judged(open: &PullRequest, judged: Option<CommitId>) -> bool {
    open.head_commit.zip(judged).is_none_or(|(listed, judged)| listed == judged)
}

fn closing(
    open: &PullRequest,
    memory: &Memory,
    reason: ClosedReason,
    by: &[&str],
    limit: Option<usize>,
) -> Result<PullRequestEdit, TextError> {
    let body = closed_body(open, memory, reason, by, limit)?;
    Ok(PullRequestEdit { body: Some(body), is_closed: true, ..PullRequestEdit::default() })
}

#[cfg(test)]
mod tests;
