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
    /// True if the forge tells that this branch does not exist; few do.
    pub lacks_branch: bool,
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
    /// Returns the memory in bytes that it takes.
    pub fn size(&self) -> usize {
        let texts = [self.url.len(), self.head.as_str().len(), self.base.as_str().len(), self.title.len()];
        let labels = self.labels.iter().map(|label| size_of::<String>() + label.len());
        size_of::<Self>() + texts.iter().sum::<usize>() + self.body.len() + labels.sum::<usize>()
    }

    /// Returns true if an edit of a known state can be made in this one.
    ///
    /// Title and body are as known; at some forges, the title has the mark of a draft. One is closed only if it is open and has
    /// the known head.
    pub(super) fn admits(&self, edit: &PullRequestEdit, known: &Self) -> bool {
        let has_same_text =
            (&self.title, &self.body, self.is_draft) == (&known.title, &known.body, known.is_draft);
        has_same_text && (!edit.is_closed || self.state == known.state && self.may_have_head_of(known))
    }

    /// Returns true unless two states are known to have different heads.
    fn may_have_head_of(&self, other: &Self) -> bool {
        self.head_commit.zip(other.head_commit).is_none_or(|(one, another)| one == another)
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
    /// The body once labels, reviewers and assignees were added by calls of their own.
    ///
    /// There is none if it is the same.
    pub completed_body: Option<String>,
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

/// The answer to a change of a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The pull request after it.
    pub pull_request: PullRequest,
    /// Sentences about parts that the forge refused, such as an unknown reviewer.
    pub refused: Vec<String>,
}

impl Opened {
    /// Takes the open pull request of a branch after the forge has refused another.
    pub(super) fn among(found: Vec<PullRequest>) -> Option<Self> {
        let pull_request = found.into_iter().find(|one| one.state == PullRequestState::Open)?;
        Some(Self { pull_request, is_new: false, refused: Vec::new() })
    }
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
    /// Users and teams to ask for a review, beside those of others.
    pub added_reviewers: Vec<String>,
    /// Users to assign, beside those of others.
    pub added_assignees: Vec<String>,
    /// True to close it, false to leave its state.
    pub is_closed: bool,
    /// The tip at which git looked at the branch of one that is closed.
    ///
    /// For a forge that does not tell the whole id of a head.
    pub judged: Option<CommitId>,
    /// True if the known text is recent enough to be replaced without another look.
    ///
    /// Gitea, which has no limit of calls, is asked all the same.
    pub is_text_recent: bool,
}

impl PullRequestEdit {
    /// Returns the labels of a pull request after it.
    pub(super) fn labels_after(&self, current: &PullRequest) -> Vec<String> {
        let kept = current.labels.iter().filter(|label| !self.removed_labels.contains(label));
        let added = self.added_labels.iter().filter(|label| !current.labels.contains(label));
        kept.chain(added).cloned().collect()
    }

    /// Returns true if nothing would be changed.
    pub fn changes_nothing(&self) -> bool {
        Self { judged: None, is_text_recent: false, ..self.clone() } == Self::default()
    }

    /// Returns true if it follows from title and body.
    pub(super) fn depends_on_text(&self) -> bool {
        self.title.is_some() || self.body.is_some() || self.is_closed
    }

    /// Returns true if the pull request is read before it.
    ///
    /// It has to be as known then.
    ///
    /// The head of one that is closed is always read.
    pub(super) fn needs_look(&self) -> bool {
        self.depends_on_text() && (self.is_closed || !self.is_text_recent)
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
    /// It lacks something that others have to give, such as an approval.
    Blocked {
        /// The forge's reason.
        reason: String,
    },
    /// It cannot be merged now, and may be in a moment.
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An open pull request.
    pub(in crate::forge) fn sample() -> PullRequest {
        PullRequest {
            number: 7,
            url: String::new(),
            state: PullRequestState::Open,
            head: "tagboat/web".parse().unwrap(),
            head_commit: None,
            lacks_branch: false,
            base: "main".parse().unwrap(),
            title: "Update web".to_owned(),
            body: "text".to_owned(),
            is_draft: false,
            labels: Vec::new(),
            is_in_merge_queue: false,
            has_auto_merge: false,
            version: None,
        }
    }

    #[test]
    fn a_recent_text_is_replaced_without_a_look_and_nothing_is_closed_without_one() {
        let text = || Some("New".to_owned());
        for (title, body, is_closed, is_text_recent, expected) in [
            (text(), None, false, false, true),
            (None, text(), false, false, true),
            (text(), text(), false, true, false),
            (None, text(), true, true, true),
            (None, None, true, true, true),
            (None, None, false, false, false),
            (None, None, false, true, false),
        ] {
            let edit =
                PullRequestEdit { title, body, is_closed, is_text_recent, ..PullRequestEdit::default() };
            assert_eq!(edit.needs_look(), expected, "{edit:?}");
        }
    }

    #[test]
    fn a_pull_request_is_closed_only_while_it_is_open_with_the_known_head() {
        let commit = |digit: &str| Some(digit.repeat(40).parse().unwrap());
        let known = PullRequest { head_commit: commit("1"), ..sample() };
        let same = || known.clone();
        for (name, now, is_edited, is_closed) in [
            ("as known", same(), true, true),
            ("another label", PullRequest { labels: vec!["a".to_owned()], ..same() }, true, true),
            ("another title", PullRequest { title: "Wait".to_owned(), ..same() }, false, false),
            ("another body", PullRequest { body: "words".to_owned(), ..same() }, false, false),
            ("a draft", PullRequest { is_draft: true, ..same() }, false, false),
            ("a commit of a person", PullRequest { head_commit: commit("2"), ..same() }, true, false),
            ("merged", PullRequest { state: PullRequestState::Merged, ..same() }, true, false),
            ("closed", PullRequest { state: PullRequestState::Closed, ..same() }, true, false),
            // Bitbucket Cloud shortens ids.
            ("an unknown head", PullRequest { head_commit: None, ..same() }, true, true),
        ] {
            let edit = PullRequestEdit { title: Some("New".to_owned()), ..PullRequestEdit::default() };
            let closing = PullRequestEdit { is_closed: true, ..PullRequestEdit::default() };
            assert_eq!(
                (now.admits(&edit, &known), now.admits(&closing, &known)),
                (is_edited, is_closed),
                "{name}"
            );
        }
    }
}
