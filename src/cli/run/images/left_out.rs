//! Images of the policies that a run leaves out.
//!
//! They name the branches of automations that it does not reconcile.

use std::collections::BTreeMap;

use tagboat_api::ImageRepository;

use super::allowed::allows;
use super::selection::Selection;
use super::state::RunState;
use crate::objects::ObjectName;
use crate::objects::manifests::{Manifests, StateDirectory, StateError};
use crate::reconcile::automation::request::ImageOverrides;
use crate::reconcile::policy::request::repository_of;
use crate::reference::ImageReference;

/// Returns the images that earlier runs chose for policies outside a selection.
///
/// A policy whose state file is corrupt has none, nor has one that does not allow its image any more. Of a policy without
/// state, the image of the manifest counts.
///
/// # Errors
///
/// If the state cannot be read.
pub(in crate::cli::run) fn left_out(
    manifests: &Manifests,
    selection: &Selection,
    given: &ImageOverrides,
    state: &StateDirectory,
) -> Result<ImageOverrides, StateError> {
    let state = RunState::new(Some(state.clone()), true);
    let repositories = manifests.repositories().map(|repository| (ObjectName::of(repository), repository));
    let repositories: BTreeMap<ObjectName, &ImageRepository> = repositories.collect();
    let mut images = ImageOverrides::new();
    for policy in manifests.policies() {
        let name = ObjectName::of(policy);
        if given.contains_key(&name) || selection.has(&name) {
            continue;
        }
        let known = state.policy(policy)?;
        let Some(image) = known.image() else {
            if known.damage.is_some() {
                images.insert(name, None);
            }
            continue;
        };
        let repository = repositories.get(&repository_of(policy)).copied();
        let reference = ImageReference::from_parts(&image.name, &image.tag, image.digest.as_deref());
        images.insert(name, reference.ok().filter(|_| allows(policy, repository, &image)));
    }
    Ok(images)
}
