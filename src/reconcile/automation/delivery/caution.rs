//! Automations for which merges of another one wait.

use std::collections::BTreeSet;

use tagboat_api::ObjectName;
use tagboat_api::settings::MergeTime;

use super::memory::OwnerHash;
use crate::git::BranchName;

/// An automation for which merges of another one may have to wait.
///
/// It is active and wants a more cautious merge, or does nothing until people do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CautiousAutomation {
    /// The automation.
    pub automation: ObjectName,
    /// The hash by which its pull requests are recognized.
    pub owner: OwnerHash,
    /// The time at which it wants pull requests to be merged.
    pub merge: MergeTime,
    /// The branches that it renders; none if it may render any.
    pub branches: Option<BTreeSet<BranchName>>,
    /// The reason for which it does not say what it wants, if it does not.
    pub standstill: Option<Standstill>,
}

/// The reason for which an automation does not say what it wants of pull requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standstill {
    /// It is suspended.
    Suspended,
    /// Its annotations are invalid.
    InvalidSettings,
    /// Its spec cannot be reconciled, and its only branch is known.
    Stalled,
    /// Its branches cannot all be rendered.
    UnknownBranches,
}

impl CautiousAutomation {
    /// Returns the automation with only those of its branches that another one renders as well.
    ///
    /// There is none if it renders none of them, unless it may have a part in a pull request from before.
    pub fn within(&self, rendered: &dyn Fn(&BranchName) -> bool) -> Option<Self> {
        let shared = |branches: &BTreeSet<BranchName>| -> BTreeSet<BranchName> {
            branches.iter().filter(|branch| rendered(branch)).cloned().collect()
        };
        let branches = self.branches.as_ref().map(shared);
        let has_one = branches.as_ref().is_none_or(|branches| !branches.is_empty());
        (has_one || self.standstill.is_some()).then(|| Self { branches, ..self.clone() })
    }

    /// Returns true if it counts only where a last line names it.
    pub fn is_only_named(&self) -> bool {
        self.standstill.is_some() && self.branches.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// Returns a sentence that says what ends the wait for it.
    ///
    /// There is none if people have to do nothing. `is_sharer` is true if the last line of the pull request names it.
    pub fn remedy(&self, is_sharer: bool) -> Option<String> {
        let why = match (self.standstill?, is_sharer) {
            (Standstill::Suspended, _) => {
                "which has a part in the pull request and is suspended: resume it, or drop its part by the label tagboat/rebuild"
            }
            (Standstill::InvalidSettings, true) => {
                "which has a part in the pull request and invalid annotations: correct them"
            }
            (Standstill::InvalidSettings, false) => {
                "which may render the same branch and has invalid annotations: correct them, or suspend it"
            }
            (Standstill::Stalled, true) => {
                "which has a part in the pull request and is stalled: see its conditions"
            }
            (Standstill::Stalled, false) => {
                "which renders the same branch and is stalled: see its conditions, or suspend it"
            }
            (Standstill::UnknownBranches, true) => {
                "which has a part in the pull request, and its branches are not known: see its conditions"
            }
            (Standstill::UnknownBranches, false) => {
                "which may render the same branch, as its branches are not known: see its conditions, or suspend it"
            }
        };
        Some(format!("merges wait for automation {}, {why}", self.automation))
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
        let automation = ObjectName { namespace: "shop".to_owned(), name: "two".to_owned() };
        CautiousAutomation {
            owner: OwnerHash::of(&automation, None),
            automation,
            merge: MergeTime::ByHand,
            branches: branches.map(|branches| branches.chars().map(name).collect()),
            standstill: None,
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

    /// Nothing told for which automation a merge waited.
    #[test]
    fn one_that_stands_still_is_known_with_any_branch_and_says_what_to_do() {
        let still = |standstill| CautiousAutomation { standstill: Some(standstill), ..cautious(Some("b")) };
        assert_eq!((cautious(None).remedy(true), cautious(None).within(&|_| false).is_some()), (None, true));
        for (standstill, is_sharer, expected) in [
            (
                Standstill::Suspended,
                true,
                "is suspended: resume it, or drop its part by the label tagboat/rebuild",
            ),
            (
                Standstill::InvalidSettings,
                true,
                "has a part in the pull request and invalid annotations: correct them",
            ),
            (Standstill::InvalidSettings, false, "has invalid annotations: correct them, or suspend it"),
            (
                Standstill::Stalled,
                false,
                "renders the same branch and is stalled: see its conditions, or suspend it",
            ),
            (Standstill::Stalled, true, "has a part in the pull request and is stalled: see its conditions"),
            (
                Standstill::UnknownBranches,
                false,
                "its branches are not known: see its conditions, or suspend it",
            ),
            // Suspending it would not end the wait.
            (Standstill::UnknownBranches, true, "its branches are not known: see its conditions"),
        ] {
            let one = still(standstill).within(&|_| false).unwrap();
            assert!(one.is_only_named());
            let remedy = one.remedy(is_sharer).unwrap();
            assert!(remedy.starts_with("merges wait for automation shop/two, which "), "{remedy}");
            assert!(remedy.ends_with(expected), "{remedy}");
        }
    }
}
