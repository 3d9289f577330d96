//! The base of each branch that automations with different bases render.

use std::collections::BTreeMap;

use jiff::Timestamp;
use tagboat_api::ObjectName;

use super::bundle::{Bundles, InvalidBranch, InvalidBranchCause};
use crate::git::BranchName;

/// An automation and the branches that it renders.
#[derive(Clone, Copy, Debug)]
pub struct RenderedBranches<'a> {
    /// The automation.
    pub automation: &'a ObjectName,
    /// The time of its creation, if it is known.
    pub created: Option<Timestamp>,
    /// Its base.
    pub base: &'a BranchName,
    /// Its bundles.
    pub bundles: &'a Bundles,
}

/// The base of each branch of some automations.
///
/// A branch has the base of the oldest automation that renders it, the first by name if that is unknown. So a new automation takes
/// no branch from an old one, and all come to the same result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BranchBases(BTreeMap<BranchName, (ObjectName, BranchName)>);

impl BranchBases {
    /// Finds the base of each branch.
    pub fn of(mut automations: Vec<RenderedBranches<'_>>) -> Self {
        automations.sort_by_key(|one| (one.created.is_none(), one.created, one.automation));
        let mut bases = BTreeMap::new();
        for RenderedBranches { automation, base, bundles, .. } in automations {
            for branch in bundles.branches.keys() {
                bases.entry(branch.clone()).or_insert_with(|| (automation.clone(), base.clone()));
            }
        }
        Self(bases)
    }

    /// Moves the branches that have another base to the invalid ones.
    pub fn refuse(&self, base: &BranchName, bundles: &mut Bundles) {
        let is_elsewhere = |branch: &BranchName| self.0.get(branch).filter(|(_, other)| other != base);
        let found: Vec<_> = bundles
            .branches
            .keys()
            .filter_map(|branch| Some((branch.clone(), is_elsewhere(branch)?.clone())))
            .collect();
        for (branch, (automation, base)) in found {
            for policy in bundles.branches.remove(&branch).unwrap_or_default() {
                let (branch, automation, base) = (branch.clone(), automation.clone(), base.clone());
                let cause = InvalidBranchCause::OtherBase { branch, automation, base };
                bundles.invalid.push(InvalidBranch { policy, cause });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::chain;

    fn name(name: &str) -> ObjectName {
        ObjectName { namespace: "shop".to_owned(), name: name.to_owned() }
    }

    fn bundles(branches: &str) -> Bundles {
        let branches = branches.split(' ').map(|branch| (branch.parse().unwrap(), [name("web")].into()));
        Bundles { branches: branches.collect(), invalid: Vec::new() }
    }

    #[test]
    fn a_branch_has_the_base_of_the_oldest_automation_that_renders_it() {
        // Automations as `name@second base branches`, and the branches that each loses, with the one that has it.
        for (automations, expected) in [
            (&["a main x", "b main x"][..], vec![]),
            (&["a main x", "b release y"], vec![]),
            (&["a main x", "b release x"], vec!["b x a"]),
            (&["b release x", "a main x"], vec!["b x a"]),
            // The older one has it; names do not count.
            (&["a@2 main x", "b@1 release x"], vec!["a x b"]),
            (&["a main x", "b@1 release x"], vec!["a x b"]),
            (&["a@1 main x", "b@1 release x"], vec!["b x a"]),
            // One that has lost a branch takes it from no other.
            (&["a main x", "b release x", "c main x"], vec!["b x a"]),
            (&["a main x", "b release x", "c release x"], vec!["b x a", "c x a"]),
            (&["a main x y", "b release x y", "c next y z"], vec!["b x a", "b y a", "c y a"]),
        ] {
            let parse = |text: &&str| {
                let mut parts = text.splitn(3, ' ');
                let (who, base, branches) =
                    (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
                let (who, created) = match who.split_once('@') {
                    Some((who, second)) => {
                        (who, Some(Timestamp::from_second(second.parse().unwrap()).unwrap()))
                    }
                    None => (who, None),
                };
                (name(who), created, base.parse::<BranchName>().unwrap(), bundles(branches))
            };
            let parsed: Vec<_> = automations.iter().map(parse).collect();
            let rendered = parsed.iter().map(|(automation, created, base, bundles)| RenderedBranches {
                automation,
                created: *created,
                base,
                bundles,
            });
            let bases = BranchBases::of(rendered.collect());
            let mut lost = Vec::new();
            for (automation, _, base, bundles) in &parsed {
                let mut left = bundles.clone();
                bases.refuse(base, &mut left);
                for InvalidBranch { cause, .. } in &left.invalid {
                    let InvalidBranchCause::OtherBase { branch, automation: other, .. } = cause else {
                        panic!("{cause}")
                    };
                    assert!(!left.branches.contains_key(branch));
                    lost.push(format!("{} {branch} {}", automation.name, other.name));
                }
            }
            lost.sort();
            assert_eq!(lost, expected, "{automations:?}");
        }
    }

    #[test]
    fn a_refusal_names_the_other_automation_and_what_to_do() {
        let (main, mut own) = ("main".parse().unwrap(), bundles("images"));
        let (other, base, rendered) = (name("one"), "release".parse().unwrap(), bundles("images"));
        let one = RenderedBranches { automation: &other, created: None, base: &base, bundles: &rendered };
        BranchBases::of(vec![one]).refuse(&main, &mut own);
        assert_eq!(
            chain(&own.invalid[0]),
            "the annotation tagboat.dev/push-branch gives ImagePolicy shop/web no branch: automation shop/one makes the branch \
             images on release, and a branch has one base: set another name here or there"
        );
    }
}
