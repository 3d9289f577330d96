//! Release groups: their members are written only while all of them have the same value.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt;
use tagboat_api::settings::{GroupName, PolicySettings};
use tagboat_api::{ImagePolicy, ImageRef};

use crate::objects::ObjectName;
use crate::policy::group::value_of;
use crate::reference::ImageReference;
use crate::update::Setters;

/// The maximum number of groups that a message names.
const MAX_NAMED: usize = 10;

/// The release groups of the policies that an automation selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupHolds {
    /// True if a selected policy is in a group.
    pub has_groups: bool,
    /// Phrases about the groups whose members have different values.
    incomplete: Vec<String>,
    /// The selected members of these groups.
    held: BTreeSet<ObjectName>,
}

/// The images beside those in the statuses of policies.
#[derive(Clone, Copy, Debug)]
pub struct Images<'a> {
    /// The images that replace those in the statuses, where none is a policy without one.
    pub given: &'a BTreeMap<ObjectName, Option<ImageReference>>,
    /// The images that the last run has written, by the name of their policy.
    pub observed: &'a BTreeMap<String, ImageRef>,
}

/// A member of a group with its value.
struct MemberValue {
    name: ObjectName,
    is_selected: bool,
    /// The value, or the reason why there is none.
    value: Result<String, String>,
}

impl MemberValue {
    /// Returns the value as a phrase that begins with the name.
    fn phrase(&self) -> String {
        match &self.value {
            Ok(value) => format!("{} has {value:?}", self.name.name),
            Err(cause) => format!("{} {cause}", self.name.name),
        }
    }
}

impl GroupHolds {
    /// Returns true if a policy is in a release group.
    pub fn concern(policy: &ImagePolicy) -> bool {
        PolicySettings::release_group(policy.annotations()).is_some()
    }

    /// Holds the policies of groups whose members have different values.
    ///
    /// `policies` are all policies of the automation's namespace. The images that were written last count for those that
    /// are held.
    pub fn hold<'p>(
        setters: &mut Setters,
        policies: impl IntoIterator<Item = &'p ImagePolicy>,
        images: Images<'_>,
    ) -> Self {
        let mut groups = BTreeMap::<&str, Vec<MemberValue>>::new();
        for policy in policies {
            if let Some(group) = PolicySettings::release_group(policy.annotations()) {
                groups.entry(group).or_default().push(member(setters, policy, images));
            }
        }
        let mut holds = Self::default();
        for (group, members) in groups {
            if !members.iter().any(|member| member.is_selected) {
                continue;
            }
            holds.has_groups = true;
            let Some(phrase) = difference(group, &members) else { continue };
            holds.incomplete.push(phrase);
            for MemberValue { name, .. } in members.iter().filter(|member| member.is_selected) {
                setters.hold(name, images.observed.get(&name.name).and_then(reference));
                holds.held.insert(name.clone());
            }
        }
        holds
    }

    /// Returns the groups that delay writes, as a phrase, if there are any.
    pub fn by(&self) -> Option<String> {
        let named = self.incomplete[..self.incomplete.len().min(MAX_NAMED)].join("; ");
        match self.incomplete.len().saturating_sub(MAX_NAMED) {
            0 => Some(named).filter(|named| !named.is_empty()),
            more => Some(format!("{named}; and {more} more")),
        }
    }

    /// Returns the selected policies that are written only once their group is complete.
    pub fn held(&self) -> impl Iterator<Item = &ObjectName> {
        self.held.iter()
    }

    /// Returns true if a policy is written only once its group is complete.
    pub fn holds(&self, policy: &ObjectName) -> bool {
        self.held.contains(policy)
    }

    /// Returns true if a group delays writes.
    pub fn are_incomplete(&self) -> bool {
        !self.incomplete.is_empty()
    }
}

/// Finds the value of a policy.
fn member(setters: &Setters, policy: &ImagePolicy, images: Images<'_>) -> MemberValue {
    let name = ObjectName::of(policy);
    let selected = setters.of_selected(&name);
    let latest = || policy.status.as_ref()?.latest_ref.as_ref().map(|latest| latest.tag.clone());
    let tag = match (selected, images.given.get(&name)) {
        (Some(image), _) => image.map(|image| image.tag.to_string()),
        (None, Some(given)) => given.as_ref().map(|image| image.tag.to_string()),
        (None, None) => latest(),
    };
    let value = match tag {
        None => Err("has no image".to_owned()),
        Some(tag) => value_of(&policy.spec, &tag)
            .ok_or_else(|| format!("has the tag {tag}, which its filterTags does not match")),
    };
    MemberValue { is_selected: selected.is_some(), name, value }
}

/// Returns the difference between two members of a group as a phrase.
fn difference(group: &str, members: &[MemberValue]) -> Option<String> {
    if group.parse::<GroupName>().is_err() {
        let names: BTreeSet<&str> = members.iter().map(|member| member.name.name.as_str()).collect();
        let names: Vec<&str> = names.into_iter().take(MAX_NAMED).collect();
        return Some(format!(
            "the annotation tagboat.dev/release-group of {} is not valid",
            names.join(", ")
        ));
    }
    if let Some(without) = members.iter().find(|member| member.value.is_err()) {
        return Some(format!("release group {group}: {}", without.phrase()));
    }
    let first = members.first()?;
    let other = members.iter().find(|member| member.value != first.value)?;
    Some(format!("release group {group}: {} and {}", first.phrase(), other.phrase()))
}

fn reference(image: &ImageRef) -> Option<ImageReference> {
    ImageReference::from_parts(&image.name, &image.tag, image.digest()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::update::PolicyState;

    /// `NAME GROUP TAG`; tags are `NAME-VALUE`, and `-` is no group or no tag.
    fn policy(text: &str) -> ImagePolicy {
        let [policy, group, tag] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
        let mut annotations = json!({});
        if group != "-" {
            annotations["tagboat.dev/release-group"] = json!(group);
        }
        let latest = if tag == "-" { json!(null) } else { json!({"name": "img", "tag": tag}) };
        serde_json::from_value(json!({
            "metadata": {"namespace": "shop", "name": policy, "annotations": annotations},
            "spec": {
                "imageRepositoryRef": {"name": "r"}, "policy": {},
                "filterTags": {"pattern": format!("^{policy}-(?P<value>.*)$"), "extract": "$value"},
            },
            "status": {"latestRef": latest},
        }))
        .unwrap()
    }

    /// The images that count, and the phrase about groups.
    fn held(policies: &[&str], not_selected: &[&str], observed: &[&str]) -> (String, GroupHolds) {
        let policies: Vec<ImagePolicy> = policies.iter().map(|text| policy(text)).collect();
        let state = |policy: &ImagePolicy| {
            let own = ObjectName::of(policy);
            let latest = policy.status.as_ref().and_then(|status| status.latest_ref.as_ref());
            let state = match latest.and_then(reference) {
                _ if not_selected.contains(&own.name.as_str()) => PolicyState::NotSelected,
                None => PolicyState::WithoutImage,
                Some(image) => PolicyState::Image(image),
            };
            (own, state)
        };
        let mut setters = Setters::new(policies.iter().map(state).collect());
        let image = |tag: &&str| {
            let image = ImageRef { name: "img".to_owned(), tag: (*tag).to_owned(), digest: None };
            (tag.split('-').next().unwrap_or_default().to_owned(), image)
        };
        let observed = observed.iter().map(image).collect();
        let images = Images { given: &BTreeMap::new(), observed: &observed };
        let holds = GroupHolds::hold(&mut setters, &policies, images);
        let shown: Vec<String> = setters.images().map(|(_, image)| image.tag.to_string()).collect();
        (shown.join(" "), holds)
    }

    #[test]
    fn members_are_written_while_all_have_the_same_value() {
        let old = ["api-1", "web-1", "job-1"];
        for (policies, not_selected, expected, phrase) in [
            (&["api shop api-2", "web shop web-2"][..], &[][..], "api-2 web-2", ""),
            (
                &["api shop api-2", "web shop web-1", "job - job-2"],
                &[],
                "api-1 job-2 web-1",
                r#"release group shop: api has "2" and web has "1""#,
            ),
            // Another automation writes the other member.
            (
                &["api shop api-2", "web shop web-1"],
                &["web"],
                "api-1",
                r#"release group shop: api has "2" and web has "1""#,
            ),
            (&["api shop api-2", "web shop web-2"], &["web"], "api-2", ""),
            // No selected policy is in the group.
            (&["api shop api-2", "web shop web-1", "job - job-2"], &["api", "web"], "job-2", ""),
            (&["api shop api-2", "web shop -"], &[], "api-1", "release group shop: web has no image"),
            (
                &["api shop api-2", "web shop latest"],
                &[],
                "api-1 web-1",
                "release group shop: web has the tag latest, which its filterTags does not match",
            ),
            (
                &["api sh@p api-2", "web shop web-2"],
                &[],
                "api-1 web-2",
                "the annotation tagboat.dev/release-group of api is not valid",
            ),
            (
                &["api one api-2", "job one job-1", "web two web-2"],
                &[],
                "api-1 job-1 web-2",
                r#"release group one: api has "2" and job has "1""#,
            ),
        ] {
            let (shown, holds) = held(policies, not_selected, &old);
            assert_eq!(shown, expected, "{policies:?}");
            assert_eq!(holds.by().unwrap_or_default(), phrase, "{policies:?}");
            assert_eq!(holds.are_incomplete(), !phrase.is_empty());
        }
    }

    #[test]
    fn a_member_that_was_never_written_is_not_written() {
        let (shown, holds) = held(&["api shop api-2", "web shop web-1"], &[], &["web-1"]);
        assert_eq!((shown.as_str(), holds.has_groups), ("web-1", true));
        assert!(!held(&["api - api-2"], &[], &[]).1.has_groups);
        let many: Vec<String> = (0..12).map(|number| format!("p{number} g{number} -")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(held(&many, &[], &[]).1.by().unwrap().ends_with("; and 2 more"));
    }
}
