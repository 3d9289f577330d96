//! The series of commits on each branch, and the automations without a part in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use tagboat_api::ObjectName;

use super::bundle::{Bundles, InvalidBranch, InvalidBranchCause};
use crate::git::BranchName;
use crate::git::outcome::{Separation, Target};

/// An automation and the branches that it renders.
#[derive(Clone, Copy, Debug)]
pub struct RenderedBranches<'a> {
    /// The automation.
    pub automation: &'a ObjectName,
    /// The time of its creation, if it is known.
    pub created: Option<Timestamp>,
    /// Its target, with branches of its own.
    pub target: &'a Target,
    /// Its bundles.
    pub bundles: &'a Bundles,
}

/// The series of commits on each branch of some automations.
///
/// A branch has the base and the push options of the oldest automation that renders it, the first by name if that is unknown. So a
/// new automation takes no branch from an old one, and all come to the same result. A branch to which an automation pushes
/// commits with delivery `push` has no series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BranchSeries {
    owners: BTreeMap<BranchName, Arc<Owner>>,
    pushed: BTreeMap<BranchName, ObjectName>,
}

/// The automation that decides about a branch.
#[derive(Debug, PartialEq, Eq)]
struct Owner {
    automation: ObjectName,
    target: Target,
}

impl BranchSeries {
    /// Finds the series of each branch.
    ///
    /// `pushed` has the branches to which commits are pushed, with the automation.
    pub fn of(mut automations: Vec<RenderedBranches<'_>>, pushed: BTreeMap<BranchName, ObjectName>) -> Self {
        automations.sort_by_key(|one| (one.created.is_none(), one.created, one.automation));
        let mut owners = BTreeMap::new();
        for RenderedBranches { automation, target, bundles, .. } in automations {
            let owner = Arc::new(Owner { automation: automation.clone(), target: target.clone() });
            for branch in bundles.branches.keys() {
                owners.entry(branch.clone()).or_insert_with(|| owner.clone());
            }
        }
        Self { owners, pushed }
    }

    /// Moves the branches that this target cannot share to the invalid ones.
    pub fn refuse(&self, target: &Target, bundles: &mut Bundles) {
        let refused: Vec<(BranchName, InvalidBranchCause)> = bundles
            .branches
            .keys()
            .filter_map(|branch| Some((branch.clone(), self.refusal(branch, target)?)))
            .collect();
        for (branch, cause) in refused {
            for policy in bundles.branches.remove(&branch).unwrap_or_default() {
                bundles.invalid.push(InvalidBranch { policy, cause: cause.clone() });
            }
        }
    }

    fn refusal(&self, branch: &BranchName, target: &Target) -> Option<InvalidBranchCause> {
        if let Some(automation) = self.pushed.get(branch).cloned() {
            return Some(InvalidBranchCause::Pushed { branch: branch.clone(), automation });
        }
        let Owner { automation, target: other } = self.owners.get(branch)?.as_ref();
        let (branch, automation) = (branch.clone(), automation.clone());
        match other.separation(target)? {
            Separation::Branch => {
                Some(InvalidBranchCause::OtherBase { branch, automation, base: other.push.clone() })
            }
            Separation::Options => Some(InvalidBranchCause::OtherOptions { branch, automation }),
            // All have branches of their own, which start from the base.
            Separation::Kind | Separation::Checkout => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::chain;
    use crate::git::Refresh;
    use crate::git::checkout::CheckoutReference;

    fn name(name: &str) -> ObjectName {
        ObjectName { namespace: "shop".to_owned(), name: name.to_owned() }
    }

    /// The branches of one letter each.
    fn bundles(branches: &str) -> Bundles {
        let branch = |branch: char| (branch.to_string().parse().unwrap(), [name("web")].into());
        Bundles { branches: branches.chars().map(branch).collect(), invalid: Vec::new() }
    }

    /// Makes the target of `base`, with push options after a plus.
    fn target(text: &str) -> Target {
        let (base, options) = text.split_once('+').unwrap_or((text, ""));
        let base: BranchName = base.parse().unwrap();
        let options = options.chars().map(|key| (key.to_string(), "1".to_owned())).collect();
        let checkout = CheckoutReference::Branch(base.clone());
        let target = Target { checkout, push: base.clone(), refspec: None, own_branches: None, options };
        target.with_own_branches(base, Refresh::WhenNeeded)
    }

    /// Returns the branches that automations lose, each as `automation branch cause other`.
    ///
    /// An automation is `name@second base+options branches`.
    fn lost(automations: &[&str], pushed: &str) -> Vec<String> {
        let parse = |text: &&str| {
            let [who, target_of, branches] = text.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{text}")
            };
            let (who, created) = match who.split_once('@') {
                Some((who, second)) => (who, Some(Timestamp::from_second(second.parse().unwrap()).unwrap())),
                None => (who, None),
            };
            (name(who), created, target(target_of), bundles(branches))
        };
        let parsed: Vec<_> = automations.iter().map(parse).collect();
        let rendered = parsed.iter().map(|(automation, created, target, bundles)| RenderedBranches {
            automation,
            created: *created,
            target,
            bundles,
        });
        let pushed = bundles(pushed).branches.into_keys().map(|branch| (branch, name("push"))).collect();
        let series = BranchSeries::of(rendered.collect(), pushed);
        let mut lost = Vec::new();
        for (automation, _, target, bundles) in &parsed {
            let mut left = bundles.clone();
            series.refuse(target, &mut left);
            for InvalidBranch { cause, .. } in &left.invalid {
                let (branch, cause, other) = match cause {
                    InvalidBranchCause::OtherBase { branch, automation, .. } => (branch, "base", automation),
                    InvalidBranchCause::OtherOptions { branch, automation } => {
                        (branch, "options", automation)
                    }
                    InvalidBranchCause::Pushed { branch, automation } => (branch, "pushed", automation),
                    cause => panic!("{cause}"),
                };
                assert!(!left.branches.contains_key(branch));
                lost.push(format!("{} {branch} {cause} {}", automation.name, other.name));
            }
        }
        lost.sort();
        lost
    }

    #[test]
    fn a_branch_has_the_base_of_the_oldest_automation_that_renders_it() {
        for (automations, expected) in [
            (&["a main x", "b main x"][..], vec![]),
            (&["a main x", "b release y"], vec![]),
            (&["a main x", "b release x"], vec!["b x base a"]),
            (&["b release x", "a main x"], vec!["b x base a"]),
            // The older one has it; names do not count.
            (&["a@2 main x", "b@1 release x"], vec!["a x base b"]),
            (&["a main x", "b@1 release x"], vec!["a x base b"]),
            (&["a@1 main x", "b@1 release x"], vec!["b x base a"]),
            // One that has lost a branch takes it from no other.
            (&["a main x", "b release x", "c main x"], vec!["b x base a"]),
            (&["a main x", "b release x", "c release x"], vec!["b x base a", "c x base a"]),
            (&["a main xy", "b release xy", "c next yz"], vec!["b x base a", "b y base a", "c y base a"]),
        ] {
            assert_eq!(lost(automations, ""), expected, "{automations:?}");
        }
    }

    /// Each of them replaced the commit of the other in every run.
    #[test]
    fn a_branch_has_the_push_options_of_the_oldest_automation_that_renders_it() {
        for (automations, expected) in [
            (&["a main+o x", "b main+o x"][..], vec![]),
            (&["a main+o x", "b main y"], vec![]),
            (&["a main x", "b main+o x"], vec!["b x options a"]),
            (&["a@2 main x", "b@1 main+o x"], vec!["a x options b"]),
            (&["a main+o x", "b main+p xy", "c main+o xy"], vec!["b x options a", "c y options b"]),
            // The base is named first.
            (&["a main x", "b release+o x"], vec!["b x base a"]),
        ] {
            assert_eq!(lost(automations, ""), expected, "{automations:?}");
        }
    }

    #[test]
    fn a_branch_to_which_an_automation_pushes_commits_is_refused_to_all_others() {
        assert_eq!(lost(&["a main xy", "b main xz"], "x"), ["a x pushed push", "b x pushed push"]);
        assert_eq!(lost(&["a@1 main x", "b release x"], "x"), ["a x pushed push", "b x pushed push"]);
        assert!(lost(&["a main x", "b main x"], "y").is_empty());
    }

    #[test]
    fn a_refusal_names_the_other_automation_and_what_to_do() {
        for (rendered, pushed, expected) in [
            (
                "release",
                false,
                "automation shop/one makes the branch x on release, and a branch has one base: set another name here or there",
            ),
            (
                "main+o",
                false,
                "automation shop/one makes the branch x with other push options, and a branch is pushed with the options of all of \
                 its automations: set the same spec.git.push.options here and there, or another name here or there",
            ),
            (
                "main",
                true,
                "automation shop/one has delivery push and pushes its commits to the branch x, which would be made anew without them: \
                 set another name here or there",
            ),
        ] {
            let (other, target_of, rendered) = (name("one"), target(rendered), bundles("x"));
            let one = RenderedBranches {
                automation: &other,
                created: None,
                target: &target_of,
                bundles: &rendered,
            };
            let pushed = if pushed { [("x".parse().unwrap(), name("one"))].into() } else { BTreeMap::new() };
            let mut own = bundles("x");
            BranchSeries::of(vec![one], pushed).refuse(&target("main"), &mut own);
            let start = "the annotation tagboat.dev/push-branch gives ImagePolicy shop/web no branch: ";
            assert_eq!(chain(&own.invalid[0]), format!("{start}{expected}"));
        }
    }
}
