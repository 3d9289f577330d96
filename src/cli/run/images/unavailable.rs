//! Policies of a repository that could not be scanned, or has no tags.
//!
//! They keep their images unless the user changed or requested a policy since it last chose. Such a change takes effect
//! at once, also without the registry: an image that a policy does not allow any more is never written again.

use std::collections::BTreeMap;

use tagboat_api::ImageRef;

use super::choice::Choice;
use crate::objects::ObjectName;

/// The effect of an unavailable repository on a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ScanFailureEffect {
    /// It keeps its image.
    ImageRetained(ImageRef),
    /// The state has no choice of it.
    NoImage,
    /// It was changed or requested, and chooses from the tags of an earlier scan.
    Reselected,
    /// It was changed or requested, and there are no tags to choose from.
    NoTags,
    /// It is in a release group, and chooses from the tags of an earlier scan.
    InGroup,
}

impl ScanFailureEffect {
    /// Returns true if the policy chooses from the tags of an earlier scan.
    pub(super) fn chooses(&self) -> bool {
        matches!(self, Self::Reselected | Self::InGroup)
    }

    /// Returns the clause about all policies with this effect.
    fn clause(&self) -> &'static str {
        match self {
            Self::ImageRetained(_) => "its policies keep the images that they have",
            Self::NoImage => {
                "no recorded run has chosen an image for its policies, so their markers are left alone"
            }
            Self::Reselected => {
                "its policies were changed or requested since they last chose, so they choose from the tags in the state"
            }
            Self::NoTags => {
                "its policies were changed or requested since they last chose, but the state has no tags to choose from, so \
                 their markers are left alone"
            }
            Self::InGroup => "its policies are in release groups, so they choose from the tags in the state",
        }
    }
}

/// A repository from which nothing new can be chosen, with its policies.
#[derive(Debug)]
pub(super) struct UnavailableRepository {
    reason: String,
    effects: BTreeMap<ObjectName, ScanFailureEffect>,
}

impl UnavailableRepository {
    /// Creates it without policies; `reason` is a sentence about the repository.
    pub(super) fn new(reason: String) -> Self {
        Self { reason, effects: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, policy: ObjectName, effect: ScanFailureEffect) {
        self.effects.insert(policy, effect);
    }

    /// Returns the sentence that all its policies share.
    pub(super) fn sentence(&self) -> String {
        format!("{}; {}", self.reason, without_choice(&self.effects))
    }

    /// Returns the choices of policies that do not choose anew.
    pub(super) fn choices(&self, repository: &ObjectName) -> Vec<(ObjectName, Choice)> {
        let message = self.sentence();
        let idle = self.effects.iter().filter(|(_, effect)| !effect.chooses());
        let choice = |effect: &ScanFailureEffect| {
            let latest = match effect {
                ScanFailureEffect::ImageRetained(image) => Some(image.clone()),
                _ => None,
            };
            Choice::failed(repository.clone(), latest, message.clone())
        };
        idle.map(|(policy, effect)| (policy.clone(), choice(effect))).collect()
    }
}

/// Returns the effects on policies as one sentence part, with names if the effects differ.
fn without_choice(effects: &BTreeMap<ObjectName, ScanFailureEffect>) -> String {
    let mut clauses = BTreeMap::<&str, Vec<String>>::new();
    for (policy, effect) in effects {
        clauses.entry(effect.clause()).or_default().push(policy.to_string());
    }
    if let [message] = clauses.keys().copied().collect::<Vec<_>>()[..] {
        return message.to_owned();
    }
    if effects
        .values()
        .all(|effect| matches!(effect, ScanFailureEffect::ImageRetained(_) | ScanFailureEffect::NoImage))
    {
        let message = "its policies keep the images that recorded runs have chosen, and the markers of policies without \
                     one are left alone";
        return message.to_owned();
    }
    let clauses =
        clauses.into_iter().map(|(message, policies)| format!("{message}: {}", policies.join(", ")));
    clauses.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(effects: &[ScanFailureEffect]) -> String {
        let named = effects.iter().enumerate().map(|(index, effect)| {
            (ObjectName { namespace: "n".to_owned(), name: index.to_string() }, effect.clone())
        });
        without_choice(&named.collect())
    }

    #[test]
    fn effects_on_policies_are_stated_once_and_by_name_if_they_differ() {
        let kept = ScanFailureEffect::ImageRetained("i:1".parse().unwrap());
        assert_eq!(message(&[kept.clone(), kept.clone()]), "its policies keep the images that they have");
        assert!(
            message(&[kept.clone(), ScanFailureEffect::NoImage])
                .ends_with("the markers of policies without one are left alone")
        );
        assert!(message(&[ScanFailureEffect::NoTags]).ends_with("so their markers are left alone"));
        assert_eq!(
            message(&[kept.clone(), ScanFailureEffect::Reselected, kept]),
            "its policies keep the images that they have: n/0, n/2; its policies were changed or requested since they last \
             chose, so they choose from the tags in the state: n/1"
        );
    }
}
