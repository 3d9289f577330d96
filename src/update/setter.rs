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
    /// The policy is selected, and its image may not be written yet.
    Held {
        /// The image.
        wanted: ImageReference,
        /// The image that counts meanwhile; without one, nothing is written.
        last: Option<ImageReference>,
    },
}

impl PolicyState {
    /// Returns the image that counts, if the policy is selected and has one.
    fn image(&self) -> Option<&ImageReference> {
        match self {
            Self::Image(image) | Self::Held { last: Some(image), .. } => Some(image),
            Self::Held { last: None, .. } | Self::WithoutImage | Self::NotSelected => None,
        }
    }
}

/// The policies of an update, and the values that they set.
#[derive(Debug, Clone, Default)]
pub struct Setters {
    /// The only namespace whose markers count; `None` means all namespaces.
    namespace: Option<String>,
    /// The selected policies.
    policies: BTreeMap<ObjectName, PolicyState>,
    /// The names of the others in ascending order.
    ///
    /// Each of many automations in a namespace has all the policies that it does not select.
    others: Box<[Box<str>]>,
}

/// Creates the setters of policies, for markers of every namespace.
impl FromIterator<(ObjectName, PolicyState)> for Setters {
    fn from_iter<I: IntoIterator<Item = (ObjectName, PolicyState)>>(all: I) -> Self {
        let (mut policies, mut others) = (BTreeMap::new(), Vec::new());
        for (name, state) in all {
            match state {
                PolicyState::NotSelected => others.push(name.to_string().into_boxed_str()),
                state => drop(policies.insert(name, state)),
            }
        }
        others.sort_unstable();
        Self { namespace: None, policies, others: others.into_boxed_slice() }
    }
}

impl Setters {
    /// Creates the setters of `policies`, for markers of every namespace.
    pub fn new(policies: BTreeMap<ObjectName, PolicyState>) -> Self {
        policies.into_iter().collect()
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
        let restricted: Self = self.policies.iter().map(state).collect();
        let mut others = [&*self.others, &*restricted.others].concat();
        others.sort_unstable();
        Self { namespace: self.namespace.clone(), others: others.into_boxed_slice(), ..restricted }
    }

    /// Returns true for a policy that exists and is not selected.
    fn is_other(&self, policy: &ObjectName) -> bool {
        let name = policy.to_string();
        self.others.binary_search_by(|other| (**other).cmp(name.as_str())).is_ok()
    }

    /// The policies with an image, in ascending order.
    pub fn images(&self) -> impl Iterator<Item = (&ObjectName, &ImageReference)> {
        self.policies.iter().filter_map(|(name, policy)| Some((name, policy.image()?)))
    }

    /// Returns the wanted image of each policy that has one, be it held or not.
    pub fn wanted(&self) -> impl Iterator<Item = (&ObjectName, &ImageReference)> {
        self.policies.iter().filter_map(|(name, policy)| match policy {
            PolicyState::Image(image) | PolicyState::Held { wanted: image, .. } => Some((name, image)),
            PolicyState::WithoutImage | PolicyState::NotSelected => None,
        })
    }

    /// The selected policies in ascending order, each with its image, if any.
    pub fn selected(&self) -> impl Iterator<Item = (&ObjectName, Option<&ImageReference>)> {
        self.policies.iter().map(|(name, policy)| (name, policy.image()))
    }

    /// Returns the image of one policy, if any; `None` if it is not selected.
    pub fn of_selected(&self, policy: &ObjectName) -> Option<Option<&ImageReference>> {
        Some(self.policies.get(policy)?.image())
    }

    /// Holds the image of a policy, if it has one; `last` counts meanwhile.
    pub fn hold(&mut self, policy: &ObjectName, last: Option<ImageReference>) {
        if let Some(state) = self.policies.get_mut(policy)
            && let PolicyState::Image(wanted) = state
        {
            *state = PolicyState::Held { wanted: wanted.clone(), last };
        }
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
            None if !self.is_other(&marker.policy) => return Err(MarkerOutcome::UnknownPolicy),
            None | Some(PolicyState::NotSelected) => return Err(MarkerOutcome::PolicyNotSelected),
            Some(PolicyState::WithoutImage) => return Err(MarkerOutcome::PolicyWithoutImage),
            Some(PolicyState::Held { last: None, .. }) if marker.field == Field::Unknown => {
                return Err(MarkerOutcome::UnknownField);
            }
            Some(PolicyState::Held { last: None, .. }) => return Err(MarkerOutcome::Waiting),
            Some(PolicyState::Image(image) | PolicyState::Held { last: Some(image), .. }) => image,
        };
        marker.field.value_in(image).ok_or(MarkerOutcome::UnknownField)
    }

    /// Returns the outcome of a marker whose value stays.
    ///
    /// It waits if its policy is held, and wants another value.
    pub(super) fn outcome_of_kept(&self, marker: &Marker, value: &str) -> MarkerOutcome {
        let wanted = match self.policies.get(&marker.policy) {
            Some(PolicyState::Held { wanted, .. }) => marker.field.value_in(wanted),
            _ => None,
        };
        match wanted {
            Some(wanted) if wanted != value => MarkerOutcome::Waiting,
            _ => MarkerOutcome::Current,
        }
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
    fn the_last_image_of_a_held_policy_counts() {
        let image = |tag: &str| ImageReference::parse(&format!("img:{tag}")).unwrap();
        let names = ["old", "new", "other"]
            .map(|name| ObjectName { namespace: "fleet".to_owned(), name: name.to_owned() });
        let all = names.iter().map(|name| (name.clone(), PolicyState::Image(image("2"))));
        let mut setters = Setters::new(all.collect());
        setters.hold(&names[0], Some(image("1")));
        setters.hold(&names[1], None);
        setters.hold(&ObjectName { namespace: "fleet".to_owned(), name: "unknown".to_owned() }, None);
        let marker = |setter: &str| Marker::of_setter(setter);
        for (setter, value) in [
            ("fleet:old:tag", Ok("1".to_owned())),
            ("fleet:new:tag", Err(MarkerOutcome::Waiting)),
            ("fleet:new:x", Err(MarkerOutcome::UnknownField)),
            ("fleet:other:tag", Ok("2".to_owned())),
        ] {
            assert_eq!(setters.value(&marker(setter)), value, "{setter}");
        }
        for (setter, value, outcome) in [
            ("fleet:old:tag", "1", MarkerOutcome::Waiting),
            ("fleet:old:name", "img", MarkerOutcome::Current),
            ("fleet:new:tag", "2", MarkerOutcome::Current),
            ("fleet:new:tag", "1", MarkerOutcome::Waiting),
            ("fleet:other:tag", "2", MarkerOutcome::Current),
        ] {
            assert_eq!(setters.outcome_of_kept(&marker(setter), value), outcome, "{setter}");
        }
        let shown = |images: Vec<(&ObjectName, &ImageReference)>| {
            let shown = images.iter().map(|(policy, image)| format!("{}={}", policy.name, image.tag));
            shown.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown(setters.images().collect()), "old=1 other=2");
        assert_eq!(shown(setters.wanted().collect()), "new=2 old=2 other=2");
        assert_eq!((setters.of_selected(&names[1]), setters.selected().count()), (Some(None), 3));
    }

    #[test]
    fn policies_that_are_not_selected_set_nothing_and_are_not_unknown() {
        let name = |name: &str| ObjectName { namespace: "fleet".to_owned(), name: name.to_owned() };
        let image = || PolicyState::Image(ImageReference::parse("img:2").unwrap());
        let setters: Setters = [
            ("web", image()),
            ("other", PolicyState::NotSelected),
            ("api", image()),
            ("a", PolicyState::NotSelected),
        ]
        .into_iter()
        .map(|(policy, state)| (name(policy), state))
        .collect();
        let restricted = setters.restricted_to(&[name("web"), name("other")].into());
        let outcome = |setters: &Setters, policy: &str| {
            setters.value(&Marker::of_setter(&format!("fleet:{policy}:tag")))
        };
        let (selected, other) = (Ok("2".to_owned()), Err(MarkerOutcome::PolicyNotSelected));
        let unknown = Err(MarkerOutcome::UnknownPolicy);
        for (policy, of_all, of_restricted) in [
            ("web", &selected, &selected),
            ("api", &selected, &other),
            ("other", &other, &other),
            ("a", &other, &other),
            ("none", &unknown, &unknown),
        ] {
            assert_eq!(&outcome(&setters, policy), of_all, "{policy}");
            assert_eq!(&outcome(&restricted, policy), of_restricted, "{policy}");
        }
        assert_eq!((setters.selected().count(), restricted.selected().count()), (2, 1));
        assert_eq!(setters.of_selected(&name("other")), None);
    }

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
