//! Tips of branches of which it is unknown whether they have commits of others.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::name::{CommitId, RefName};

/// The maximum number of runs between two reads of the same tip.
const MAX_REST: u32 = 32;

/// The tips of branches of which it is unknown whether they have commits of others.
///
/// The server could not tell, and most likely cannot tell the next time. So the same tip on the same base is read in fewer and
/// fewer runs: after one, two, four others, and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct UnreadableTips(BTreeMap<RefName, UnreadableTip>);

/// A tip of which it is unknown whether it has commits of others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UnreadableTip {
    tip: CommitId,
    base: CommitId,
    /// The commit that may be in the base, or not.
    commit: CommitId,
    /// The number of runs that rest after this read.
    rest: u32,
    /// The number of them to come.
    left: u32,
}

impl UnreadableTips {
    /// Returns the commit of unknown origin if a tip is not to be read now.
    ///
    /// This counts as one run.
    pub(super) fn rests(&mut self, branch: &RefName, tip: CommitId, base: CommitId) -> Option<CommitId> {
        let known = self.0.get_mut(branch).filter(|known| (known.tip, known.base) == (tip, base))?;
        known.left = known.left.checked_sub(1)?;
        Some(known.commit)
    }

    /// Records a tip that was read, with the commit of unknown origin.
    pub(super) fn read(
        &mut self,
        branch: RefName,
        (tip, base): (CommitId, CommitId),
        commit: Option<CommitId>,
    ) {
        let before = self.0.remove(&branch).filter(|known| (known.tip, known.base) == (tip, base));
        let Some(commit) = commit else { return };
        let rest = before.map_or(1, |before| (before.rest * 2).min(MAX_REST));
        self.0.insert(branch, UnreadableTip { tip, base, commit, rest, left: rest });
    }

    /// Forgets the tips of branches that are not in use.
    pub(super) fn retain(&mut self, is_used: impl Fn(&RefName) -> bool) {
        self.0.retain(|branch, _| is_used(branch));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tip_that_cannot_be_read_is_read_in_fewer_and_fewer_runs_until_tip_or_base_moves() {
        let commit = |digit: &str| -> CommitId { digit.repeat(40).parse().unwrap() };
        let branch = || "refs/heads/a".parse::<RefName>().unwrap();
        let (tip, base, odd) = (commit("1"), commit("2"), commit("3"));
        let mut tips = UnreadableTips::default();
        let mut run = |tip, base, is_readable: bool| {
            let rests = tips.rests(&branch(), tip, base);
            assert!(rests.is_none_or(|found| found == odd));
            if rests.is_none() {
                tips.read(branch(), (tip, base), (!is_readable).then_some(odd));
            }
            // The next process goes on.
            tips = serde_json::from_str(&serde_json::to_string(&tips).unwrap()).unwrap();
            rests.is_none()
        };
        let reads: Vec<usize> = (0..200).filter(|_| run(tip, base, false)).collect();
        assert_eq!(reads, [0, 2, 5, 10, 19, 36, 69, 102, 135, 168]);
        // Another tip, or another base, is another question.
        assert!(run(commit("4"), base, false) && !run(commit("4"), base, false));
        assert!(run(commit("4"), commit("5"), false) && !run(commit("4"), commit("5"), false));
        assert!(run(commit("4"), commit("5"), true) && run(commit("4"), commit("5"), true));
        tips.read(branch(), (tip, base), Some(odd));
        tips.retain(|_| false);
        assert_eq!(tips, UnreadableTips::default());
    }
}
