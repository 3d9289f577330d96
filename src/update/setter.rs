//! What each marker should say.

use std::collections::BTreeMap;

use super::account::MarkerOutcome;
use super::marker::{Field, Marker};
use super::policy_name::PolicyName;
use crate::reference::ImageReference;

/// A policy as far as an update is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Policy {
    /// Selected, with an image.
    Image(ImageReference),
    /// Selected, but it has chosen no image yet, or none that can be read.
    WithoutImage,
    /// In the namespace, but left out by the automation's selector.
    NotSelected,
}

/// The policies of an update, and what they set.
#[derive(Debug, Clone, Default)]
pub struct Setters {
    /// The only namespace whose markers count; `None`: every namespace's.
    namespace: Option<String>,
    policies: BTreeMap<PolicyName, Policy>,
}

impl Setters {
    /// The setters of `policies`, for markers of every namespace.
    pub fn new(policies: BTreeMap<PolicyName, Policy>) -> Self {
        Self { namespace: None, policies }
    }

    /// The same setters for markers of one namespace only; those of others are other automations' business.
    #[must_use]
    pub fn only_for(self, namespace: String) -> Self {
        Self { namespace: Some(namespace), ..self }
    }

    /// The policies that have an image, in rising order.
    pub fn images(&self) -> impl Iterator<Item = (&PolicyName, &ImageReference)> {
        self.policies.iter().filter_map(|(name, policy)| match policy {
            Policy::Image(image) => Some((name, image)),
            _ => None,
        })
    }

    /// The selected policies in rising order, each with the image it has chosen, if any.
    pub fn selected(&self) -> impl Iterator<Item = (&PolicyName, Option<&ImageReference>)> {
        self.policies.iter().filter_map(|(name, policy)| match policy {
            Policy::Image(image) => Some((name, Some(image))),
            Policy::WithoutImage => Some((name, None)),
            Policy::NotSelected => None,
        })
    }

    /// The text that a marker's value should have, or why it has none.
    ///
    /// # Errors
    ///
    /// The outcome to report for the marker.
    pub fn value(&self, marker: &Marker) -> Result<String, MarkerOutcome> {
        if marker.policy.name.is_empty() {
            return Err(MarkerOutcome::UnknownPolicy);
        }
        if self.namespace.as_ref().is_some_and(|own| *own != marker.policy.namespace) {
            return Err(MarkerOutcome::OtherNamespace);
        }
        let image = match self.policies.get(&marker.policy) {
            None => return Err(MarkerOutcome::UnknownPolicy),
            Some(Policy::NotSelected) => return Err(MarkerOutcome::PolicyNotSelected),
            Some(Policy::WithoutImage) => return Err(MarkerOutcome::PolicyWithoutImage),
            Some(Policy::Image(image)) => image,
        };
        let digest = || image.digest.as_ref().map(ToString::to_string);
        Ok(match marker.field {
            Field::Reference => image.to_string(),
            Field::Tag => image.tag.to_string(),
            Field::Name => image.name.to_string(),
            Field::Digest => digest().unwrap_or_default(),
            Field::TagAndDigest => match digest() {
                Some(digest) => format!("{}@{digest}", image.tag),
                None => image.tag.to_string(),
            },
            Field::Unknown => return Err(MarkerOutcome::UnknownField),
        })
    }
}
