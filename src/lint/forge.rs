//! Checks the forges that automations with pull requests or signed commits use.

use std::iter;

use tagboat_api::settings::{AutomationSettings, Delivery, GitRepositorySettings, SignedBy};
use tagboat_api::substitution::contains_placeholder;

use super::delivery::{Whole, find_repository, location, name_of, repository_of};
use super::finding::{Finding, Findings, Location, Rule};
use super::object::Object;
use crate::error::chain;
use crate::forge::{AddressError, ForgeAddress, ForgeKind};
use crate::git::{LocalPaths, RemoteUrl};
use crate::reconcile::automation::delivery::{UnsupportedSetting, check_support};
use crate::reconcile::automation::forge_login::ForgeAccessError;
use crate::reconcile::automation::forge_signing::ForgeSigningRefused;

/// Checks the forge of an automation, and its features.
pub(super) fn check(
    whole: Whole<'_>,
    settings: &AutomationSettings,
    objects: &[Whole<'_>],
    found: &mut Vec<Finding>,
) {
    let is_signed = settings.signed_by == SignedBy::Forge;
    let has_pull_requests = settings.delivery == Delivery::PullRequest;
    if !is_signed && !has_pull_requests {
        return;
    }
    let Some(repository) = repository_of(whole.object) else { return };
    let Some(kind) = known_forge(&repository, objects, found) else { return };
    let mut add = |name: &str, sentence: String| {
        let at = location(whole.object, name);
        Findings::new(whole.file, found).add(at, Rule::UnsupportedSetting, sentence);
    };
    if is_signed && !kind.features().signing {
        add("signed-by", chain(&ForgeSigningRefused::OtherForge { signed_by: settings.signed_by, kind }));
    }
    if let Some(error) = check_support(kind, &settings.pull_request).err().filter(|_| has_pull_requests) {
        let name = match error {
            UnsupportedSetting::Labels { .. } => "pull-request-labels",
            UnsupportedSetting::AutoMerge { .. } => "pull-request-merge",
        };
        add(name, chain(&error));
    }
}

/// Returns the forge of a GitRepository among the files.
///
/// One that cannot be used is reported.
fn known_forge(
    repository: &(Option<String>, String),
    objects: &[Whole<'_>],
    found: &mut Vec<Finding>,
) -> Option<ForgeKind> {
    let repository = find_repository(repository, objects)?;
    let annotations = repository.object.own_annotations();
    let url = repository.object.node.at(&["spec", "url"])?;
    let text = url.text().filter(|text| !contains_placeholder(text))?;
    if annotations.values().any(|value| contains_placeholder(value)) {
        return None;
    }
    // Invalid ones are findings of their own.
    let settings = GitRepositorySettings::from_annotations(&annotations).ok()?;
    let remote = RemoteUrl::parse(text, LocalPaths::Refused).ok()?;
    match ForgeAddress::of(&remote, &settings) {
        Ok(address) => {
            if lacks_login(repository.object, text, &settings) {
                let name = name_of(repository.object);
                let sentence = chain(&ForgeAccessError::NoLogin { repository: name, kind: address.kind });
                Findings::new(repository.file, found).add(Location::of(url), Rule::UnusableForge, sentence);
            }
            Some(address.kind)
        }
        Err(error) => {
            // A missing Secret hides no other defect.
            let hidden = match &error {
                AddressError::NoSecret { .. } => ForgeAddress::without_login(&remote, &settings).err(),
                _ => None,
            };
            for error in iter::once(&error).chain(&hidden) {
                let at = match error {
                    AddressError::OtherForge { .. } => location(repository.object, "forge"),
                    AddressError::ApiUrl { .. } => location(repository.object, "forge-url"),
                    _ => Location::of(url),
                };
                let sentence = chain(error).split('\n').map(str::trim).collect::<Vec<_>>().join(" ");
                Findings::new(repository.file, found).add(at, Rule::UnusableForge, sentence);
            }
            kind_of(&error)
        }
    }
}

/// Returns true if a GitRepository names no login for the API of its forge.
fn lacks_login(repository: &Object<'_>, url: &str, settings: &GitRepositorySettings) -> bool {
    let has = |name: &str| repository.node.at(&["spec", name]).is_some_and(|node| !node.is_null());
    !has("secretRef") && !has("provider") && settings.forge_secret.name().is_none() && !url.contains('@')
}

/// Returns the forge that is known in spite of an error.
fn kind_of(error: &AddressError) -> Option<ForgeKind> {
    match error {
        AddressError::NoSecret { kind } | AddressError::Path { kind, .. } => Some(*kind),
        _ => None,
    }
}
