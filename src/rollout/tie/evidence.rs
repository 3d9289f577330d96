//! Evidence: the images that a place has or had.

use std::collections::BTreeSet;

use super::Repository;
use crate::reference::{Digest, Tag};
use crate::rollout::image::{ObjectImage, WantedImage};
use crate::rollout::place::Place;
use crate::rollout::watched::{WatchedObject, has_text};
use crate::update::Field;

/// The images that a place has or had.
#[derive(Clone, Debug, Default)]
pub(in crate::rollout) struct Evidence {
    images: Vec<WantedImage>,
    /// The values as written, for objects without a pod template.
    values: BTreeSet<String>,
}

impl Evidence {
    /// Returns the images of a place: its value, and the value that our commit replaced.
    ///
    /// `deployed` has the images of the deploy history.
    pub(in crate::rollout) fn new(
        place: &Place,
        repository: Option<&Repository>,
        deployed: &[WantedImage],
    ) -> Self {
        let former = place.written.as_ref().map(|written| written.former.as_str());
        let values: BTreeSet<String> = [place.value.as_str()]
            .into_iter()
            .chain(former)
            .filter(|value| !value.is_empty())
            .map(str::to_owned)
            .collect();
        let written = values.iter().filter_map(|value| image(place.field, value, repository));
        Self { images: written.chain(deployed.iter().cloned()).collect(), values }
    }

    /// Returns `true` if an object has one of the images.
    ///
    /// `images` are those of its pod template, `previous` is that of the component before.
    pub(in crate::rollout) fn holds(
        &self,
        object: &WatchedObject,
        images: &[&str],
        previous: Option<&str>,
    ) -> bool {
        let is_value = |text: &str| self.values.contains(text);
        match object {
            WatchedObject::Other(_, object) => has_text(&object.spec, &is_value),
            WatchedObject::HelmRelease(release) => {
                release.spec.get().is_ok_and(|spec| has_text(&spec.values, &is_value))
            }
            // The objects of a Kustomization in another cluster are not known.
            WatchedObject::Kustomization(_) => true,
            _ => images.iter().any(|image| previous == Some(image) || self.has(image)),
        }
    }

    fn has(&self, image: &str) -> bool {
        let Ok(image) = ObjectImage::parse(image) else { return false };
        self.images.iter().any(|known| {
            // Without a tag, only the digest tells one image from another.
            known.is_met_by(&image) && (known.tag.is_some() || known.digest == image.digest)
        })
    }
}

/// Returns the image of a value that a marker wrote.
///
/// There is none if the value has neither a tag nor a digest.
fn image(field: Field, value: &str, repository: Option<&Repository>) -> Option<WantedImage> {
    let name = || repository.map(|repository| repository.name.clone());
    let tag = |text: &str| Tag::parse(text).ok();
    let digest = |text: &str| Digest::parse(text).ok();
    let (repository, tag, digest) = match field {
        Field::Reference => {
            let image = ObjectImage::parse(value).ok()?;
            (image.name, image.tag, image.digest)
        }
        Field::Tag => (name()?, tag(value), None),
        Field::Digest => (name()?, None, digest(value)),
        Field::TagAndDigest => match value.split_once('@') {
            Some((text, rest)) => (name()?, tag(text), digest(rest)),
            None => (name()?, tag(value), None),
        },
        Field::Name | Field::Unknown => return None,
    };
    (tag.is_some() || digest.is_some()).then_some(WantedImage { repository, tag, digest })
}
