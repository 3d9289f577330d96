//! Computes the desired value of each marker from the policies.

use std::collections::{BTreeMap, BTreeSet};

use tagboat_api::ObjectName;
use tagboat_api::object_name::validate_namespace;

use super::marker::{Field, Marker};
use super::report::MarkerOutcome;
use crate::reference::ImageReference;

/// The state of a policy for an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyState {
    /// The policy is selected and has an image.
    Image(ImageReference),
    /// The policy is selected, but has no image, or none that can be parsed.
    WithoutImage,
    /// The policy exists in the namespace, but the automation's selector does not select it.
    NotSelected,
}

/// The policies of an update, and the values that they set.
#[derive(Debug, Clone, Default)]
pub struct Setters {
    /// The only namespace whose markers count; `None` means all namespaces.
    namespace: Option<String>,
    policies: BTreeMap<ObjectName, PolicyState>,
}

impl Setters {
    /// Creates the setters of `policies`, for markers of every namespace.
    pub fn new(policies: BTreeMap<ObjectName, PolicyState>) -> Self {
        Self { namespace: None, policies }
    }

    /// Restricts the setters to markers of one namespace; other automations handle the others.
    #[must_use]
    pub fn only_for(self, namespace: String) -> Self {
        Self { namespace: Some(namespace), ..self }
    }

    /// Restricts the setters to some of the selected policies; the others count as not selected.
    #[must_use]
    pub fn restricted_to(&self, policies: &BTreeSet<ObjectName>) -> Self {
        let state = |(name, state): (&ObjectName, &PolicyState)| {
            let state = if policies.contains(name) { state.clone() } else { PolicyState::NotSelected };
            (name.clone(), state)
        };
        Self { namespace: self.namespace.clone(), policies: self.policies.iter().map(state).collect() }
    }

    /// The policies with an image, in ascending order.
    pub fn images(&self) -> impl Iterator<Item = (&ObjectName, &ImageReference)> {
        self.policies.iter().filter_map(|(name, policy)| match policy {
            PolicyState::Image(image) => Some((name, image)),
            _ => None,
        })
    }

    /// The selected policies in ascending order, each with its image, if any.
    pub fn selected(&self) -> impl Iterator<Item = (&ObjectName, Option<&ImageReference>)> {
        self.policies.iter().filter_map(|(name, policy)| match policy {
            PolicyState::Image(image) => Some((name, Some(image))),
            PolicyState::WithoutImage => Some((name, None)),
            PolicyState::NotSelected => None,
        })
    }

    /// Returns the desired value of a marker.
    ///
    /// # Errors
    ///
    /// Returns the outcome of the marker if it has no desired value.
    pub fn value(&self, marker: &Marker) -> Result<String, MarkerOutcome> {
        if marker.policy.name.is_empty() {
            return Err(MarkerOutcome::UnknownPolicy);
        }
        let namespace = &marker.policy.namespace;
        if self.namespace.as_ref().is_some_and(|own| own != namespace) {
            // No automation handles a marker of a namespace that cannot exist.
            let can_exist = validate_namespace(namespace).is_ok();
            return Err(if can_exist { MarkerOutcome::OtherNamespace } else { MarkerOutcome::UnknownPolicy });
        }
        let image = match self.policies.get(&marker.policy) {
            None => return Err(MarkerOutcome::UnknownPolicy),
            Some(PolicyState::NotSelected) => return Err(MarkerOutcome::PolicyNotSelected),
            Some(PolicyState::WithoutImage) => return Err(MarkerOutcome::PolicyWithoutImage),
            Some(PolicyState::Image(image)) => image,
        };
        marker.field.value_in(image).ok_or(MarkerOutcome::UnknownField)
    }
}

impl Field {
    /// Returns the part of an image as text; `None` if images have no such part.
    #[must_use]
    pub fn value_in(self, image: &ImageReference) -> Option<String> {
        let digest = || image.digest.as_ref().map(ToString::to_string);
        match self {
            Self::Reference => Some(image.to_string()),
            Self::Tag => Some(image.tag.to_string()),
            Self::Name => Some(image.name.to_string()),
            Self::Digest => Some(digest().unwrap_or_default()),
            Self::TagAndDigest => Some(match digest() {
                Some(digest) => format!("{}@{digest}", image.tag),
                None => image.tag.to_string(),
            }),
            Self::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_of_a_namespace_that_cannot_exist_names_an_unknown_policy() {
        let setters = Setters::default().only_for("fleet".to_owned());
        let outcome = |setter: &str| setters.value(&Marker::of_setter(setter)).unwrap_err();
        for setter in [":web", "Shop:web", "shop :web", "-shop:web", "shop-:web", "shop.a:web", "shöp:web"] {
            assert_eq!(outcome(setter), MarkerOutcome::UnknownPolicy, "{setter}");
        }
        assert_eq!(outcome(&format!("{}:web:tag", "a".repeat(64))), MarkerOutcome::UnknownPolicy);
        for namespace in ["shop", "shop-1", "0", &"a".repeat(63)] {
            assert_eq!(outcome(&format!("{namespace}:web")), MarkerOutcome::OtherNamespace, "{namespace}");
        }
    }
}
