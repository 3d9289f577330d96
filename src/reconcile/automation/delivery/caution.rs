//! Automations that want a more cautious merge than another one.

use std::collections::BTreeSet;

use tagboat_api::ObjectName;
use tagboat_api::settings::MergeTime;

use crate::git::BranchName;

/// An active automation that wants a more cautious merge than another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CautiousAutomation {
    /// The automation.
    pub automation: ObjectName,
    /// The time at which it wants pull requests to be merged.
    pub merge: MergeTime,
    /// The branches that it renders; none if it may render any.
    pub branches: Option<BTreeSet<BranchName>>,
}

impl CautiousAutomation {
    /// Returns the automation with only those of its branches that another one renders as well.
    ///
    /// There is none if it renders none of them.
    pub fn within(&self, rendered: &dyn Fn(&BranchName) -> bool) -> Option<Self> {
        let shared = |branches: &BTreeSet<BranchName>| -> BTreeSet<BranchName> {
            branches.iter().filter(|branch| rendered(branch)).cloned().collect()
        };
        let branches = self.branches.as_ref().map(shared);
        let has_one = branches.as_ref().is_none_or(|branches| !branches.is_empty());
        has_one.then(|| Self { branches, ..self.clone() })
    }

    /// Returns true if its caution counts for a branch.
    ///
    /// `has_order` is true if it has handed over what it wants. If that lacks the branch, the branch is that of a later run.
    pub fn counts_for(&self, branch: &BranchName, has_order: bool) -> bool {
        self.branches.as_ref().map_or(!has_order, |branches| branches.contains(branch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cautious(branches: Option<&str>) -> CautiousAutomation {
        let name = |name: char| name.to_string().parse().unwrap();
        CautiousAutomation {
            automation: ObjectName { namespace: "shop".to_owned(), name: "two".to_owned() },
            merge: MergeTime::ByHand,
            branches: branches.map(|branches| branches.chars().map(name).collect()),
        }
    }

    #[test]
    fn the_caution_of_an_automation_counts_for_the_branches_that_it_may_render() {
        let branch: BranchName = "a".parse().unwrap();
        for (branches, has_order, expected) in [
            (Some("ab"), false, true),
            (Some("b"), false, false),
            // Its last run was before the branch got this name.
            (Some("a"), true, true),
            (None, false, true),
            // What it has handed over tells its branches.
            (None, true, false),
        ] {
            let found = cautious(branches).counts_for(&branch, has_order);
            assert_eq!(found, expected, "{branches:?} {has_order}");
        }
        let rendered = |branch: &BranchName| branch.as_str() == "a";
        for (branches, expected) in [(Some("ab"), Some(Some("a"))), (Some("b"), None), (None, Some(None))] {
            assert_eq!(cautious(branches).within(&rendered), expected.map(cautious), "{branches:?}");
        }
    }
}
