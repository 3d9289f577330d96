//! The policies of a repository that could not be scanned, or has no tags.
//!
//! Where nobody wants anything else than before they keep what they have. What a person wants since then counts at
//! once, also without the registry: an image that a policy does not allow any more is never written again.

use std::collections::BTreeMap;

use tagboat_api::ImageRef;

use super::choice::Choice;
use crate::objects::ObjectName;
use crate::update::PolicyName;

/// What becomes of a policy of such a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It keeps its image.
    Keeps(ImageRef),
    /// No run that is remembered has chosen an image for it.
    HasNothing,
    /// It was changed or asked for, and chooses from the tags of an earlier scan.
    Chooses,
    /// The same without tags to choose from.
    IsStranded,
}

impl Fate {
    /// What is said of all policies that it befalls.
    fn words(&self) -> &'static str {
        match self {
            Self::Keeps(_) => "its policies keep the images that they have",
            Self::HasNothing => {
                "no run that is remembered has chosen an image for its policies, so their markers are left alone"
            }
            Self::Chooses => {
                "its policies were changed or asked for since they last chose, so they choose from the tags that the state has"
            }
            Self::IsStranded => {
                "its policies were changed or asked for since they last chose, but the state has no tags to choose from, so \
                 their markers are left alone"
            }
        }
    }
}

/// The policies of one repository, and why nothing new can be chosen from it.
#[derive(Debug)]
pub(super) struct Blocked {
    obstacle: String,
    fates: BTreeMap<PolicyName, Fate>,
}

impl Blocked {
    /// That of a repository in whose way something is.
    pub(super) fn by(obstacle: String) -> Self {
        Self { obstacle, fates: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, policy: PolicyName, fate: Fate) {
        self.fates.insert(policy, fate);
    }

    /// The sentence that is the same for all its policies.
    pub(super) fn sentence(&self) -> String {
        format!("{}; {}", self.obstacle, without_choice(&self.fates))
    }

    /// The choices of those that do not choose themselves.
    pub(super) fn choices(&self, repository: &ObjectName) -> Vec<(PolicyName, Choice)> {
        let words = self.sentence();
        let idle = self.fates.iter().filter(|(_, fate)| **fate != Fate::Chooses);
        let choice = |fate: &Fate| {
            let latest = match fate {
                Fate::Keeps(image) => Some(image.clone()),
                _ => None,
            };
            Choice::kept(repository.clone(), latest, words.clone())
        };
        idle.map(|(policy, fate)| (policy.clone(), choice(fate))).collect()
    }
}

/// What becomes of the policies of a repository from which nothing new can be chosen.
fn without_choice(fates: &BTreeMap<PolicyName, Fate>) -> String {
    let mut clauses = BTreeMap::<&str, Vec<String>>::new();
    for (policy, fate) in fates {
        clauses.entry(fate.words()).or_default().push(policy.to_string());
    }
    if let [words] = clauses.keys().copied().collect::<Vec<_>>()[..] {
        return words.to_owned();
    }
    if fates.values().all(|fate| matches!(fate, Fate::Keeps(_) | Fate::HasNothing)) {
        let words = "its policies keep the images that runs which are remembered have chosen, and the markers of those \
                     without one are left alone";
        return words.to_owned();
    }
    let clauses = clauses.into_iter().map(|(words, policies)| format!("{words}: {}", policies.join(", ")));
    clauses.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(fates: &[Fate]) -> String {
        let named = fates.iter().enumerate().map(|(index, fate)| {
            (PolicyName { namespace: "n".to_owned(), name: index.to_string() }, fate.clone())
        });
        without_choice(&named.collect())
    }

    #[test]
    fn what_becomes_of_policies_is_said_once_and_by_name_where_it_differs() {
        let kept = Fate::Keeps("i:1".parse().unwrap());
        assert_eq!(words(&[kept.clone(), kept.clone()]), "its policies keep the images that they have");
        assert!(words(&[kept.clone(), Fate::HasNothing]).ends_with("those without one are left alone"));
        assert!(words(&[Fate::IsStranded]).ends_with("so their markers are left alone"));
        assert_eq!(
            words(&[kept.clone(), Fate::Chooses, kept]),
            "its policies keep the images that they have: n/0, n/2; its policies were changed or asked for since they last \
             chose, so they choose from the tags that the state has: n/1"
        );
    }
}
