//! Decides on one branch: the wanted change and the found branch → an action.

use super::model::{BranchFacts, LeftReason};
use crate::git::name::CommitId;

/// The branch at the remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FoundBranch {
    /// It does not exist.
    Absent,
    /// Its tree is the wanted one on the commit below it.
    Same,
    /// It has another tree, and no commit of others.
    Ours,
    /// The base has its change already, or may have it.
    Landed,
    /// It has a commit of this proposer, which is not part of the transaction.
    Shared(String),
    /// It has a commit of others.
    Others(CommitId),
    /// Its commits cannot be read.
    Unreadable(String),
}

/// The action on a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// There is no branch, and none is wanted.
    Nothing,
    /// The branch is created on the base.
    Create,
    /// The branch is built anew on the base.
    Rebuild,
    /// The branch stays, and is as wanted.
    Keep,
    /// The branch stays, though it is not as wanted.
    Leave(LeftReason),
    /// The branch is deleted.
    Delete,
}

impl Decision {
    /// Returns the decision for a proposer without a part in the branch.
    ///
    /// It has neither a change for it nor a commit on it, so the commits of others are no matter of its own, unless they keep
    /// a pull request open or the branch is to end.
    pub(super) fn of_bystander(self, facts: BranchFacts) -> Self {
        match self {
            Self::Leave(LeftReason::SharedWith { .. }) if !facts.is_abandoned => {
                Self::Leave(LeftReason::NothingLeft)
            }
            Self::Leave(LeftReason::EditedByOthers { .. }) if facts.is_deleted_if_stale => {
                Self::Leave(LeftReason::NothingLeft)
            }
            other => other,
        }
    }

    /// Returns the decision for a proposer that renders the branch no more.
    ///
    /// `name` is its own. Others wait for it, and it waits for itself no more than for the branch.
    pub(super) fn of_abandoning(self, name: &str) -> Self {
        match self {
            Self::Leave(LeftReason::SharedWith { name: awaited }) if awaited == name => {
                Self::Leave(LeftReason::Abandoned)
            }
            other => other,
        }
    }

    /// Returns the decision if a file of the base cannot be parsed.
    ///
    /// Then it does not follow that nothing is left to change.
    pub(super) fn of_unparsable_base(self) -> Self {
        match self {
            Self::Leave(LeftReason::NothingLeft) | Self::Delete => Self::Leave(LeftReason::UnparsableBase),
            other => other,
        }
    }

    /// Returns the decision if a proposer has a commit that cannot be planned again.
    ///
    /// A file of the base cannot be parsed, so a branch that is made anew would lose the commit.
    pub(super) fn of_unparsable_commit(self, name: &str) -> Self {
        match self {
            Self::Rebuild => Self::Leave(LeftReason::UnparsableOf { name: name.to_owned() }),
            other => other,
        }
    }
}

/// Decides on a branch with this tip.
///
/// `is_wanted` is true if the base needs a change.
pub(super) fn decide(
    is_wanted: bool,
    found: &FoundBranch,
    tip: Option<CommitId>,
    facts: BranchFacts,
) -> Decision {
    let is_handed_back = facts.handed_back.is_some() && facts.handed_back == tip;
    let is_merged = facts.merged_tip.is_some() && facts.merged_tip == tip;
    // A person has given the commits up that keep a branch without a wanted change.
    let found = match found {
        FoundBranch::Others(_) | FoundBranch::Unreadable(_) if is_merged => &FoundBranch::Ours,
        FoundBranch::Others(_) | FoundBranch::Shared(_) | FoundBranch::Unreadable(_)
            if is_handed_back && !is_wanted =>
        {
            &FoundBranch::Ours
        }
        found => found,
    };
    let edited = |commit: &CommitId| Decision::Leave(LeftReason::EditedByOthers { commit: *commit });
    let shared = |name: &String| Decision::Leave(LeftReason::SharedWith { name: name.clone() });
    let unreadable = |message: &String| Decision::Leave(LeftReason::Unreadable { message: message.clone() });
    let is_at_its_end = facts.is_finished || facts.is_deleted_if_stale;
    let is_kept_by_others = facts.has_pull_request || facts.is_deleted_if_stale;
    if let Some(number) = facts.open_elsewhere.filter(|_| is_wanted || tip.is_some()) {
        return Decision::Leave(LeftReason::OpenElsewhere { number });
    }
    let is_left_anyway = matches!(found, FoundBranch::Same | FoundBranch::Shared(_));
    if let Some(number) = facts.owned_by_others.filter(|_| is_wanted && !is_left_anyway) {
        return Decision::Leave(LeftReason::OwnedByOthers { number });
    }
    match (is_wanted, found) {
        (false, FoundBranch::Absent) => Decision::Nothing,
        (true, FoundBranch::Same) if facts.has_pull_request => Decision::Keep,
        _ if facts.is_refused_at(tip) => Decision::Leave(LeftReason::Refused),
        (true, FoundBranch::Same) => Decision::Keep,
        _ if facts.is_unknown => Decision::Leave(LeftReason::AwaitingForge),
        (true, FoundBranch::Absent) => Decision::Create,
        _ if facts.is_in_merge_queue => Decision::Leave(LeftReason::InMergeQueue),
        (true, _) if is_handed_back => Decision::Rebuild,
        (true, FoundBranch::Ours | FoundBranch::Landed) => Decision::Rebuild,
        (true, FoundBranch::Shared(name)) => shared(name),
        (true, FoundBranch::Others(commit)) => edited(commit),
        (true, FoundBranch::Unreadable(message)) => unreadable(message),
        (false, FoundBranch::Same | FoundBranch::Ours) if is_at_its_end => Decision::Delete,
        (false, FoundBranch::Shared(name)) if is_at_its_end => shared(name),
        // The commits of others keep the pull request open, or the branch.
        (false, FoundBranch::Others(commit)) if is_kept_by_others => edited(commit),
        (false, FoundBranch::Unreadable(message)) if is_kept_by_others => unreadable(message),
        (false, _) if facts.is_abandoned => Decision::Leave(LeftReason::Abandoned),
        (false, _) => Decision::Leave(LeftReason::NothingLeft),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_of_a_branch_has_its_action() {
        use FoundBranch::{Absent, Landed, Ours, Same};
        let commit: CommitId = "0".repeat(40).parse().unwrap();
        let others = || FoundBranch::Others(commit);
        let edited = || Decision::Leave(LeftReason::EditedByOthers { commit });
        let shared = || FoundBranch::Shared("shop/two".to_owned());
        let awaits = || Decision::Leave(LeftReason::SharedWith { name: "shop/two".to_owned() });
        let nothing_left = || Decision::Leave(LeftReason::NothingLeft);
        let none = BranchFacts::default();
        let awaiting = || Decision::Leave(LeftReason::AwaitingForge);
        let unknown = BranchFacts { is_unknown: true, ..none };
        let refused = BranchFacts { is_refused: true, ..none };
        let queued = BranchFacts { is_in_merge_queue: true, ..none };
        let handed_back = BranchFacts { handed_back: Some(commit), ..none };
        let handed_back_before = BranchFacts { handed_back: Some("1".repeat(40).parse().unwrap()), ..none };
        let finished = BranchFacts { is_finished: true, ..none };
        let elsewhere = |facts| BranchFacts { open_elsewhere: Some(7), ..facts };
        let left_there = || Decision::Leave(LeftReason::OpenElsewhere { number: 7 });
        let of_others = |facts| BranchFacts { owned_by_others: Some(7), has_pull_request: true, ..facts };
        let left_to_others = || Decision::Leave(LeftReason::OwnedByOthers { number: 7 });
        let without_forge = BranchFacts { is_deleted_if_stale: true, ..none };
        let merged = BranchFacts { merged_tip: Some(commit), ..finished };
        let merged_before = BranchFacts { merged_tip: Some("1".repeat(40).parse().unwrap()), ..finished };
        for (is_wanted, found, facts, expected) in [
            (true, Absent, none, Decision::Create),
            (true, Same, none, Decision::Keep),
            (true, Ours, none, Decision::Rebuild),
            (true, others(), none, edited()),
            (false, Absent, none, Decision::Nothing),
            (false, Ours, none, nothing_left()),
            (false, others(), none, nothing_left()),
            (
                false,
                Ours,
                BranchFacts { has_pull_request: true, is_abandoned: true, ..none },
                Decision::Leave(LeftReason::Abandoned),
            ),
            (false, Ours, BranchFacts { is_abandoned: true, ..finished }, Decision::Delete),
            (false, others(), BranchFacts { has_pull_request: true, ..none }, edited()),
            (false, Ours, BranchFacts { has_pull_request: true, ..none }, nothing_left()),
            // A branch that people deleted under its pull request.
            (
                true,
                Absent,
                BranchFacts { is_refused_if_absent: true, ..none },
                Decision::Leave(LeftReason::Refused),
            ),
            (true, Ours, BranchFacts { is_refused_if_absent: true, ..none }, Decision::Rebuild),
            // Nothing is changed before the forge has answered.
            (true, Absent, unknown, awaiting()),
            (true, Ours, unknown, awaiting()),
            (true, Same, unknown, Decision::Keep),
            (false, Ours, unknown, awaiting()),
            (false, Absent, unknown, Decision::Nothing),
            // A refusal stands, and a refused branch is not touched.
            (true, Absent, refused, Decision::Leave(LeftReason::Refused)),
            (true, Ours, refused, Decision::Leave(LeftReason::Refused)),
            (false, Ours, BranchFacts { is_finished: true, ..refused }, Decision::Leave(LeftReason::Refused)),
            // The open pull request has another change than one that a person has refused.
            (
                true,
                Ours,
                BranchFacts { has_pull_request: true, ..refused },
                Decision::Leave(LeftReason::Refused),
            ),
            (
                true,
                others(),
                BranchFacts { has_pull_request: true, ..refused },
                Decision::Leave(LeftReason::Refused),
            ),
            // A person has taken it up again.
            (true, Same, BranchFacts { has_pull_request: true, ..refused }, Decision::Keep),
            (
                true,
                Ours,
                BranchFacts { has_pull_request: true, is_refused_if_absent: true, ..refused },
                Decision::Rebuild,
            ),
            // A branch in a queue waits, unless it is as wanted.
            (true, Same, queued, Decision::Keep),
            (true, Ours, queued, Decision::Leave(LeftReason::InMergeQueue)),
            (
                true,
                Ours,
                BranchFacts { handed_back: Some(commit), ..queued },
                Decision::Leave(LeftReason::InMergeQueue),
            ),
            (true, Absent, queued, Decision::Create),
            // Only a person hands commits of others over.
            (true, others(), handed_back, Decision::Rebuild),
            (true, FoundBranch::Unreadable(String::new()), handed_back, Decision::Rebuild),
            // Others have committed since.
            (true, others(), handed_back_before, edited()),
            (true, Same, handed_back, Decision::Keep),
            // Nothing is left to change on it, and then its pull request has ended.
            (false, others(), BranchFacts { has_pull_request: true, ..handed_back }, nothing_left()),
            (false, others(), BranchFacts { is_finished: true, ..handed_back }, Decision::Delete),
            (false, shared(), BranchFacts { is_finished: true, ..handed_back }, Decision::Delete),
            (false, others(), BranchFacts { has_pull_request: true, ..handed_back_before }, edited()),
            (false, others(), BranchFacts { is_finished: true, ..handed_back_before }, nothing_left()),
            // A branch waits for an automation with a commit on it, and is neither made anew nor deleted.
            (true, shared(), none, awaits()),
            (true, shared(), BranchFacts { is_refused_if_absent: true, ..none }, awaits()),
            (false, shared(), finished, awaits()),
            (false, shared(), none, nothing_left()),
            (true, shared(), unknown, awaiting()),
            (true, shared(), refused, Decision::Leave(LeftReason::Refused)),
            (true, shared(), queued, Decision::Leave(LeftReason::InMergeQueue)),
            (true, shared(), handed_back, Decision::Rebuild),
            // A pull request would merge the whole new base into the old one.
            (true, Ours, elsewhere(none), left_there()),
            (true, Same, elsewhere(none), left_there()),
            (true, others(), elsewhere(handed_back), left_there()),
            (false, Ours, elsewhere(finished), left_there()),
            (true, Absent, elsewhere(none), left_there()),
            (false, Absent, elsewhere(none), Decision::Nothing),
            // The text of the pull request would not tell of the new images.
            (true, Ours, of_others(none), left_to_others()),
            (true, Absent, of_others(none), left_to_others()),
            (true, others(), of_others(handed_back), left_to_others()),
            (true, Ours, of_others(refused), left_to_others()),
            (true, Ours, of_others(unknown), left_to_others()),
            (true, Same, of_others(none), Decision::Keep),
            (true, shared(), of_others(none), awaits()),
            (false, Ours, of_others(none), nothing_left()),
            (false, Absent, of_others(none), Decision::Nothing),
            // Commits of others are never deleted.
            (false, Ours, finished, Decision::Delete),
            (false, others(), finished, nothing_left()),
            (true, Ours, finished, Decision::Rebuild),
            (true, Absent, finished, Decision::Create),
            // Those that were merged with the branch are in the base, by each method: it was left alone for ever.
            (true, others(), merged, Decision::Rebuild),
            (false, others(), merged, Decision::Delete),
            (true, FoundBranch::Unreadable(String::new()), merged, Decision::Rebuild),
            (true, shared(), merged, awaits()),
            // Others have committed since.
            (true, others(), merged_before, edited()),
            (false, others(), merged_before, nothing_left()),
            (
                true,
                others(),
                BranchFacts { is_refused: true, ..merged },
                Decision::Leave(LeftReason::Refused),
            ),
            // Without a forge, a branch ends once it would change the base to something that is not wanted.
            (false, Ours, without_forge, Decision::Delete),
            (false, Landed, without_forge, nothing_left()),
            (false, Absent, without_forge, Decision::Nothing),
            (false, others(), without_forge, edited()),
            (false, shared(), without_forge, awaits()),
            (true, Same, without_forge, Decision::Keep),
            (true, Ours, without_forge, Decision::Rebuild),
            (true, others(), without_forge, edited()),
        ] {
            let tip = (found != Absent).then_some(commit);
            let decision = decide(is_wanted, &found, tip, facts);
            assert_eq!(decision, expected, "{is_wanted} {found:?} {facts:?}");
        }
        let open_one = BranchFacts { has_pull_request: true, ..none };
        let abandoned = BranchFacts { is_abandoned: true, ..finished };
        for (decision, facts, expected) in [
            (awaits(), none, nothing_left()),
            (awaits(), open_one, nothing_left()),
            (awaits(), finished, nothing_left()),
            (awaits(), without_forge, nothing_left()),
            // The branch is to be deleted once the other takes part.
            (awaits(), abandoned, awaits()),
            (edited(), without_forge, nothing_left()),
            // The commit keeps the pull request open.
            (edited(), open_one, edited()),
            (Decision::Keep, without_forge, Decision::Keep),
            (Decision::Delete, without_forge, Decision::Delete),
            (awaiting(), unknown, awaiting()),
        ] {
            assert_eq!(decision.clone().of_bystander(facts), expected, "{decision:?} {facts:?}");
        }
        // An automation does not wait for itself.
        let left = Decision::Leave(LeftReason::Abandoned);
        assert_eq!(awaits().of_abandoning("shop/two"), left);
        for decision in [awaits(), edited(), Decision::Delete] {
            assert_eq!(decision.clone().of_abandoning("shop/one"), decision);
        }
        for decision in [Decision::Delete, nothing_left()] {
            let left = Decision::Leave(LeftReason::UnparsableBase);
            assert_eq!(decision.of_unparsable_base(), left);
        }
        for decision in [Decision::Nothing, Decision::Create, Decision::Keep, Decision::Rebuild, edited()] {
            assert_eq!(decision.clone().of_unparsable_base(), decision);
        }
        for decision in [Decision::Create, Decision::Keep, edited()] {
            assert_eq!(decision.clone().of_unparsable_commit("shop/two"), decision);
        }
        let left = Decision::Leave(LeftReason::UnparsableOf { name: "shop/two".to_owned() });
        assert_eq!(Decision::Rebuild.of_unparsable_commit("shop/two"), left);
        let unreadable = FoundBranch::Unreadable("x".to_owned());
        let left = Decision::Leave(LeftReason::Unreadable { message: "x".to_owned() });
        assert_eq!(decide(true, &unreadable, Some(commit), none), left);
        assert_eq!(decide(false, &unreadable, Some(commit), without_forge), left);
    }
}
