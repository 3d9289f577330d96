//! Checks for release groups with one member.

use tagboat_api::Kind;
use tagboat_api::settings::{GroupName, PREFIX};
use tagboat_api::substitution::contains_placeholder;

use super::finding::{Finding, Findings, Location, Rule};
use super::kustomize::Kustomizations;
use super::object::visit_nested;
use super::policy_names::DeclaredName;
use super::source::Document;
use super::{Located, declared_name};
use crate::yaml::Node;

/// The name of the annotation, without the prefix.
const NAME: &str = "release-group";

/// A policy of a release group.
struct Member<'n> {
    name: DeclaredName,
    group: &'n Node,
}

impl<'n> Member<'n> {
    fn of(node: &'n Node, kustomizations: &Kustomizations, file: &str) -> Option<Self> {
        let group = node.at(&["metadata", "annotations", &format!("{PREFIX}{NAME}")])?;
        let name = declared_name(node, kustomizations.renaming_of(file));
        Some(Self { name, group })
    }

    fn group(&self) -> &'n str {
        self.group.text().unwrap_or_default()
    }

    /// Returns true if its name or its group is filled in later.
    fn is_open(&self) -> bool {
        contains_placeholder(self.group()) || contains_placeholder(&self.name.name)
    }

    /// Returns true if another policy may be in the same group.
    fn may_be_with(&self, other: &Self) -> bool {
        let namespaces = [&self.name, &other.name].map(|name| name.namespace.as_deref());
        let is_same_namespace = match namespaces {
            [Some(own), Some(others)] => self.name.can_be_in(others) || other.name.can_be_in(own),
            _ => true,
        };
        let is_same_policy = self.name.name == other.name.name;
        (other.is_open() || self.group() == other.group()) && is_same_namespace && !is_same_policy
    }
}

/// Reports each policy that is alone in its release group.
///
/// Policies that a patch may put into the group, and those that other programs generate, are taken for members.
pub(super) fn check(
    documents: &[Document<'_>],
    located: &[Located<'_>],
    kustomizations: &Kustomizations,
    found: &mut Vec<Finding>,
) {
    let is_unreadable = |document: &Document<'_>| document.error.is_some() && document.text.contains(NAME);
    if kustomizations.patches_kind(Kind::Policy) || documents.iter().any(is_unreadable) {
        return;
    }
    let mut all = Vec::new();
    for document in documents {
        for root in &document.roots {
            visit_nested(root, Kind::Policy, &mut |node| {
                all.extend(Member::of(node, kustomizations, document.name));
            });
        }
    }
    let policies = located.iter().filter(|one| one.object.kind == Kind::Policy && !one.is_patch);
    for Located { file, object, .. } in policies {
        let Some(member) = Member::of(object.node, kustomizations, file) else { continue };
        let is_valid = member.group().parse::<GroupName>().is_ok();
        if !is_valid || member.is_open() || all.iter().any(|other| member.may_be_with(other)) {
            continue;
        }
        let sentence = format!(
            "{} is the only policy of the release group `{}` among the files: add the annotation to the policies that \
             move with it, or remove it",
            object.title(),
            member.group()
        );
        Findings::new(file, found).add(Location::of(member.group), Rule::LoneGroupMember, sentence);
    }
}
