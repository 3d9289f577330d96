//! The values of a transaction with branches of proposals' own: drafts, facts from outside, results.

use std::fmt;

use jiff::Timestamp;
use tagboat_api::Reason;

use crate::git::commit::CommitDraft;
use crate::git::name::{BranchName, CommitId};

/// The rule for rebuilding a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refresh {
    /// A branch is rebuilt if its change differs or no longer fits the base.
    ///
    /// It does not fit if the base has another content of a file that it changes.
    #[default]
    WhenNeeded,
    /// A branch is rebuilt whenever the base moves, too.
    Always,
}

/// Facts about a branch that only its forge knows.
///
/// If no forge is asked, all are false but the last two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchFacts {
    /// The forge has not answered yet: the branch stays as it is.
    pub is_unknown: bool,
    /// A person has refused the change: the branch stays as it is.
    ///
    /// With an open pull request, this counts unless that has the change.
    pub is_refused: bool,
    /// The tip with which a person has refused the branch.
    ///
    /// It is there if the change that was refused is not known, or there is none to compare.
    /// If this tip has all wanted values, the branch stays as it is at the tip, and is not created again.
    pub refused_tip: Option<CommitId>,
    /// If the branch does not exist, a person has deleted it.
    ///
    /// It is not created again.
    pub is_refused_if_absent: bool,
    /// The tip with which a person has deleted the branch, if it does not exist.
    ///
    /// It is there if the proposal has no change that could tell what was refused. If this tip lacks a wanted value, the branch
    /// is created again.
    pub deleted_tip: Option<CommitId>,
    /// It has an open pull request, which commits of others keep open.
    pub has_pull_request: bool,
    /// A person has reopened that pull request, and the branch was deleted.
    ///
    /// It is created again.
    pub is_reopened: bool,
    /// The number of an open pull request of ours that merges it into another branch.
    ///
    /// The branch stays as it is.
    pub open_elsewhere: Option<u64>,
    /// The number of the open pull request, if it belongs to other proposers only.
    ///
    /// Its text would not change with the branch, so the branch stays as it is.
    pub owned_by_others: Option<u64>,
    /// It is in a merge queue: the branch stays as it is.
    pub is_in_merge_queue: bool,
    /// The tip at which a person has handed the branch back.
    ///
    /// It is rebuilt with any commits up to there.
    pub handed_back: Option<CommitId>,
    /// The tip with which a pull request of the branch was merged.
    ///
    /// All commits up to there are in the base, so none is lost with the branch.
    pub merged_tip: Option<CommitId>,
    /// The branch has served its purpose.
    ///
    /// It is deleted if nothing is left to change and it is ours.
    pub is_finished: bool,
    /// The proposal delivers nothing on the branch any more.
    pub is_abandoned: bool,
    /// No forge is asked, so nothing is known about a refusal.
    pub is_without_forge: bool,
    /// No forge tells what became of the branch.
    ///
    /// It is deleted if nothing is left to change, it is ours, and the base lacks its change.
    pub is_deleted_if_stale: bool,
}

impl BranchFacts {
    /// Returns true if a person has refused the change of a branch with this tip.
    ///
    /// What the open pull request has already is taken up again.
    pub fn is_refused_at(&self, tip: Option<CommitId>) -> bool {
        if tip.is_some() || self.is_reopened {
            self.is_refused && !(self.has_pull_request && self.is_refused_if_absent)
        } else {
            self.is_refused || self.is_refused_if_absent
        }
    }

    /// Unites the facts that several proposals have about one branch.
    ///
    /// Each comes with true if the proposal has a change for it. One change that was not refused suffices for a new branch. A
    /// proposal without a forge does not count, as it cannot know of a refusal. If it alone has a change, the refused tip tells.
    pub fn united(all: &[(bool, Self)]) -> Self {
        let asked = || all.iter().filter(|(_, facts)| !facts.is_without_forge);
        let has_change = asked().any(|(has_change, _)| *has_change);
        let decides = |own: &&(bool, Self)| own.0 == has_change;
        // Of a proposal without a change, it is not known which images a person has refused.
        let is_known = has_change || !all.iter().any(|(has_change, _)| *has_change);
        let any = |fact: fn(&Self) -> bool| all.iter().any(|(_, facts)| fact(facts));
        let owners = || asked().map(|(_, facts)| facts.owned_by_others);
        let deleted_tip = asked().find_map(|(_, facts)| facts.deleted_tip).filter(|_| !is_known);
        let each = |fact: fn(&Self) -> bool| {
            asked().next().is_some() && asked().filter(decides).all(|(_, facts)| fact(facts))
        };
        Self {
            is_unknown: any(|facts| facts.is_unknown),
            is_refused: is_known && each(|facts| facts.is_refused),
            refused_tip: asked().filter(decides).find_map(|(_, facts)| facts.refused_tip),
            is_refused_if_absent: deleted_tip.is_none() && each(|facts| facts.is_refused_if_absent),
            deleted_tip,
            has_pull_request: any(|facts| facts.has_pull_request),
            is_reopened: any(|facts| facts.is_reopened),
            open_elsewhere: all.iter().find_map(|(_, facts)| facts.open_elsewhere),
            // That of one of them is that of all.
            owned_by_others: owners().min().flatten(),
            is_in_merge_queue: any(|facts| facts.is_in_merge_queue),
            handed_back: all.iter().find_map(|(_, facts)| facts.handed_back),
            merged_tip: all.iter().find_map(|(_, facts)| facts.merged_tip),
            is_finished: any(|facts| facts.is_finished),
            is_abandoned: !all.is_empty() && all.iter().all(|(_, facts)| facts.is_abandoned),
            is_without_forge: !all.is_empty() && asked().next().is_none(),
            is_deleted_if_stale: !all.is_empty() && all.iter().all(|(_, facts)| facts.is_deleted_if_stale),
        }
    }
}

/// A commit for a branch of a proposal's own, with edits of the base.
#[derive(Debug)]
pub struct BranchDraft {
    /// The branch.
    pub branch: BranchName,
    /// The commit.
    pub commit: CommitDraft,
}

/// The names and addresses in a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitPeople<'c> {
    /// The author's name.
    pub author_name: &'c [u8],
    /// The author's address.
    pub author_email: &'c [u8],
    /// The committer's name.
    pub committer_name: &'c [u8],
    /// The committer's address.
    pub committer_email: &'c [u8],
}

impl CommitPeople<'_> {
    /// Returns true for those of a commit that GitHub signed for an App.
    ///
    /// They are `NAME[bot] <ID+NAME[bot]@users.noreply.HOST>` and `GitHub <noreply@HOST>`, or `GitHub Enterprise`.
    pub fn are_of_app(self) -> bool {
        let local = self.author_email.split(|byte| *byte == b'@').next();
        self.author_name.ends_with(b"[bot]")
            && local.is_some_and(|local| local.ends_with(b"[bot]"))
            && self.committer_name.starts_with(b"GitHub")
            && self.committer_email.starts_with(b"noreply@")
    }
}

/// The relation of a proposer to the author and committer of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Authorship {
    /// They are others than those of its commits.
    Others,
    /// They are those of an App, and a forge signs its commits for an App.
    OfApp,
    /// They are those of its commits.
    Own,
}

/// The change that a commit makes in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileChange<'c> {
    /// The path from the root.
    pub path: &'c [u8],
    /// The content before.
    pub old: &'c [u8],
    /// The content after.
    pub new: &'c [u8],
}

/// The result for one branch of a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchOutcome {
    /// The branch.
    pub branch: BranchName,
    /// The action.
    pub action: BranchAction,
    /// The tip of the branch after the run, if it exists.
    pub tip: Option<CommitId>,
    /// The proposal's own commit, if it was pushed and that was not reported before.
    pub commit: Option<CommitId>,
    /// The message of that commit; a very long one is cut.
    pub message: String,
    /// The commits of others that a new or deleted branch has lost.
    pub dropped: Vec<DroppedCommit>,
}

/// A commit that a branch has lost, of a proposer that took no part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedCommit {
    /// The name of the proposer's object.
    pub name: String,
    /// The reason.
    pub reason: DropReason,
}

/// The reason for making a branch anew without the commit of a proposer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// It is suspended.
    Suspended,
    /// It does not exist any more, or has another repository.
    Gone,
    /// It makes the branch no more.
    OtherBranch,
    /// It has failed before, and does not succeed.
    Failed,
    /// A person has handed the branch back.
    HandedBack,
}

/// The part of a proposer in a transaction that lacks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absence {
    /// The proposer of this name is awaited: its commit is not dropped.
    Awaited(String),
    /// Its commit is dropped.
    Dropped(DropReason),
}

/// The action on a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BranchAction {
    /// The branch was created.
    Created,
    /// The branch was built anew on the base.
    Rebuilt,
    /// The branch has the wanted change already.
    Kept,
    /// The branch was left as it is.
    Left(LeftReason),
    /// The branch could not be pushed or deleted.
    Failed {
        /// The error, as one sentence.
        message: String,
        /// True if it was to be deleted.
        is_deletion: bool,
    },
    /// The branch was deleted.
    Deleted,
}

/// The reason for leaving a branch as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftReason {
    /// It has a commit of others.
    EditedByOthers {
        /// The newest such commit.
        commit: CommitId,
    },
    /// It has a commit of a proposer that is not part of the transaction.
    SharedWith {
        /// The proposer.
        name: String,
    },
    /// It is unknown whether the branch has commits of others.
    Unreadable {
        /// The cause.
        message: String,
    },
    /// A person has refused the change.
    Refused,
    /// The forge has not said yet whether a person has refused the change.
    AwaitingForge,
    /// It is in a merge queue.
    InMergeQueue,
    /// An open pull request merges it into another branch.
    OpenElsewhere {
        /// The number of the pull request.
        number: u64,
    },
    /// Its open pull request belongs to other proposers.
    OwnedByOthers {
        /// The number of the pull request.
        number: u64,
    },
    /// Nothing is left to change on the base.
    NothingLeft,
    /// No policy is delivered on it any more.
    Abandoned,
    /// Nothing may be pushed now.
    Waiting {
        /// The proposals that may not push.
        closed: Vec<ClosedProposal>,
    },
    /// It is unknown whether the base needs a change, because a file cannot be parsed.
    UnparsableBase,
    /// It has a commit of a proposer that cannot parse a file of the base.
    UnparsableOf {
        /// The proposer.
        name: String,
    },
}

/// A proposal that may not push now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedProposal {
    /// Its name.
    pub name: String,
    /// The delay.
    pub delay: PushDelay,
}

/// A delay of the pushes of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushDelay {
    /// The reason.
    pub reason: Reason,
    /// The end, if it is known.
    pub until: Option<Timestamp>,
    /// The time at which the delay must be looked at again, at the latest.
    pub look_again: Option<Timestamp>,
}

impl BranchOutcome {
    /// Returns true if a run would push, or has pushed, the branch.
    pub fn is_changed(&self) -> bool {
        matches!(self.action, BranchAction::Created | BranchAction::Rebuilt | BranchAction::Deleted)
    }

    /// Returns a sentence for each commit of others that the branch has lost.
    pub fn dropped_sentences(&self, is_dry_run: bool) -> impl Iterator<Item = String> {
        let verb = if is_dry_run { "would drop" } else { "dropped" };
        self.dropped.iter().map(move |DroppedCommit { name, reason }| {
            format!("{verb} the commit of automation {name} from branch '{}', because {reason}", self.branch)
        })
    }

    /// Returns the proposals for which the branch waits, if it does.
    pub fn waits_for(&self) -> Option<&[ClosedProposal]> {
        match &self.action {
            BranchAction::Left(LeftReason::Waiting { closed }) => Some(closed),
            _ => None,
        }
    }
}

/// Prints as a clause to follow "because".
impl fmt::Display for DropReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Suspended => "it is suspended",
            Self::Gone => "it was deleted or has another GitRepository",
            Self::OtherBranch => "it does not make this branch any more",
            Self::Failed => "it has failed before and does not succeed",
            Self::HandedBack => "a person has handed the branch back",
        })
    }
}

/// Prints as a phrase to follow the name of the branch.
impl fmt::Display for LeftReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EditedByOthers { commit } => {
                write!(formatter, "has commit {} of others and is left alone", commit.short())
            }
            Self::SharedWith { name } => write!(
                formatter,
                "is left alone, because it has a commit of automation {name}, which took no part in this run or failed, or \
                 has a policy without an image; a run in which all automations of the branch succeed makes it anew"
            ),
            Self::Unreadable { message } => {
                write!(formatter, "is left alone, because its commits cannot be read: {message}")
            }
            Self::Refused => formatter.write_str("is left alone, because a person has refused it"),
            Self::AwaitingForge => {
                formatter.write_str("is left alone until the forge has answered about its pull request")
            }
            Self::InMergeQueue => formatter.write_str("is left alone while it is in a merge queue"),
            Self::OpenElsewhere { number } => write!(
                formatter,
                "is left alone, because the open pull request #{number} merges it into a branch that is not checked out: close \
                 the pull request, or change its base"
            ),
            Self::OwnedByOthers { number } => write!(
                formatter,
                "is left alone, because its open pull request #{number} belongs to other automations, or to this one under another \
                 name or path: remove the last line of its body to hand it over, or close it to refuse its images"
            ),
            Self::NothingLeft => formatter.write_str("has nothing left to change"),
            Self::Abandoned => formatter.write_str("has the images of no policy any more"),
            Self::Waiting { .. } => formatter.write_str("is left alone until it may be pushed"),
            Self::UnparsableBase => {
                formatter.write_str("is left alone while a marked file of its base cannot be parsed")
            }
            Self::UnparsableOf { name } => write!(
                formatter,
                "is left alone, because it has a commit of automation {name}, for which a marked file of the base cannot be parsed"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_change_that_was_not_refused_suffices() {
        let of = |refusals: &[(bool, bool)]| {
            let facts = |is_refused| BranchFacts { is_refused, ..BranchFacts::default() };
            let all: Vec<_> = refusals.iter().map(|(change, refused)| (*change, facts(*refused))).collect();
            BranchFacts::united(&all).is_refused
        };
        for (refusals, expected) in [
            (&[][..], false),
            (&[(true, true)], true),
            (&[(true, true), (true, false)], false),
            (&[(true, true), (true, true)], true),
            // One without a change does not decide, unless there is no other.
            (&[(true, true), (false, false)], true),
            (&[(false, true), (false, false)], false),
            (&[(false, true)], true),
        ] {
            assert_eq!(of(refusals), expected, "{refusals:?}");
        }
        // One without a forge knows of no refusal, and has it made anew all the same.
        let without = BranchFacts { is_without_forge: true, ..BranchFacts::default() };
        let refused = BranchFacts { is_refused: true, ..BranchFacts::default() };
        for (all, expected) in [
            (&[(true, refused), (true, without)][..], true),
            // Its change is not refused, unless the refused tip has it.
            (&[(false, refused), (true, without)], false),
            (&[(false, refused), (false, without)], true),
            (&[(true, BranchFacts::default()), (true, without)], false),
            (&[(true, without), (true, without)], false),
        ] {
            assert_eq!(BranchFacts::united(all).is_refused, expected, "{all:?}");
        }
        let tip = Some("1".repeat(40).parse().unwrap());
        let at_tip = BranchFacts { refused_tip: tip, ..refused };
        for (all, expected) in [
            (&[(false, at_tip), (true, without)][..], tip),
            // It tells the images of its own change.
            (&[(true, refused), (false, at_tip), (true, without)], None),
            (&[(true, without), (true, without)], None),
        ] {
            assert_eq!(BranchFacts::united(all).refused_tip, expected, "{all:?}");
        }
        // A forge leaves a pull request open whose branch was deleted. Of another image, only the tip tells.
        let deleted = BranchFacts { is_refused_if_absent: true, deleted_tip: tip, ..BranchFacts::default() };
        for (all, expected) in [
            (&[(false, deleted), (true, without)][..], (false, tip)),
            (&[(false, deleted), (true, without), (false, deleted)], (false, tip)),
            (&[(false, BranchFacts { deleted_tip: None, ..deleted }), (true, without)], (true, None)),
            (&[(true, BranchFacts { deleted_tip: None, ..deleted }), (false, deleted)], (true, None)),
            (&[(true, BranchFacts::default()), (false, deleted), (true, without)], (false, None)),
            (&[(false, deleted), (false, without)], (true, None)),
        ] {
            let facts = BranchFacts::united(all);
            assert_eq!((facts.is_refused_if_absent, facts.deleted_tip), expected, "{all:?}");
        }
        // A person has reopened it, and wants the branch of all of them.
        let reopened = BranchFacts { is_reopened: true, deleted_tip: None, ..deleted };
        for all in [
            &[(true, reopened)][..],
            &[(false, reopened), (true, without)],
            &[(true, reopened), (false, reopened)],
        ] {
            let facts = BranchFacts::united(all);
            assert!(facts.is_reopened && !facts.is_refused_at(None), "{all:?}");
        }
        let stale = BranchFacts { is_deleted_if_stale: true, ..BranchFacts::default() };
        assert_eq!(BranchFacts::united(&[(false, stale), (false, stale)]), stale);
        // One of them has a pull request, and its end is that of the branch.
        assert_eq!(
            BranchFacts::united(&[(false, stale), (false, BranchFacts::default())]),
            BranchFacts::default()
        );
        // The pull request of one that shares the branch is that of all.
        let (others, own) =
            (BranchFacts { owned_by_others: Some(7), ..BranchFacts::default() }, BranchFacts::default());
        for (all, expected) in [
            (&[(true, others)][..], Some(7)),
            (&[(true, others), (false, others)], Some(7)),
            (&[(true, others), (true, own)], None),
            (&[(true, others), (false, own)], None),
            // One without a forge knows of no pull request.
            (&[(true, others), (true, without)], Some(7)),
            (&[(true, without)], None),
        ] {
            assert_eq!(BranchFacts::united(all).owned_by_others, expected, "{all:?}");
        }
        let queued = BranchFacts { is_in_merge_queue: true, ..BranchFacts::default() };
        assert_eq!(BranchFacts::united(&[(true, BranchFacts::default()), (false, queued)]), queued);
    }
}
