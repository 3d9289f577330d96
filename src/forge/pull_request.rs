//! A pull request, and the changes that are made to one.
//!
//! GitLab calls it a merge request. Its head branch is always in the repository of its base.

use crate::git::{BranchName, CommitId};

/// A pull request as its forge reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    /// The number by which the forge and its users refer to it.
    pub number: u64,
    /// The address of its page.
    pub url: String,
    /// The state.
    pub state: PullRequestState,
    /// The branch that has the commits.
    pub head: BranchName,
    /// The tip of that branch, as far as the forge knows it.
    pub head_commit: Option<CommitId>,
    /// The branch that gets the commits.
    pub base: BranchName,
    /// The title, without the prefix by which some forges mark a draft.
    pub title: String,
    /// The body.
    pub body: String,
    /// True if it is a draft.
    pub is_draft: bool,
    /// The names of its labels.
    pub labels: Vec<String>,
    /// True if it waits in a merge queue or merge train.
    pub is_in_merge_queue: bool,
    /// True if the forge merges it once its checks have passed.
    pub has_auto_merge: bool,
    /// The token by which the forge detects a concurrent change, where it has one.
    pub version: Option<u64>,
}

impl PullRequest {
    /// Returns true if title and body are the same as those of another state.
    ///
    /// At some forges, the title has the mark of a draft.
    pub(super) fn has_text_of(&self, other: &Self) -> bool {
        (&self.title, &self.body, self.is_draft) == (&other.title, &other.body, other.is_draft)
    }
}

/// The state of a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullRequestState {
    /// Open.
    Open,
    /// Closed without a merge.
    Closed,
    /// Merged.
    Merged,
}

/// A pull request that is to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPullRequest {
    /// The branch that has the commits.
    pub head: BranchName,
    /// The branch that gets the commits.
    pub base: BranchName,
    /// The title, without a prefix for drafts.
    pub title: String,
    /// The body.
    pub body: String,
    /// True if it begins as a draft.
    pub is_draft: bool,
    /// The names of its labels; those that do not exist are created.
    pub labels: Vec<String>,
    /// Users, and teams as `org/team`, who are asked for a review.
    pub reviewers: Vec<String>,
    /// The users that it is assigned to.
    pub assignees: Vec<String>,
}

/// The answer to an attempt to open a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The pull request; it may have existed already.
    pub pull_request: PullRequest,
    /// True if this attempt opened it.
    pub is_new: bool,
    /// Sentences about parts that the forge refused, such as an unknown reviewer.
    pub refused: Vec<String>,
}

/// A change of a pull request; absent parts stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullRequestEdit {
    /// The title, without a prefix for drafts.
    pub title: Option<String>,
    /// The body.
    pub body: Option<String>,
    /// Labels to add.
    pub added_labels: Vec<String>,
    /// Labels to remove.
    pub removed_labels: Vec<String>,
    /// True to close it, false to leave its state.
    pub is_closed: bool,
}

impl PullRequestEdit {
    /// Returns true if it follows from title and body.
    pub(super) fn depends_on_text(&self) -> bool {
        self.title.is_some() || self.body.is_some() || self.is_closed
    }
}

/// A request to merge a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    /// The time of the merge.
    pub time: MergeTime,
    /// The method; the forge's default if it is none.
    pub method: Option<MergeMethod>,
    /// The commit that is merged; the forge refuses if the head is another one.
    pub head_commit: CommitId,
}

/// The time at which a pull request is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeTime {
    /// Once the required checks and approvals are there.
    WhenReady,
    /// Now.
    Immediately,
}

/// The method of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeMethod {
    /// A merge commit.
    Commit,
    /// One commit with all changes.
    Squash,
    /// The commits, on top of the base.
    Rebase,
}

/// The answer to a request to merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeAnswer {
    /// The pull request is merged.
    Merged,
    /// The forge merges it when it is ready.
    Scheduled,
    /// It would be merged at once, because no check or approval is required.
    NothingRequired,
    /// It cannot be merged now, and may be later.
    NotYet {
        /// The forge's reason.
        reason: String,
    },
    /// The forge refuses.
    Refused {
        /// The forge's reason.
        reason: String,
    },
}
